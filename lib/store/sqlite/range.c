/* SPDX-License-Identifier: MIT */
/* All keys under a prefix: list them, find out whether one has changed, purge them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "store/sqlite/session.h"

/*
 * The WHERE clause of a range has the parameters ?1 (lower bound), ?2 (upper bound) and ?3 (since).
 * A prefix that ends with '/' is a directory, and does not contain itself.
 */
struct bounds {
	const char *lower;
	size_t lower_length;
	bool exclusive;
	char upper[STORE_KEY_MAX];
	size_t upper_length; /* 0: none */
};

static void find_bounds(const char *prefix, const char *after, struct bounds *bounds)
{
	size_t length = strlen(prefix);
	bounds->lower = prefix;
	bounds->lower_length = length;
	bounds->exclusive = length && prefix[length - 1] == '/';
	if (after && strcmp(after, prefix) >= 0) {
		bounds->lower = after;
		bounds->lower_length = strlen(after);
		bounds->exclusive = true;
	}
	/* The first key after all keys that begin with prefix. */
	bounds->upper_length = length;
	memcpy(bounds->upper, prefix, length);
	while (bounds->upper_length &&
		(unsigned char)bounds->upper[bounds->upper_length - 1] == 0xff)
		bounds->upper_length--;
	if (bounds->upper_length)
		bounds->upper[bounds->upper_length - 1]++;
}

/* Prepare the statement head ("SELECT ... FROM TABLE") with the WHERE clause and then tail. */
static sqlite3_stmt *prepare_for_bounds(struct session *session, const char *head,
	const struct bounds *bounds, store_revision since, const char *tail, struct error *err)
{
	char sql[1024];
	snprintf(sql, sizeof(sql), "%s WHERE key %s ?1%s%s %s", head,
		bounds->exclusive ? ">" : ">=", bounds->upper_length ? " AND key < ?2" : "",
		since ? " AND revision > ?3" : "", tail);
	sqlite3_stmt *statement = session_prepare(session, sql, err);
	if (!statement)
		return NULL;
	if (bounds->lower_length)
		sqlite3_bind_blob(
			statement, 1, bounds->lower, (int)bounds->lower_length, SQLITE_STATIC);
	else
		sqlite3_bind_zeroblob(statement, 1, 0);
	if (bounds->upper_length)
		sqlite3_bind_blob(
			statement, 2, bounds->upper, (int)bounds->upper_length, SQLITE_STATIC);
	if (since)
		sqlite3_bind_int64(statement, 3, since);
	return statement;
}

/* Add the row of the statement to the list. */
static void add_entry(struct store_answer *answer, size_t *capacity, sqlite3_stmt *statement)
{
	answer->entries = xgrow(answer->entries, answer->count, capacity, sizeof(*answer->entries));
	struct store_entry *entry = &answer->entries[answer->count++];
	*entry = (struct store_entry){0};
	entry->key = xstrndup(
		sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0));
	session_copy_value(entry, statement, 1, 2);
}

/* Search by revision: a prefix may have many keys, but few of all keys have changed lately. */
#define CHANGED_LATELY " INDEXED BY keys_revision"

/*
 * With since and skip, first choose the keys in the index alone, so that no row of a skipped key is
 * read. ?4 is the limit; ?5 and ?6, ?7 and ?8, ... are the bounds of what is skipped.
 */
static sqlite3_stmt *prepare_list(struct session *session, const struct store_range *range,
	const struct bounds *bounds, store_revision since, struct error *err)
{
	char tail[512] = "", key[STORE_KEY_MAX + 1];
	size_t used = 0, count = 0;
	for (; range->skip && range->skip[count]; count++)
		used += (size_t)snprintf(tail + used, sizeof(tail) - used,
			" AND NOT (key >= ?%zu AND key < ?%zu)", 5 + 2 * count, 6 + 2 * count);
	const char *head = !since  ? "SELECT key, value, revision FROM keys"
			   : count ? "SELECT key, value, revision FROM keys WHERE key IN "
				     "(SELECT key FROM keys" CHANGED_LATELY
				   : "SELECT key, value, revision FROM keys" CHANGED_LATELY;
	snprintf(tail + used, sizeof(tail) - used, "%s ORDER BY key LIMIT ?4",
		since && count ? ")" : "");
	sqlite3_stmt *statement = prepare_for_bounds(session, head, bounds, since, tail, err);
	for (size_t i = 0; statement && i < count; i++) {
		struct bounds skipped;
		snprintf(key, sizeof(key), "%s%s", range->prefix, range->skip[i]);
		find_bounds(key, NULL, &skipped);
		sqlite3_bind_blob(
			statement, 5 + 2 * (int)i, key, (int)strlen(key), SQLITE_TRANSIENT);
		sqlite3_bind_blob(statement, 6 + 2 * (int)i, skipped.upper,
			(int)skipped.upper_length, SQLITE_TRANSIENT);
	}
	if (statement)
		sqlite3_bind_int64(statement, 4, (int64_t)range->limit + 1);
	return statement;
}

/* The first number that the query head returns within the bounds; 0: no row. */
static enum status ask_number(struct session *session, const char *head,
	const struct bounds *bounds, store_revision since, int64_t *number, struct error *err)
{
	sqlite3_stmt *statement = prepare_for_bounds(session, head, bounds, since, "LIMIT 1", err);
	if (!statement)
		return err->status;
	enum status status = session_take_number(session, statement, number, err);
	sqlite3_finalize(statement);
	return status;
}

enum status range_count(struct session *session, const char *const prefixes[STORE_COUNTS],
	struct store_answer *answer, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < STORE_COUNTS && status == STATUS_OK; i++) {
		struct bounds bounds;
		int64_t number = 0;
		if (!prefixes[i])
			continue;
		find_bounds(prefixes[i], NULL, &bounds);
		status = ask_number(session, "SELECT count(*) FROM keys", &bounds, 0, &number, err);
		answer->counted[i] = (uint64_t)number;
	}
	return status;
}

enum status range_list(struct store *base, const struct store_range *range, int64_t deadline,
	struct store_answer *answer, struct error *err)
{
	struct session session;
	struct bounds bounds;
	size_t capacity = 0;
	int code;
	enum status status =
		session_begin(&session, (struct sqlite_store *)base, false, deadline, err);
	if (status != STATUS_OK)
		return status;
	find_bounds(range->prefix, range->after, &bounds);
	sqlite3_stmt *statement = prepare_list(&session, range, &bounds, range->since, err);
	if (!statement) {
		status = err->status;
	} else {
		while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
			if (answer->count == range->limit) {
				answer->more = true;
				code = SQLITE_DONE;
				break;
			}
			add_entry(answer, &capacity, statement);
		}
		if (code != SQLITE_DONE)
			status = session_failed(&session, "read", code, err);
		sqlite3_finalize(statement);
	}
	if (status == STATUS_OK)
		status = range_count(&session, range->count, answer, err);
	answer->revision = session.revision;
	return session_end(&session, status, &answer->known, err);
}

enum status range_changed(struct sqlite_store *store, struct range_change *change, int64_t deadline,
	struct error *err)
{
	struct session session;
	struct bounds bounds;
	bool known;
	int64_t found = 0;
	enum status status = session_begin(&session, store, false, deadline, err);
	if (status != STATUS_OK)
		return status;
	store_revision since = change->since;
	change->revision = session.revision;
	/* Deletions up to the floor may have been forgotten, also those under prefix. */
	change->changed = since < session.floor;
	if (session.revision > since && !change->changed) {
		find_bounds(change->prefix, NULL, &bounds);
		/* If since is 0, look for any key. */
		status = ask_number(&session,
			since ? "SELECT 1 FROM keys" CHANGED_LATELY : "SELECT 1 FROM keys", &bounds,
			since, &found, err);
		if (status == STATUS_OK && !found)
			status = ask_number(
				&session, "SELECT 1 FROM gone", &bounds, since, &found, err);
		change->changed = found;
	}
	return session_end(&session, status, &known, err);
}

static enum status delete_all(
	struct session *session, const char *head, const struct bounds *bounds, struct error *err)
{
	sqlite3_stmt *statement = prepare_for_bounds(session, head, bounds, 0, "", err);
	if (!statement)
		return err->status;
	enum status status = session_finish(session, statement, err);
	sqlite3_finalize(statement);
	return status;
}

enum status range_purge(struct store *base, const char *prefix,
	const struct store_compare *compares, size_t compare_count, int64_t deadline,
	struct error *err)
{
	struct session session;
	struct bounds bounds;
	bool hold = false, known;
	enum status status =
		session_begin(&session, (struct sqlite_store *)base, true, deadline, err);
	if (status != STATUS_OK)
		return status;
	status = session_compare(&session, compares, compare_count, &hold, err);
	if (status == STATUS_OK && hold) {
		find_bounds(prefix, NULL, &bounds);
		status = delete_all(&session, "DELETE FROM keys", &bounds, err);
		if (status == STATUS_OK)
			status = delete_all(&session, "DELETE FROM gone", &bounds, err);
	}
	status = session_end(&session, status, &known, err);
	return status == STATUS_OK && !hold ? STATUS_NO : status;
}
