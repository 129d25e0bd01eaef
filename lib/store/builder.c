/* SPDX-License-Identifier: MIT */
#include "store/builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* Make room for one more element in an array whose capacity is a power of two, at least 8. */
static void *one_more(void *array, size_t count, size_t size)
{
	if (count & (count - 1) || (count && count < 8))
		return array;
	return xrealloc(array, count ? 2 * count : 8, size);
}

const char *transaction_own(struct transaction *t, const char *text)
{
	t->owned = one_more(t->owned, t->owned_count, sizeof(*t->owned));
	return t->owned[t->owned_count++] = xstrdup(text);
}

void transaction_require(struct transaction *t, const char *key, store_revision revision)
{
	t->compares = one_more(t->compares, t->compare_count, sizeof(*t->compares));
	t->compares[t->compare_count++] = (struct store_compare){key, revision};
}

static void add(struct transaction *t, struct store_op op)
{
	t->ops = one_more(t->ops, t->op_count, sizeof(*t->ops));
	t->ops[t->op_count++] = op;
}

void transaction_put(struct transaction *t, const char *key, struct json_object *value)
{
	const char *line = transaction_own(t, json_line(value));
	add(t, (struct store_op){STORE_PUT, key, line, strlen(line)});
	json_object_put(value);
}

void transaction_put_new(struct transaction *t, const char *key, struct json_object *value)
{
	transaction_require(t, key, 0);
	transaction_put(t, key, value);
}

void transaction_delete(struct transaction *t, const char *key)
{
	add(t, (struct store_op){.kind = STORE_DELETE, .key = key});
}

void transaction_get(struct transaction *t, const char *key)
{
	add(t, (struct store_op){.kind = STORE_GET, .key = key});
}

void transaction_add(struct transaction *t, const struct transaction *other)
{
	for (size_t i = 0; i < other->compare_count; i++)
		transaction_require(t, other->compares[i].key, other->compares[i].revision);
	for (size_t i = 0; i < other->op_count; i++)
		add(t, other->ops[i]);
	if (other->group)
		t->group = other->group;
	for (size_t i = 0; i < STORE_COUNTS; i++)
		if (other->count[i])
			t->count[i] = other->count[i];
	t->news |= other->news;
}

enum status transaction_ask(const struct transaction *t, struct store *store,
	struct store_answer *answer, struct error *err)
{
	struct store_request request = {.compares = t->compares,
		.compare_count = t->compare_count,
		.then = t->ops,
		.then_count = t->op_count,
		.group = t->group,
		.news = t->news};
	memcpy(request.count, t->count, sizeof(request.count));
	*answer = (struct store_answer){.known = true};
	return store_txn(store, &request, answer, err);
}

enum status transaction_run(const struct transaction *t, struct store *store, struct error *err)
{
	struct store_answer answer;
	enum status status = transaction_ask(t, store, &answer, err);
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
