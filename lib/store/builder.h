/* SPDX-License-Identifier: MIT */
/*
 * One transaction on the store, built step by step. It owns its strings. Running out of memory
 * while building shows when it is run. A zeroed one is empty.
 */
#ifndef STORE_BUILDER_H
#define STORE_BUILDER_H

#include "base/json.h"
#include "store/store.h"

struct transaction {
	struct store_compare *compares;
	struct store_op *ops, *otherwise;
	void **owned;
	size_t compare_count, op_count, otherwise_count, owned_count;
	const char *group;		 /* owned; whose news are read along, store.h; NULL: none */
	bool news;			 /* it is news for them */
	const char *count[STORE_COUNTS]; /* owned; the keys below these are counted, store.h */
	bool failed;
};

/* A copy that lives as long as the transaction; never NULL. */
const char *transaction_own(struct transaction *t, const char *text);

/* key (owned) must be at this revision; 0: absent. */
void transaction_require(struct transaction *t, const char *key, store_revision revision);
/* The same, and where any requirement does not hold, what is at key is read. */
void transaction_require_told(struct transaction *t, const char *key, store_revision revision);

/* Put value, which is taken over, at key (owned). */
void transaction_put(struct transaction *t, const char *key, struct json_object *value);
/* Put these bytes (not copied) at key (owned). */
void transaction_put_bytes(
	struct transaction *t, const char *key, const void *bytes, size_t length);
/* Both: put it where nothing is. */
void transaction_put_new(struct transaction *t, const char *key, struct json_object *value);
/* Delete what is at key (owned). */
void transaction_delete(struct transaction *t, const char *key);
/* Read what is at key (owned): the next of answer->entries. */
void transaction_get(struct transaction *t, const char *key);

/* All that other requires and does, too. It must live as long as t. */
void transaction_add(struct transaction *t, const struct transaction *other);

/* STATUS_NO: a requirement does not hold, and nothing was changed. May be run again. */
enum status transaction_run(const struct transaction *t, struct store *store, struct error *err);
/*
 * The same, with what was read: answer is to be released, and its held says whether the
 * requirements hold; its known is set also where this fails (store_txn).
 */
enum status transaction_ask(const struct transaction *t, struct store *store,
	struct store_answer *answer, struct error *err);

void transaction_release(struct transaction *t);

#endif
