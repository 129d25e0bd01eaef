/* SPDX-License-Identifier: MIT */
#include "group/transaction.h"

#include <stdlib.h>
#include <string.h>

const char *transaction_own(struct transaction *t, const char *text)
{
	char **owned = realloc(t->owned, (t->owned_count + 1) * sizeof(*owned));
	char *copy = strdup(text);
	if (owned)
		t->owned = owned;
	if (!owned || !copy) {
		free(copy);
		t->failed = true;
		return "";
	}
	return t->owned[t->owned_count++] = copy;
}

void transaction_require(struct transaction *t, const char *key, store_revision revision)
{
	struct store_compare *grown = realloc(t->compares, (t->compare_count + 1) * sizeof(*grown));
	if (!grown) {
		t->failed = true;
		return;
	}
	t->compares = grown;
	t->compares[t->compare_count++] = (struct store_compare){key, revision};
}

void transaction_put(struct transaction *t, const char *key, struct json_object *value)
{
	struct store_op *grown = realloc(t->ops, (t->op_count + 1) * sizeof(*grown));
	if (grown) {
		const char *line = transaction_own(t, json_line(value));
		t->ops = grown;
		t->ops[t->op_count++] = (struct store_op){STORE_PUT, key, line, strlen(line)};
	}
	t->failed |= !grown;
	json_object_put(value);
}

void transaction_put_new(struct transaction *t, const char *key, struct json_object *value)
{
	transaction_require(t, key, 0);
	transaction_put(t, key, value);
}

enum status transaction_run(const struct transaction *t, struct store *store, struct error *err)
{
	struct store_answer answer = {0};
	struct store_request request = {.compares = t->compares,
		.compare_count = t->compare_count,
		.then = t->ops,
		.then_count = t->op_count};
	if (t->failed)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	enum status status = store_txn(store, &request, &answer, err);
	if (status == STATUS_OK && !answer.held)
		status = STATUS_NO;
	store_answer_release(&answer);
	return status;
}

void transaction_release(struct transaction *t)
{
	for (size_t i = 0; i < t->owned_count; i++)
		free(t->owned[i]);
	free(t->owned);
	free(t->compares);
	free(t->ops);
	*t = (struct transaction){0};
}
