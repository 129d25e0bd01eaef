/* SPDX-License-Identifier: MIT */
/*
 * Requests to etcd's JSON gateway and its answers, as text and as objects. Nothing here speaks to a
 * server. The forms are those of etcd v3 from 3.4 on: keys and values in base64; 64-bit numbers
 * arrive as strings; what is zero, false or empty is left out.
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
 * A key of etcd: PREFIX, '/', a letter for what it is, '/', and a name.
 *	d		the trace: changes with each transaction that deletes
 *	f/CLIENT	the fence of one client (outcome.c)
 *	k/KEY		a key of the store
 *	n/GROUP		the news of a group: their count is the key's version
 *	b/GROUP/TASK	the beats of one agent, by its first task
 *	s		the store's mark: that it is one, and its format
 */
struct wire_key {
	char bytes[ETCD_PREFIX_MAX + STORE_KEY_MAX + 64];
	size_t length;
};
/* name: NULL for what is one key (d, s). */
void wire_key_set(struct wire_key *key, const char *prefix, char kind, const char *name);
/* The first key behind all that begin with key. */
void wire_key_end(struct wire_key *key);
/* The key right behind it. */
void wire_key_next(struct wire_key *key);

/* The keys from first to before end (length 0: first only). */
struct wire_keys {
	struct wire_key first, end;
};
/* All that begin with the key that wire_key_set makes. */
void wire_keys_below(struct wire_keys *keys, const char *prefix, char kind, const char *name);

/*
 * Each adds to an object or an array that is still open, with a comma before it unless it is the
 * first there. This one adds text as it is, such as the beginning of a member or an element.
 */
void wire_add(struct text *text, const char *added);
/* A member, "NAME":VALUE. */
void wire_add_bytes(struct text *text, const char *name, const void *bytes, size_t length);
void wire_add_number(struct text *text, const char *name, int64_t number);
/* The members "key", and "range_end" where there is an end. */
void wire_add_key(struct text *text, const struct wire_key *key);
void wire_add_keys(struct text *text, const struct wire_keys *keys);
/* One of the compares: that the key is there, or absent. */
void wire_add_compare(struct text *text, const struct wire_key *key, bool present);
/* An operation that puts the key. */
void wire_add_put(struct text *text, const struct wire_key *key, const void *value, size_t length);
/*
 * Operations that count the keys of the store below each of these prefixes (NULL: none); root is
 * the store's own prefix.
 */
void wire_add_counts(struct text *text, const char *root, const char *const prefixes[STORE_COUNTS]);

/*
 * Every value of the store begins with the stamp of the transaction that put it: 8 hex digits of
 * the client, 7 of a number that counts up, and which branch it was. No two transactions have the
 * same, so that one whose answer was lost is found again.
 */
#define WIRE_STAMP 16
void wire_stamp(char stamp[WIRE_STAMP + 1], uint32_t client, uint32_t number, bool then);

/* ---- Answers ---- */

/* The member of that name; NULL: none, or it is of another type. */
struct json_object *wire_object(struct json_object *object, const char *name);
/* Element i of the array of that name; NULL. */
struct json_object *wire_element(struct json_object *object, const char *name, size_t i);
/* The answer to operation i of a transaction, by its kind: "response_range", "response_txn". */
struct json_object *wire_response(struct json_object *object, size_t i, const char *kind);
size_t wire_count(struct json_object *object, const char *name);
/* A number, or a string that is one, of 64 bits with or without a sign; absent: 0. */
int64_t wire_number(struct json_object *object, const char *name);
bool wire_flag(struct json_object *object, const char *name);
/* What wire_add_counts asked for, out of the responses of a transaction, from number `at` on. */
void wire_take_counts(struct json_object *object, size_t at,
	const char *const prefixes[STORE_COUNTS], struct store_answer *answer);
/* A text in base64, decoded, with a NUL behind its length bytes. NULL: it is none. Absent: "". */
char *wire_bytes(struct json_object *object, const char *name, size_t *length);

#endif
