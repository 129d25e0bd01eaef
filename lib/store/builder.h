/* SPDX-License-Identifier: MIT */
/*
 * One transaction on the store, built step by step. A zeroed struct is an empty transaction.
 * Strings that are called "owned" are not copied, and must stay valid until it has run:
 * transaction_own makes a copy that lives as long as the transaction.
 */
#ifndef STORE_BUILDER_H
#define STORE_BUILDER_H

#include "base/json.h"
#include "store/store.h"

struct transaction {
	struct store_compare *compares;
	struct store_op *ops;
	void **owned;
	size_t compare_count, op_count, owned_count;
	const char *group;		 /* owned; as in struct store_request */
	bool news;			 /* as there */
	const char *count[STORE_COUNTS]; /* owned; as there */
};

/* Copy text; the copy lives as long as the transaction. Never NULL. */
const char *transaction_own(struct transaction *t, const char *text);

/* Require that the last change of key (owned) is this revision; 0: the key is absent. */
void transaction_require(struct transaction *t, const char *key, store_revision revision);

/* Put value, which the transaction then owns, at key (owned). */
void transaction_put(struct transaction *t, const char *key, struct json_object *value);
/* Require that key is absent, and put value there. */
void transaction_put_new(struct transaction *t, const char *key, struct json_object *value);
/* Delete key (owned). */
void transaction_delete(struct transaction *t, const char *key);
/* Read key (owned) into the next of answer->entries. */
void transaction_get(struct transaction *t, const char *key);

/* Add all that other does and requires, its group and counts too; it must live as long as t. */
void transaction_add(struct transaction *t, const struct transaction *other);

/* STATUS_NO: a requirement does not hold, and nothing was changed. May be called again. */
enum status transaction_run(const struct transaction *t, struct store *store, struct error *err);
/*
 * Run it as store_txn does: answer->held says whether the requirements hold. Release the answer.
 */
enum status transaction_ask(const struct transaction *t, struct store *store,
	struct store_answer *answer, struct error *err);

void transaction_release(struct transaction *t);

#endif
