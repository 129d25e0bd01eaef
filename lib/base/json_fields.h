/* SPDX-License-Identifier: MIT */
/*
 * A record as a C struct and as a JSON object: one table of fields reads and writes it.
 *
 *	#define LEASE(member) JSON_MEMBER(struct queue_lease, member)
 *	static const struct json_field lease_fields[] = {
 *		{"token", JSON_TEXT, JSON_REQUIRED, LEASE(token)},
 *		{"worker", JSON_TEXT, JSON_ALWAYS, LEASE(worker)},
 *		{"since", JSON_TIME, JSON_REQUIRED, LEASE(since)},
 *		{NULL, JSON_PART, 0, LEASE(history), .more = history_fields},
 *		{0},
 *	};
 *	if (json_read_record(lease_fields, entry->value, entry->length, &lease, NULL) == JSON_WELL)
 *	object = json_write_record(lease_fields, &lease);
 *
 * Reading: a required field that is absent, of another type or out of range makes the record one
 * that cannot be used (JSON_UNUSABLE). Any other wrong field counts as absent, and the answer is
 *JSON_PARTLY: the caller decides whether that is damage. An absent or null field leaves its member
 *unchanged: set defaults before the call. Fields that the table does not name are ignored: newer
 *versions may add some. All fields that can be read are read, whatever the answer.
 *
 * Writing, in the order of the table: a field is left out where its member is 0, false, empty or
 * NULL, unless it is required, or JSON_ALWAYS says otherwise. A field with `present` is written if
 *and only if that bool is true.
 */
#ifndef BASE_JSON_FIELDS_H
#define BASE_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

/* By the type of the member. */
enum json_kind {
	JSON_END,      /* of the table */
	JSON_UNSIGNED, /* uint64_t, or a smaller unsigned integer */
	JSON_SIGNED,   /* int64_t or int (also pid_t) */
	JSON_TIME,     /* int64_t: milliseconds, 0 to JSON_TIME_MAX */
	JSON_BOOL,     /* bool */
	JSON_TEXT,     /* char[]: cut to its size when read */
	JSON_STRING,   /* char *: freed by json_release_record */
	JSON_WORDS,    /* char **: an array of texts, NULL-terminated; freed in the same way */
	JSON_WORD,     /* an enum; more: its words by value, NULL-terminated */
	JSON_OBJECT,   /* a struct as an object of its own; more: its fields */
	JSON_PART,     /* a struct whose fields stand in this object; more: its fields; no name */
};

enum json_flags {
	JSON_REQUIRED = 1, /* must be there when read; always written */
	JSON_ALWAYS = 2,   /* written also where it is 0, false, empty or NULL */
	JSON_NULL = 4,	   /* written as null where it would be left out */
	JSON_SHOWN = 8, /* json_show_fields only: shown also where it is 0, false, empty or NULL */
};

struct json_field {
	const char *name;
	enum json_kind kind;
	unsigned flags;
	size_t offset, size; /* of the member; by JSON_MEMBER */
	/* The smallest and the largest number allowed; both 0: the range of the type. */
	int64_t least, most;
	const void *more;
	/* Its name in the --json of a program; NULL: the same; "": not shown */
	const char *shown;
	/* 1 + the offset of a bool that says whether there is a value: JSON_PRESENT; 0: none */
	size_t present;
};

#define JSON_MEMBER(type, member)                                                                  \
	.offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define JSON_PRESENT(type, member) .present = 1 + offsetof(type, member)

enum json_reading {
	JSON_WELL,     /* no field is wrong */
	JSON_PARTLY,   /* a field that is not required is wrong, and counts as absent */
	JSON_UNUSABLE, /* a required one is wrong or absent, or this is no object */
};

/*
 * Fill the record from object, which may be NULL or of any type. *wrong (wrong may be NULL) is the
 * name of the first field that is wrong; "" where there is no object.
 */
enum json_reading json_read_fields(const struct json_field *fields,
	const struct json_object *object, void *record, const char **wrong);
/* The same from text. */
enum json_reading json_read_record(const struct json_field *fields, const char *text, size_t length,
	void *record, const char **wrong);

/* A new object, to be released by json_object_put or handed on to a transaction. */
struct json_object *json_write_record(const struct json_field *fields, const void *record);
/* The same fields into an object that has others. */
void json_write_fields(
	const struct json_field *fields, const void *record, struct json_object *object);

/* The same for --json: under the names that are shown. */
void json_show_fields(
	const struct json_field *fields, const void *record, struct json_object *object);

/* Free the strings and words of a record and make them NULL. */
void json_release_record(const struct json_field *fields, void *record);

#endif
