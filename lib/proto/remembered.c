/* SPDX-License-Identifier: MIT */
#include "proto/remembered.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "proto/keys.h"

static const char *measure_key(struct transaction *t, const char *run)
{
	char key[KEYS_MAX];
	snprintf(key, sizeof(key), "run/%s/MEASURE", run);
	return transaction_own(t, key);
}

enum status remembered_read(
	struct store *store, const char *run, struct remembered *known, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	*known = (struct remembered){0};
	transaction_get(&t, measure_key(&t, run));
	enum status status = transaction_ask(&t, store, &answer, err);
	transaction_release(&t);
	if (status != STATUS_OK)
		return status;
	struct json_object *json = json_parse(answer.entries[0].value, answer.entries[0].length);
	(void)json_get_time(json, "save_ms", &known->longest_save);
	known->revision = answer.entries[0].revision;
	json_object_put(json);
	store_answer_release(&answer);
	return STATUS_OK;
}

void remembered_put(const struct remembered *known, const char *run, int64_t longest_save,
	struct transaction *t)
{
	if (longest_save <= known->longest_save)
		return;
	struct json_object *json = json_object_new_object();
	const char *key = measure_key(t, run);
	json_put_signed(json, "save_ms", longest_save);
	json_put_signed(json, "utc", clock_utc());
	transaction_require(t, key, known->revision);
	transaction_put(t, key, json);
}

enum status remembered_add(
	struct store *store, const char *run, int64_t longest_save, struct error *err)
{
	/* Repeat as long as another process changes the key between reading and put (STATUS_NO). */
	for (;;) {
		struct transaction t = {0};
		struct remembered known;
		enum status status = remembered_read(store, run, &known, err);
		if (status != STATUS_OK)
			return status;
		remembered_put(&known, run, longest_save, &t);
		if (t.op_count)
			status = transaction_run(&t, store, err);
		transaction_release(&t);
		if (status != STATUS_NO)
			return status;
	}
}
