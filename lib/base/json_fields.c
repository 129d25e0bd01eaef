/* SPDX-License-Identifier: MIT */
#include "base/json_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"

static bool is_within(const struct json_field *field, int64_t value)
{
	return (!field->least && !field->most) || (value >= field->least && value <= field->most);
}

static bool read_integer(const struct json_field *field, const struct json_object *object, void *to)
{
	uint64_t positive = 0;
	int64_t value = 0;
	bool is_unsigned = field->kind == JSON_UNSIGNED;
	if (is_unsigned ? !json_get_unsigned(object, field->name, &positive)
			: !json_get_signed(object, field->name, &value))
		return false;
	if (is_unsigned && (field->most || field->size < sizeof(positive)) && positive > INT64_MAX)
		return false;
	if (is_unsigned)
		value = (int64_t)positive;
	bool small = field->size == sizeof(int32_t);
	if (!is_within(field, value) || (small && (value < INT32_MIN || value > INT32_MAX)))
		return false;
	if (small)
		*(int32_t *)to = (int32_t)value;
	else
		memcpy(to, is_unsigned ? (void *)&positive : (void *)&value, sizeof(value));
	return true;
}

static bool read_word(const struct json_field *field, const struct json_object *object, void *to)
{
	const char *word, *const *words = field->more;
	if (!json_get_text(object, field->name, &word))
		return false;
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], word) == 0) {
			*(int *)to = i;
			return true;
		}
	return false;
}

static bool read_string(const struct json_field *field, const struct json_object *object, void *to)
{
	const char *text;
	if (!json_get_text(object, field->name, &text))
		return false;
	*(char **)to = xstrdup(text);
	return true;
}

static bool read_value(const struct json_field *field, const struct json_object *object, void *to)
{
	switch (field->kind) {
	case JSON_UNSIGNED:
	case JSON_SIGNED: return read_integer(field, object, to);
	case JSON_TIME: return json_get_time(object, field->name, to);
	case JSON_BOOL: return json_get_bool(object, field->name, to);
	case JSON_TEXT: return json_copy_text(object, field->name, to, field->size);
	case JSON_STRING: return read_string(field, object, to);
	case JSON_WORDS: return json_get_words(object, field->name, to);
	case JSON_WORD: return read_word(field, object, to);
	default: return false;
	}
}

static enum json_reading read_field(const struct json_field *field,
	const struct json_object *object, void *record, const char **wrong)
{
	struct json_object *inner = NULL;
	void *to = (char *)record + field->offset;
	if (field->kind == JSON_PART)
		return json_read_fields(field->more, object, to, wrong);
	bool there = json_object_object_get_ex(object, field->name, &inner) && inner;
	enum json_reading reading = JSON_WELL;
	if (there && field->kind == JSON_OBJECT)
		reading = json_read_fields(field->more, inner, to, wrong);
	else if (there && !read_value(field, object, to))
		reading = JSON_UNUSABLE;
	if (reading != JSON_WELL || !there)
		*wrong = field->name;
	if (field->present)
		*(bool *)((char *)record + field->present - 1) = there && reading != JSON_UNUSABLE;
	if (field->flags & JSON_REQUIRED)
		return there ? reading : JSON_UNUSABLE;
	return reading == JSON_WELL ? JSON_WELL : JSON_PARTLY;
}

enum json_reading json_read_fields(const struct json_field *fields,
	const struct json_object *object, void *record, const char **wrong)
{
	enum json_reading worst = JSON_WELL;
	const char *first = "", *its = "";
	if (!json_object_is_type(object, json_type_object))
		worst = JSON_UNUSABLE;
	else
		for (const struct json_field *field = fields; field->kind; field++) {
			enum json_reading reading = read_field(field, object, record, &its);
			if (reading > worst) {
				worst = reading;
				first = its;
			}
		}
	if (wrong)
		*wrong = first;
	return worst;
}

enum json_reading json_read_record(const struct json_field *fields, const char *text, size_t length,
	void *record, const char **wrong)
{
	struct json_object *object = json_parse(text, length);
	enum json_reading reading = json_read_fields(fields, object, record, wrong);
	json_object_put(object);
	return reading;
}

static bool is_empty(const struct json_field *field, const void *from)
{
	static const char zero[sizeof(int64_t)];
	switch (field->kind) {
	case JSON_TEXT: return !*(const char *)from;
	case JSON_STRING: return !*(char *const *)from || !**(char *const *)from;
	case JSON_OBJECT:
	case JSON_PART: return false;
	default: return memcmp(from, zero, field->size) == 0;
	}
}

static struct json_object *value_of(const struct json_field *field, const void *from)
{
	bool small = field->size == sizeof(int32_t);
	char *const *words;
	struct json_object *array;
	switch (field->kind) {
	case JSON_UNSIGNED:
		return json_object_new_uint64(
			small ? *(const uint32_t *)from : *(const uint64_t *)from);
	case JSON_SIGNED:
	case JSON_TIME:
		return json_object_new_int64(
			small ? *(const int32_t *)from : *(const int64_t *)from);
	case JSON_BOOL: return json_object_new_boolean(*(const bool *)from);
	case JSON_TEXT: return json_object_new_string(from);
	case JSON_STRING: return json_object_new_string(*(char *const *)from ?: "");
	case JSON_WORD:
		return json_object_new_string(
			((const char *const *)field->more)[*(const int *)from]);
	case JSON_WORDS:
		array = json_object_new_array();
		for (words = *(char *const *const *)from; words && *words; words++)
			json_object_array_add(array, json_object_new_string(*words));
		return array;
	case JSON_OBJECT: return json_write_record(field->more, from);
	case JSON_PART:
	case JSON_END: break;
	}
	return NULL;
}

/* A JSON_TIME as people read it. */
static struct json_object *show_time(const struct json_field *field, int64_t time)
{
	char text[32];
	if (field->flags & JSON_INSTANT) {
		clock_format_utc(time, text);
		return json_object_new_string(text);
	}
	snprintf(text, sizeof(text), "%" PRId64 ".%03d", time / 1000, (int)(time % 1000));
	return json_object_new_double_s((double)time / 1000, text);
}

static void put_fields(const struct json_field *fields, const void *record,
	struct json_object *object, bool for_output)
{
	unsigned always =
		for_output ? JSON_REQUIRED | JSON_ALWAYS | JSON_SHOWN : JSON_REQUIRED | JSON_ALWAYS;
	for (const struct json_field *field = fields; field->kind; field++) {
		const char *name = for_output && field->shown ? field->shown : field->name;
		const char *from = (const char *)record + field->offset;
		bool absent = field->present ? !*((const bool *)record + field->present - 1)
					     : !(field->flags & always) && is_empty(field, from);
		if (field->kind == JSON_PART)
			put_fields(field->more, from, object, for_output);
		else if (*name && !absent)
			json_object_object_add(object, name,
				xneeded(for_output && field->flags & (JSON_SECONDS | JSON_INSTANT)
						? show_time(field, *(const int64_t *)from)
						: value_of(field, from)));
	}
}

void json_write_fields(
	const struct json_field *fields, const void *record, struct json_object *object)
{
	put_fields(fields, record, object, false);
}

void json_show_fields(
	const struct json_field *fields, const void *record, struct json_object *object)
{
	put_fields(fields, record, object, true);
}

struct json_object *json_write_record(const struct json_field *fields, const void *record)
{
	struct json_object *object = xneeded(json_object_new_object());
	json_write_fields(fields, record, object);
	return object;
}

void json_release_record(const struct json_field *fields, void *record)
{
	for (const struct json_field *field = fields; field->kind; field++) {
		void *member = (char *)record + field->offset;
		if (field->kind == JSON_OBJECT || field->kind == JSON_PART)
			json_release_record(field->more, member);
		if (field->kind == JSON_WORDS)
			for (char **word = *(char ***)member; word && *word; word++)
				free(*word);
		if (field->kind == JSON_WORDS || field->kind == JSON_STRING) {
			free(*(void **)member);
			*(void **)member = NULL;
		}
	}
}
