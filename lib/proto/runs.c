/* SPDX-License-Identifier: MIT */
#include "proto/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "proto/keys.h"

#define PREFIX "run/"
#define BEHIND "0" /* '0' comes after '/': "NAME0" is behind all keys "NAME/..." */

/* Copy what is in key between prefix and the next '/'. False: there is no '/', or no room. */
static bool part_after(const char *key, const char *prefix, char *part, size_t size)
{
	const char *from = key + strlen(prefix);
	size_t length = strcspn(from, "/");
	if (from[length] != '/' || length >= size)
		return false;
	memcpy(part, from, length);
	part[length] = '\0';
	return true;
}

/*
 * Find the directory under prefix that follows `after` (NULL: the first one) without reading the
 * keys in it. Keys directly under prefix are skipped.
 */
static enum status next_directory(struct store *store, const char *prefix, const char *after,
	char *name, size_t size, struct error *err)
{
	char from[KEYS_MAX + 2] = "";
	if (after)
		snprintf(from, sizeof(from), "%s%s" BEHIND, prefix, after);
	for (;;) {
		struct store_range range = {
			.prefix = prefix, .after = *from ? from : NULL, .limit = 1};
		struct store_answer answer = {0};
		enum status status = store_list(store, &range, &answer, err);
		if (status != STATUS_OK)
			return status;
		bool any = answer.count > 0;
		bool found = any && part_after(answer.entries[0].key, prefix, name, size);
		if (any)
			snprintf(from, sizeof(from), "%s", answer.entries[0].key);
		store_answer_release(&answer);
		if (!any)
			return STATUS_NO;
		if (found)
			return STATUS_OK;
	}
}

/* Fill in the fields that the keys of the newest attempt give. */
static enum status read_attempt(
	struct store *store, const char *prefix, struct run_summary *run, struct error *err)
{
	struct store_range range = {.prefix = prefix};
	struct store_answer answer = {0};
	enum status status = store_list(store, &range, &answer, err);
	if (status != STATUS_OK)
		return status;
	strcpy(run->state, "open");
	for (size_t i = 0; i < answer.count; i++) {
		const struct store_entry *entry = &answer.entries[i];
		struct json_object *value = json_parse(entry->value, entry->length);
		int64_t utc;
		if (json_get_time(value, "utc", &utc) && utc > run->changed)
			run->changed = utc;
		if (!strcmp(entry->key + strlen(prefix), "CLOSED")) {
			run->closed = true;
			run->closed_revision = entry->revision;
			/* Of a closed attempt only this time counts. */
			if (!json_get_time(value, "utc", &run->changed))
				run->changed = 0;
			if (!json_copy_text(value, "state", run->state, sizeof(run->state)))
				strcpy(run->state, "closed");
			json_object_put(value);
			break;
		}
		json_object_put(value);
	}
	store_answer_release(&answer);
	return STATUS_OK;
}

enum status runs_next_name(
	struct store *store, const char *after, char name[129], struct error *err)
{
	char found[129];
	enum status status;
	/* Skip a name that is not a valid run name: these programs did not write it. */
	do {
		status = next_directory(store, PREFIX, after, found, sizeof(found), err);
		if (status != STATUS_OK)
			return status;
		strcpy(name, found);
		after = name;
	} while (parse_name(name, "run", NULL) != STATUS_OK);
	return STATUS_OK;
}

enum status runs_next(
	struct store *store, const char *after, struct run_summary *run, struct error *err)
{
	struct run_summary found = {0};
	struct attempt newest;
	char prefix[KEYS_MAX], attempt[32];
	uint64_t number;
	enum status status = runs_next_name(store, after, found.name, err);
	if (status != STATUS_OK)
		return status;
	snprintf(prefix, sizeof(prefix), PREFIX "%s/", found.name);
	/* Look for the largest number: key order is not that of numbers beyond six digits. */
	const char *before = NULL;
	while ((status = next_directory(store, prefix, before, attempt, sizeof(attempt), err)) ==
		STATUS_OK) {
		before = attempt;
		if (parse_unsigned(attempt, 1, UINT64_MAX, &number, "attempt", NULL) != STATUS_OK)
			continue;
		found.attempts++;
		if (number > found.last)
			found.last = number;
	}
	if (status != STATUS_NO)
		return status;
	attempt_name(&newest, found.name, found.last, 0);
	status = read_attempt(store, newest.prefix, &found, err);
	if (status == STATUS_OK)
		*run = found;
	return status;
}

enum status runs_forget(struct store *store, const struct run_summary *run, struct error *err)
{
	struct attempt attempt;
	char prefix[KEYS_MAX], closed[KEYS_MAX], next[KEYS_MAX], group[KEYS_GROUP];
	snprintf(prefix, sizeof(prefix), PREFIX "%s/", run->name);
	attempt_name(&attempt, run->name, run->last, 0);
	keys_of(&attempt, closed, "CLOSED");
	attempt_name(&attempt, run->name, run->last + 1, 0);
	keys_of(&attempt, next, "OPEN");
	/*
	 * Remove the beats of these attempts only, because a new attempt may be preparing its own;
	 * and before the keys, because after that a new attempt may get one of these numbers.
	 */
	for (uint64_t number = 1; number <= run->last; number++) {
		attempt_name(&attempt, run->name, number, 0);
		keys_group(&attempt, group);
		enum status status = store_beats_remove(store, group, err);
		if (status != STATUS_OK)
			return status;
	}
	struct store_compare compares[] = {{closed, run->closed_revision}, {next, 0}};
	return store_purge(store, prefix, compares, 2, err);
}
