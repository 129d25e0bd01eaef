/* SPDX-License-Identifier: MIT */
#include "proto/remembered.h"

#include <json-c/linkhash.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "proto/keys.h"

void remembered_read_pace(const struct json_object *json, struct progress_rules *rules)
{
	struct json_object *longest = json_member(json, "longest_ms", json_type_object);
	if (!longest)
		return;
	json_object_object_foreach(longest, name, value)
	{
		int64_t milliseconds;
		(void)value;
		struct progress_section *section =
			json_get_time(longest, name, &milliseconds) && milliseconds > 0
				? progress_section(rules, name)
				: NULL;
		if (section && milliseconds > section->longest)
			section->longest = milliseconds;
	}
}

void remembered_write_pace(const struct progress_rules *rules, struct json_object *json)
{
	struct json_object *longest = json_object_new_object();
	for (size_t i = 0; i < rules->count; i++)
		if (rules->sections[i].longest)
			json_put_signed(
				longest, rules->sections[i].name, rules->sections[i].longest);
	json_object_object_add(json, "longest_ms", longest);
}

static const char *own_key(struct transaction *t, const char *run, const char *name)
{
	char key[KEYS_MAX];
	snprintf(key, sizeof(key), "run/%s/%s", run, name);
	return transaction_own(t, key);
}

enum status remembered_read(
	struct store *store, const char *run, struct remembered *known, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	*known = (struct remembered){0};
	transaction_get(&t, own_key(&t, run, "MEASURE"));
	transaction_get(&t, own_key(&t, run, "PACE"));
	enum status status = transaction_ask(&t, store, &answer, err);
	transaction_release(&t);
	if (status != STATUS_OK)
		return status;
	struct json_object *json = json_parse(answer.entries[0].value, answer.entries[0].length);
	(void)json_get_time(json, "save_ms", &known->longest_save);
	known->measure_revision = answer.entries[0].revision;
	json_object_put(json);
	json = json_parse(answer.entries[1].value, answer.entries[1].length);
	remembered_read_pace(json, &known->pace);
	known->pace_revision = answer.entries[1].revision;
	json_object_put(json);
	store_answer_release(&answer);
	return STATUS_OK;
}

/* Put json, with the time added, at key, which must still have this revision. */
static void put(
	struct transaction *t, const char *key, store_revision revision, struct json_object *json)
{
	json_put_signed(json, "utc", clock_utc());
	transaction_require(t, key, revision);
	transaction_put(t, key, json);
}

void remembered_put(const struct remembered *known, const char *run, int64_t longest_save,
	const struct progress_rules *learned, struct transaction *t)
{
	struct progress_rules pace = known->pace;
	struct json_object *json;
	if (longest_save > known->longest_save) {
		json = json_object_new_object();
		json_put_signed(json, "save_ms", longest_save);
		put(t, own_key(t, run, "MEASURE"), known->measure_revision, json);
	}
	if (learned && progress_merge(&pace, learned)) {
		json = json_object_new_object();
		remembered_write_pace(&pace, json);
		put(t, own_key(t, run, "PACE"), known->pace_revision, json);
	}
}

enum status remembered_add(struct store *store, const char *run, int64_t longest_save,
	const struct progress_rules *learned, struct error *err)
{
	/* Repeat as long as another process changes a key between reading and put (STATUS_NO). */
	for (;;) {
		struct transaction t = {0};
		struct remembered known;
		enum status status = remembered_read(store, run, &known, err);
		if (status != STATUS_OK)
			return status;
		remembered_put(&known, run, longest_save, learned, &t);
		if (t.op_count)
			status = transaction_run(&t, store, err);
		transaction_release(&t);
		if (status != STATUS_NO)
			return status;
	}
}
