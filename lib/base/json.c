/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <json-c/json_tokener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct json_object *json_parse(const char *text, size_t length)
{
	return json_parse_limited(text, length, (size_t)1 << 20);
}

struct json_object *json_parse_limited(const char *text, size_t length, size_t limit)
{
	if (!text || length > limit || length > (size_t)1 << 30)
		return NULL;
	struct json_tokener *tokener = json_tokener_new_ex(32);
	if (!tokener)
		return NULL;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	struct json_object *object = json_tokener_parse_ex(tokener, text, (int)length);
	/* A document that is only a number could have more digits: a NUL says that it ends. */
	if (json_tokener_get_error(tokener) == json_tokener_continue)
		object = json_tokener_parse_ex(tokener, "", 1);
	if (json_tokener_get_error(tokener) != json_tokener_success) {
		json_object_put(object);
		object = NULL;
	}
	json_tokener_free(tokener);
	return object;
}

struct json_object *json_member(
	const struct json_object *object, const char *member, enum json_type type)
{
	struct json_object *value;
	return json_object_object_get_ex(object, member, &value) && json_object_is_type(value, type)
		       ? value
		       : NULL;
}

bool json_get_unsigned(const struct json_object *object, const char *member, uint64_t *value)
{
	struct json_object *found = json_member(object, member, json_type_int);
	if (!found || json_object_get_int64(found) < 0)
		return false;
	*value = json_object_get_uint64(found);
	return true;
}

bool json_get_code(const struct json_object *object, const char *member, int *code)
{
	uint64_t value;
	if (!json_get_unsigned(object, member, &value) || value > 255)
		return false;
	*code = (int)value;
	return true;
}

bool json_get_signed(const struct json_object *object, const char *member, int64_t *value)
{
	struct json_object *found = json_member(object, member, json_type_int);
	if (!found)
		return false;
	*value = json_object_get_int64(found);
	return true;
}

bool json_get_time(const struct json_object *object, const char *member, int64_t *value)
{
	int64_t found;
	if (!json_get_signed(object, member, &found) || found < 0 || found > JSON_TIME_MAX)
		return false;
	*value = found;
	return true;
}

bool json_get_bool(const struct json_object *object, const char *member, bool *value)
{
	struct json_object *found = json_member(object, member, json_type_boolean);
	if (!found)
		return false;
	*value = json_object_get_boolean(found);
	return true;
}

bool json_get_text(const struct json_object *object, const char *member, const char **value)
{
	struct json_object *found = json_member(object, member, json_type_string);
	if (!found)
		return false;
	*value = json_object_get_string(found);
	return true;
}

bool json_copy_text(const struct json_object *object, const char *member, char *to, size_t size)
{
	const char *value;
	if (!json_get_text(object, member, &value))
		return false;
	snprintf(to, size, "%s", value);
	return true;
}

void json_put_text(struct json_object *object, const char *member, const char *value)
{
	json_object_object_add(object, member, json_object_new_string(value));
}

void json_put_unsigned(struct json_object *object, const char *member, uint64_t value)
{
	json_object_object_add(object, member, json_object_new_uint64(value));
}

void json_put_signed(struct json_object *object, const char *member, int64_t value)
{
	json_object_object_add(object, member, json_object_new_int64(value));
}

void json_put_bool(struct json_object *object, const char *member, bool value)
{
	json_object_object_add(object, member, json_object_new_boolean(value));
}

const char *json_line(struct json_object *object)
{
	return json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
}

void json_add_line(struct json_object *object, struct text *text)
{
	text_add_json(text, json_line(object));
}

bool json_get_words(const struct json_object *object, const char *member, char ***words)
{
	struct json_object *array;
	if (!json_object_object_get_ex(object, member, &array))
		return true;
	if (!json_object_is_type(array, json_type_array))
		return false;
	size_t count = json_object_array_length(array), i = 0;
	while (i < count &&
		json_object_is_type(json_object_array_get_idx(array, i), json_type_string))
		i++;
	if (i < count)
		return false;
	*words = xcalloc(count + 1, sizeof(**words));
	for (i = 0; i < count; i++)
		(*words)[i] = xstrdup(json_object_get_string(json_object_array_get_idx(array, i)));
	return true;
}
