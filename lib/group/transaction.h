/* SPDX-License-Identifier: MIT */
/*
 * One transaction on the store out of JSON values, built step by step. It owns its strings. Running
 * out of memory while building shows when it is run. A zeroed one is empty.
 */
#ifndef GROUP_TRANSACTION_H
#define GROUP_TRANSACTION_H

#include "base/json.h"
#include "store/store.h"

struct transaction {
	struct store_compare *compares;
	struct store_op *ops;
	char **owned;
	size_t compare_count, op_count, owned_count;
	bool failed;
};

/* A copy that lives as long as the transaction; never NULL. */
const char *transaction_own(struct transaction *t, const char *text);

/* key (owned) must be at this revision; 0: absent. */
void transaction_require(struct transaction *t, const char *key, store_revision revision);

/* Put value, which is taken over, at key (owned). */
void transaction_put(struct transaction *t, const char *key, struct json_object *value);

/* Both: put it where nothing is. */
void transaction_put_new(struct transaction *t, const char *key, struct json_object *value);

/* STATUS_NO: a requirement does not hold, and nothing was changed. May be run again. */
enum status transaction_run(const struct transaction *t, struct store *store, struct error *err);

void transaction_release(struct transaction *t);

#endif
