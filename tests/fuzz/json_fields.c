/* SPDX-License-Identifier: MIT */
/* A record by a table of fields: what was read is written so that it is read as the same again. */
#include "base/json_fields.h"

#include <stdlib.h>
#include <string.h>

#include "support/fuzz.h"

enum colour { RED, GREEN };
static const char *const colours[] = {"red", "green", NULL};

struct record {
	uint64_t id;
	unsigned small;
	int code;
	int64_t offset, time;
	bool done, has_time;
	char name[6];
	char *text, **words;
	enum colour colour;
};
#define RECORD(member) JSON_MEMBER(struct record, member)
static const struct json_field fields[] = {
	{"id", JSON_UNSIGNED, 0, RECORD(id)},
	{"small", JSON_UNSIGNED, 0, RECORD(small)},
	{"code", JSON_SIGNED, JSON_ALWAYS, RECORD(code), .least = 0, .most = 255},
	{"offset", JSON_SIGNED, 0, RECORD(offset)},
	{"done", JSON_BOOL, 0, RECORD(done)},
	{"time", JSON_TIME, 0, RECORD(time), JSON_PRESENT(struct record, has_time)},
	{"name", JSON_TEXT, 0, RECORD(name)},
	{"text", JSON_STRING, 0, RECORD(text)},
	{"words", JSON_WORDS, 0, RECORD(words)},
	{"colour", JSON_WORD, 0, RECORD(colour), .more = colours},
	{0},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record first = {0}, second = {0};
	const char *wrong = NULL;
	enum json_reading reading =
		json_read_record(fields, (const char *)data, size, &first, &wrong);
	FUZZ_HOLDS(reading == JSON_WELL || wrong);
	FUZZ_HOLDS(first.code >= 0 && first.code <= 255 && first.colour <= GREEN);
	FUZZ_HOLDS(memchr(first.name, '\0', sizeof(first.name)));
	struct json_object *written = json_write_record(fields, &first);
	FUZZ_HOLDS(json_read_fields(fields, written, &second, NULL) == JSON_WELL);
	struct json_object *again = json_write_record(fields, &second);
	FUZZ_HOLDS(!strcmp(json_line(written), json_line(again)));
	json_object_put(written);
	json_object_put(again);
	json_release_record(fields, &first);
	json_release_record(fields, &second);
	return 0;
}
