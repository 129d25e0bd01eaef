/* SPDX-License-Identifier: MIT */
/*
 * Writing requests for etcd's JSON gateway, and reading its answers. Pure: nothing here talks to a
 * server. The format is that of etcd 3.4 and later: keys and values are in base64, 64-bit numbers
 * arrive as strings, and members that are zero, false or empty are left out.
 */
#ifndef STORE_ETCD_WIRE_H
#define STORE_ETCD_WIRE_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "store/etcd/options.h"
#include "store/store.h"

/*
 * A key in etcd is PREFIX, '/', and one of
 *	d		the mark of a deletion: each transaction that deletes puts it
 *	f/CLIENT	the fence of a client (etcd.c)
 *	k/KEY		a key of the store
 *	n/GROUP		the news of a group; the key's version is the count
 *	b/GROUP/TASK	the beats of an agent; TASK is its first task
 *	s		the mark of a store, with its format
 *	x		the key with which the doctor tests the cluster (inspect.c)
 */
struct wire_key {
	char bytes[ETCD_PREFIX_MAX + STORE_KEY_MAX + 64];
	size_t length;
};
/* name: NULL for d and s. */
void wire_key_set(struct wire_key *key, const char *prefix, char kind, const char *name);
/* Turn key into the next possible key. */
void wire_key_next(struct wire_key *key);

/* A range: the keys from first on that are less than end (length 0: only first). */
struct wire_keys {
	struct wire_key first, end;
};
/* The range of all keys that begin with the key which wire_key_set makes. */
void wire_keys_below(struct wire_keys *keys, const char *prefix, char kind, const char *name);

/*
 * Each of these functions adds to a JSON object or array that is not closed yet, after a comma if
 * it needs one. wire_add adds text as it is, such as the beginning of a member or an element.
 */
void wire_add(struct text *text, const char *added);
/* Add a member "NAME":VALUE. */
void wire_add_bytes(struct text *text, const char *name, const void *bytes, size_t length);
void wire_add_number(struct text *text, const char *name, int64_t number);
/* Add the member "key", and for a range also "range_end". */
void wire_add_key(struct text *text, const struct wire_key *key);
void wire_add_keys(struct text *text, const struct wire_keys *keys);
/* Add a compare: the key exists, or is absent. */
void wire_add_compare(struct text *text, const struct wire_key *key, bool present);
/* Begin the body of a transaction whose operations, to be added, need the key to be absent. */
void wire_begin_unless(struct text *text, const struct wire_key *key);
/* Add an operation that puts the key. */
void wire_add_put(struct text *text, const struct wire_key *key, const void *value, size_t length);
/*
 * Add operations that count the keys of the store below each of these prefixes (NULL: none). root:
 * the PREFIX of the store.
 */
void wire_add_counts(struct text *text, const char *root, const char *const prefixes[STORE_COUNTS]);

/* ---- Answers ---- */

/* The member of this name, an object; NULL: there is none. */
struct json_object *wire_object(struct json_object *object, const char *name);
/* Element i of the array of this name; NULL: there is none. */
struct json_object *wire_element(struct json_object *object, const char *name, size_t i);
/* The answer to operation i of a transaction, by its kind: "response_range", "response_txn". */
struct json_object *wire_response(struct json_object *object, size_t i, const char *kind);
size_t wire_count(struct json_object *object, const char *name);
/* A 64-bit number, signed or not, which may be in a string; 0: it is absent. */
int64_t wire_number(struct json_object *object, const char *name);
bool wire_flag(struct json_object *object, const char *name);
/* Read the counts for wire_add_counts from the responses of a transaction, from number `at` on. */
void wire_take_counts(struct json_object *object, size_t at,
	const char *const prefixes[STORE_COUNTS], struct store_answer *answer);
/* Decode a member in base64: *length bytes and a NUL; "": it is absent. NULL: not base64. */
char *wire_bytes(struct json_object *object, const char *name, size_t *length);

#endif
