/* SPDX-License-Identifier: MIT */
/*
 * JSON by json-c, with strict getters: those of json-c convert types ("12abc" becomes 12). A getter
 * here returns true only for a member of exactly that type. At most 1 MiB and 32 levels are parsed.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Parse one whole document; NULL: text is not one. Release with json_object_put. */
struct json_object *json_parse(const char *text, size_t length);
/* The same with another limit, at most 1 GiB: for lists of many thousands of files. */
struct json_object *json_parse_limited(const char *text, size_t length, size_t limit);

/* The member, owned by the object. NULL: there is none, or it has another type. */
struct json_object *json_member(
	const struct json_object *object, const char *member, enum json_type type);
bool json_get_unsigned(const struct json_object *object, const char *member, uint64_t *value);
/* An exit code as in a shell ($?), 0 to 255. */
bool json_get_code(const struct json_object *object, const char *member, int *code);
bool json_get_signed(const struct json_object *object, const char *member, int64_t *value);
bool json_get_bool(const struct json_object *object, const char *member, bool *value);
/*
 * An instant (ms since 1970) or a duration (ms): 0 to JSON_TIME_MAX, so that the sum of a few of
 * them cannot overflow.
 */
#define JSON_TIME_MAX INT64_C(253402300799999) /* the year 9999 */
bool json_get_time(const struct json_object *object, const char *member, int64_t *value);
/* The text stays owned by the object. */
bool json_get_text(const struct json_object *object, const char *member, const char **value);
/* Copy the text, cut to size. */
bool json_copy_text(const struct json_object *object, const char *member, char *to, size_t size);

void json_put_text(struct json_object *object, const char *member, const char *value);
void json_put_unsigned(struct json_object *object, const char *member, uint64_t value);
void json_put_signed(struct json_object *object, const char *member, int64_t value);
void json_put_bool(struct json_object *object, const char *member, bool value);

/*
 * Read an array of strings into a NULL-terminated list; the caller frees *words and each word. If
 * the member is absent, *words stays unchanged, and the result is true. False: the member is not an
 * array of strings.
 */
bool json_get_words(const struct json_object *object, const char *member, char ***words);

/* The object on one line, for a record; the text is owned by the object. */
const char *json_line(struct json_object *object);
/* Add the same line to text, escaped for a terminal (text_add_json). */
void json_add_line(struct json_object *object, struct text *text);

#endif
