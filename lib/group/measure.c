/* SPDX-License-Identifier: MIT */
#include "group/measure.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "group/keys.h"
#include "store/builder.h"

static enum status read_measure(struct store *store, const char *run, int64_t *longest_save,
	store_revision *revision, struct error *err)
{
	char key[KEYS_MAX];
	struct store_entry entry = {0};
	snprintf(key, sizeof(key), "run/%s/MEASURE", run);
	*longest_save = 0;
	*revision = 0;
	enum status status = store_get(store, key, &entry, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	struct json_object *json = json_parse(entry.value, entry.length);
	/* Unreadable: as if nothing were known. */
	(void)json_get_time(json, "save_ms", longest_save);
	*revision = entry.revision;
	json_object_put(json);
	store_entry_release(&entry);
	return STATUS_OK;
}

enum status measure_recall(
	struct store *store, const char *run, int64_t *longest_save, struct error *err)
{
	store_revision revision;
	return read_measure(store, run, longest_save, &revision, err);
}

enum status measure_remember(
	struct store *store, const char *run, int64_t longest_save, struct error *err)
{
	char key[KEYS_MAX];
	for (;;) {
		struct transaction t = {0};
		int64_t known;
		store_revision revision;
		enum status status = read_measure(store, run, &known, &revision, err);
		if (status != STATUS_OK || known >= longest_save)
			return status;
		struct json_object *json = json_object_new_object();
		json_put_signed(json, "save_ms", longest_save);
		json_put_signed(json, "utc", clock_utc());
		snprintf(key, sizeof(key), "run/%s/MEASURE", run);
		transaction_require(&t, transaction_own(&t, key), revision);
		transaction_put(&t, transaction_own(&t, key), json);
		status = transaction_run(&t, store, err);
		transaction_release(&t);
		if (status != STATUS_NO)
			return status;
	}
}
