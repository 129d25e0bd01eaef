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
 *	reading = json_read_record(lease_fields, text, length, &lease, NULL);
 *	object = json_write_record(lease_fields, &lease);
 *
 * Reading: if a required field is absent, of another type or out of range, the record cannot be
 * used (JSON_UNUSABLE). Any other wrong field counts as absent, and the result is JSON_PARTLY: the
 * caller decides whether that is damage. The member of an absent or null field is not changed: set
 * defaults before the call. After a wrong field, the other fields are still read. Fields that are
 * not in the table are ignored: newer versions may add some.
 *
 * Writing, in the order of the table: a field is left out if its member is 0, false, empty or NULL,
 * unless it is JSON_REQUIRED or JSON_ALWAYS. A field with `present` is written if and only if that
 * bool is true.
 */
#ifndef BASE_JSON_FIELDS_H
#define BASE_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

/* The type of the member. */
enum json_kind {
	JSON_END,      /* ends the table */
	JSON_UNSIGNED, /* uint64_t, or a 32-bit one, at most INT32_MAX */
	JSON_SIGNED,   /* int64_t or int (also pid_t) */
	JSON_TIME,     /* int64_t: milliseconds, 0 to JSON_TIME_MAX */
	JSON_BOOL,     /* bool */
	JSON_TEXT,     /* char[]: cut to its size when read */
	JSON_STRING,   /* char *: freed by json_release_record */
	JSON_WORDS,    /* char **: an array of texts, NULL-terminated; freed in the same way */
	JSON_WORD,     /* an enum, written as a word; more: its words by value, NULL-terminated */
	JSON_OBJECT,   /* a struct as an object of its own; more: its fields */
	JSON_PART,     /* a struct whose fields are in this object; more: its fields; no name */
};

enum json_flags {
	JSON_REQUIRED = 1, /* must exist when read; always written */
	JSON_ALWAYS = 2,   /* written even if it is 0, false, empty or NULL */
	JSON_SHOWN = 4,	   /* like JSON_ALWAYS, for json_show_fields only */
	/* A JSON_TIME, for json_show_fields only: */
	JSON_SECONDS = 8, /* as seconds with a fraction */
	JSON_INSTANT = 16 /* as text (clock_format_utc) */
};

struct json_field {
	const char *name;
	enum json_kind kind;
	unsigned flags;
	size_t offset, size; /* of the member; by JSON_MEMBER */
	/* The smallest and the largest number allowed; both 0: all of the type. */
	int64_t least, most;
	const void *more;
	/* Its name for json_show_fields; NULL: the same name; "": left out */
	const char *shown;
	/* By JSON_PRESENT: 1 + the offset of a bool, true if there is a value; 0: no such bool */
	size_t present;
};

#define JSON_MEMBER(type, member)                                                                  \
	.offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define JSON_PRESENT(type, member) .present = 1 + offsetof(type, member)

enum json_reading {
	JSON_WELL,     /* no field is wrong */
	JSON_PARTLY,   /* a field that is not required is wrong, and counts as absent */
	JSON_UNUSABLE, /* a required field is wrong or absent, or this is not an object */
};

/*
 * Fill the record from object, which may be NULL or of any type. *wrong, unless wrong is NULL,
 * becomes the name of the first field that gave the result; "" for JSON_WELL or no object.
 */
enum json_reading json_read_fields(const struct json_field *fields,
	const struct json_object *object, void *record, const char **wrong);
/* The same from text. */
enum json_reading json_read_record(const struct json_field *fields, const char *text, size_t length,
	void *record, const char **wrong);

/* A new object: release it by json_object_put, or hand it on to a transaction. */
struct json_object *json_write_record(const struct json_field *fields, const void *record);
/* Add the same fields to an existing object. */
void json_write_fields(
	const struct json_field *fields, const void *record, struct json_object *object);

/* The same for --json output, with the names of `shown`. */
void json_show_fields(
	const struct json_field *fields, const void *record, struct json_object *object);

/* Free the strings and words of a record and make them NULL. */
void json_release_record(const struct json_field *fields, void *record);

#endif
