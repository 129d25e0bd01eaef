/* SPDX-License-Identifier: MIT */
/*
 * What a server of etcd answers. The first byte of an input says what the rest is: 'j' the JSON of
 * a list of keys; '1' to '9' an answer of HTTP, which arrives in portions of that many bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/http/reader.h"
#include "base/json.h"
#include "store/etcd/session.h"
#include "support/fuzz.h"

#define BODY_MOST 4096

struct arrived {
	struct http_reader reader;
	struct text body;
	bool whole; /* also where the connection ends behind it */
};

static bool take_body(void *context, const char *bytes, size_t length)
{
	struct text *body = context;
	FUZZ_HOLDS(length > 0);
	if (body->length + length > BODY_MOST)
		return false;
	text_add_bytes(body, bytes, length);
	return true;
}

static void arrive(struct arrived *arrived, const char *bytes, size_t size, size_t portion)
{
	*arrived = (struct arrived){0};
	struct http_reader *reader = &arrived->reader;
	http_reader_start(reader);
	for (size_t at = 0; at < size;) {
		size_t length = portion < size - at ? portion : size - at;
		char *part = fuzz_text(bytes + at, length);
		size_t used = http_reader_take(reader, part, length, take_body, &arrived->body);
		free(part);
		FUZZ_HOLDS(used <= length);
		at += used;
		if (reader->at == HTTP_READ_ENDED || reader->at == HTTP_READ_WRONG)
			break;
		FUZZ_HOLDS(used == length);
	}
	FUZZ_HOLDS(reader->at < HTTP_READ_SIZED || (reader->code >= 200 && reader->code <= 999) ||
		   reader->at == HTTP_READ_WRONG);
	arrived->whole = http_reader_end(reader);
}

/* It does not matter in what portions it arrives; a body that is too long is cut somewhere. */
static void check_http(const char *bytes, size_t size, size_t portion)
{
	struct arrived once, parts;
	arrive(&once, bytes, size, size ? size : 1);
	arrive(&parts, bytes, size, portion);
	FUZZ_HOLDS(once.reader.at == parts.reader.at && once.whole == parts.whole);
	FUZZ_HOLDS(once.reader.code == parts.reader.code);
	if (once.reader.at != HTTP_READ_WRONG) {
		FUZZ_HOLDS(once.body.length == parts.body.length);
		FUZZ_HOLDS(!memcmp(
			text_string(&once.body), text_string(&parts.body), once.body.length));
	}
	text_release(&once.body);
	text_release(&parts.body);
	http_reader_release(&once.reader);
	http_reader_release(&parts.reader);
}

static void check_keys(const char *bytes, size_t size)
{
	struct etcd_store store = {
		.options.prefix = (char *)"p", .base.where = (char *)"etcd://h/p"};
	struct json_object *answer = json_parse_limited(bytes, size, size + 1);
	for (size_t i = 0; i < wire_count(answer, "kvs"); i++) {
		struct store_entry entry = {0};
		struct error err = {0};
		if (etcd_entry(&store, wire_element(answer, "kvs", i), &entry, &err) == STATUS_OK) {
			FUZZ_HOLDS(entry.key && entry.value && !entry.value[entry.length]);
			free(entry.key);
			free(entry.value);
		} else {
			FUZZ_HOLDS(*err.text);
		}
	}
	json_object_put(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *rest = fuzz_text(data + 1, size - 1);
	if (*data == 'j')
		check_keys(rest, size - 1);
	else if (*data >= '1' && *data <= '9')
		check_http(rest, size - 1, (size_t)(*data - '0'));
	free(rest);
	return 0;
}
