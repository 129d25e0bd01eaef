/* SPDX-License-Identifier: MIT */
#include "store/etcd/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/xalloc.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void wire_key_set(struct wire_key *key, const char *prefix, char kind, const char *name)
{
	int length = snprintf(key->bytes, sizeof(key->bytes), "%s/%c%s%s", prefix, kind,
		name ? "/" : "", name ? name : "");
	key->length = (size_t)length;
}

/* Turn key into the first key after all keys that begin with it. */
static void wire_key_end(struct wire_key *key)
{
	/* This ends, because the key has a '/'. */
	while ((unsigned char)key->bytes[key->length - 1] == 0xff)
		key->length--;
	key->bytes[key->length - 1]++;
}

void wire_key_next(struct wire_key *key)
{
	key->bytes[key->length++] = '\0';
}

void wire_keys_below(struct wire_keys *keys, const char *prefix, char kind, const char *name)
{
	wire_key_set(&keys->first, prefix, kind, name);
	keys->end = keys->first;
	wire_key_end(&keys->end);
}

void wire_add(struct text *text, const char *added)
{
	if (text->length && !strchr("[{", text->data[text->length - 1]))
		text_add(text, ",");
	text_add(text, added);
}

void wire_add_bytes(struct text *text, const char *name, const void *bytes, size_t length)
{
	const unsigned char *from = bytes;
	char *encoded = xmalloc(4 * (length / 3 + 1) + 1), *to = encoded;
	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t group = (uint32_t)from[i] << 16 |
				 (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
				 (left > 2 ? (uint32_t)from[i + 2] : 0);
		*to++ = digits[group >> 18];
		*to++ = digits[group >> 12 & 63];
		*to++ = left > 1 ? digits[group >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[group & 63] : '=';
	}
	*to = '\0';
	wire_add(text, "");
	text_addf(text, "\"%s\":\"", name);
	text_add_bytes(text, encoded, (size_t)(to - encoded));
	text_add(text, "\"");
	free(encoded);
}

void wire_add_number(struct text *text, const char *name, int64_t number)
{
	wire_add(text, "");
	text_addf(text, "\"%s\":\"%" PRId64 "\"", name, number);
}

void wire_add_key(struct text *text, const struct wire_key *key)
{
	wire_add_bytes(text, "key", key->bytes, key->length);
}

void wire_add_keys(struct text *text, const struct wire_keys *keys)
{
	wire_add_key(text, &keys->first);
	if (keys->end.length)
		wire_add_bytes(text, "range_end", keys->end.bytes, keys->end.length);
}

void wire_add_compare(struct text *text, const struct wire_key *key, bool present)
{
	wire_add(text, "{");
	wire_add_key(text, key);
	text_addf(text, ",\"target\":\"VERSION\",\"result\":\"%s\",\"version\":\"0\"}",
		present ? "GREATER" : "EQUAL");
}

void wire_begin_unless(struct text *text, const struct wire_key *key)
{
	text_add(text, "{\"compare\":[");
	wire_add_compare(text, key, false);
	text_add(text, "],\"success\":[");
}

void wire_add_put(struct text *text, const struct wire_key *key, const void *value, size_t length)
{
	wire_add(text, "{\"request_put\":{");
	wire_add_key(text, key);
	wire_add_bytes(text, "value", value, length);
	text_add(text, "}}");
}

void wire_add_counts(struct text *text, const char *root, const char *const prefixes[STORE_COUNTS])
{
	for (size_t i = 0; i < STORE_COUNTS; i++) {
		struct wire_keys keys;
		if (!prefixes[i])
			continue;
		wire_keys_below(&keys, root, 'k', prefixes[i]);
		wire_add(text, "{\"request_range\":{");
		wire_add_keys(text, &keys);
		text_add(text, ",\"count_only\":true}}");
	}
}

struct json_object *wire_object(struct json_object *object, const char *name)
{
	return json_member(object, name, json_type_object);
}

struct json_object *wire_element(struct json_object *object, const char *name, size_t i)
{
	struct json_object *array = json_member(object, name, json_type_array);
	return array ? json_object_array_get_idx(array, i) : NULL;
}

struct json_object *wire_response(struct json_object *object, size_t i, const char *kind)
{
	return wire_object(wire_element(object, "responses", i), kind);
}

size_t wire_count(struct json_object *object, const char *name)
{
	struct json_object *array = json_member(object, name, json_type_array);
	return array ? json_object_array_length(array) : 0;
}

int64_t wire_number(struct json_object *object, const char *name)
{
	struct json_object *value;
	if ((value = json_member(object, name, json_type_int)))
		return json_object_get_int64(value);
	value = json_member(object, name, json_type_string);
	/* Not strtoll: ids of members and clusters are unsigned, and may exceed INT64_MAX. */
	return value ? (int64_t)strtoull(json_object_get_string(value), NULL, 10) : 0;
}

bool wire_flag(struct json_object *object, const char *name)
{
	struct json_object *value = json_member(object, name, json_type_boolean);
	return value && json_object_get_boolean(value);
}

/* Return the value of a digit of base64; 64: it is not one. */
static uint32_t digit_value(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return (uint32_t)(digit - 'A');
	if (digit >= 'a' && digit <= 'z')
		return (uint32_t)(digit - 'a') + 26;
	if (digit >= '0' && digit <= '9')
		return (uint32_t)(digit - '0') + 52;
	return digit == '+' ? 62 : digit == '/' ? 63 : 64;
}

char *wire_bytes(struct json_object *object, const char *name, size_t *length)
{
	struct json_object *value = json_member(object, name, json_type_string);
	const char *from = value ? json_object_get_string(value) : "";
	size_t count = strcspn(from, "=");
	unsigned char *bytes = xmalloc(count / 4 * 3 + 4), *to = bytes;
	uint32_t group = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t digit = digit_value(from[i]);
		if (digit == 64) {
			free(bytes);
			return NULL;
		}
		group = group << 6 | digit;
		if (i % 4 == 0)
			continue;
		*to++ = (unsigned char)(group >> (6 - 2 * (i % 4)));
	}
	*length = (size_t)(to - bytes);
	*to = '\0';
	return (char *)bytes;
}

void wire_take_counts(struct json_object *object, size_t at,
	const char *const prefixes[STORE_COUNTS], struct store_answer *answer)
{
	for (size_t i = 0; i < STORE_COUNTS; i++)
		if (prefixes[i])
			answer->counted[i] = (uint64_t)wire_number(
				wire_response(object, at++, "response_range"), "count");
}
