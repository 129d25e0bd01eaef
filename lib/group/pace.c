/* SPDX-License-Identifier: MIT */
#include "group/pace.h"

#include <json-c/linkhash.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "group/keys.h"
#include "store/builder.h"

void pace_take(const struct json_object *json, struct progress_rules *rules)
{
	struct json_object *longest = NULL;
	if (!json_object_object_get_ex(json, "longest_ms", &longest) ||
		!json_object_is_type(longest, json_type_object))
		return;
	json_object_object_foreach(longest, name, value)
	{
		int64_t milliseconds;
		(void)value;
		struct progress_section *section =
			json_get_time(longest, name, &milliseconds) && milliseconds > 0
				? progress_section(rules, name, true)
				: NULL;
		if (section && milliseconds > section->longest)
			section->longest = milliseconds;
	}
}

void pace_put(const struct progress_rules *rules, struct json_object *json)
{
	struct json_object *longest = json_object_new_object();
	for (size_t i = 0; i < rules->count; i++)
		if (rules->sections[i].longest)
			json_put_signed(
				longest, rules->sections[i].name, rules->sections[i].longest);
	json_object_object_add(json, "longest_ms", longest);
}

static enum status read_pace(struct store *store, const char *key, struct progress_rules *rules,
	store_revision *revision, struct error *err)
{
	struct store_entry entry = {0};
	*revision = 0;
	enum status status = store_get(store, key, &entry, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	struct json_object *json = json_parse(entry.value, entry.length);
	pace_take(json, rules);
	*revision = entry.revision;
	json_object_put(json);
	store_entry_release(&entry);
	return STATUS_OK;
}

enum status pace_recall(
	struct store *store, const char *run, struct progress_rules *rules, struct error *err)
{
	char key[KEYS_MAX];
	store_revision revision;
	if (!rules->learn)
		return STATUS_OK;
	snprintf(key, sizeof(key), "run/%s/PACE", run);
	return read_pace(store, key, rules, &revision, err);
}

static bool knows_more(const struct progress_rules *ours, struct progress_rules *known)
{
	for (size_t i = 0; i < ours->count; i++) {
		const struct progress_section *section = &ours->sections[i], *other;
		if (!section->longest)
			continue;
		other = progress_section(known, section->name, false);
		if (!other || other->longest < section->longest)
			return true;
	}
	return false;
}

enum status pace_remember(
	struct store *store, const char *run, const struct progress_rules *rules, struct error *err)
{
	char key[KEYS_MAX];
	snprintf(key, sizeof(key), "run/%s/PACE", run);
	while (rules->learn) {
		struct transaction t = {0};
		struct progress_rules known = {0};
		store_revision revision;
		enum status status = read_pace(store, key, &known, &revision, err);
		if (status != STATUS_OK || !knows_more(rules, &known))
			return status;
		for (size_t i = 0; i < rules->count; i++) {
			const struct progress_section *ours = &rules->sections[i];
			struct progress_section *section =
				ours->longest ? progress_section(&known, ours->name, true) : NULL;
			if (section && ours->longest > section->longest)
				section->longest = ours->longest;
		}
		struct json_object *json = json_object_new_object();
		pace_put(&known, json);
		json_put_signed(json, "utc", clock_utc());
		transaction_require(&t, transaction_own(&t, key), revision);
		transaction_put(&t, transaction_own(&t, key), json);
		status = transaction_run(&t, store, err);
		transaction_release(&t);
		if (status != STATUS_NO)
			return status;
	}
	return STATUS_OK;
}
