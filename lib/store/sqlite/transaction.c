/* SPDX-License-Identifier: MIT */
/* store_txn and store_run on SQLite. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/sqlite/session.h"

static enum status compare_one(struct session *session, const struct store_compare *compare,
	bool *holds, struct error *err)
{
	sqlite3_stmt *statement = session_keep(session, STATEMENT_COMPARE, compare->key, err);
	if (!statement)
		return err->status;
	store_revision revision = 0;
	enum status status = session_take_number(session, statement, &revision, err);
	if (status == STATUS_OK)
		*holds = revision == compare->revision;
	return status;
}

enum status session_compare(struct session *session, const struct store_compare *compares,
	size_t count, bool *hold, struct error *err)
{
	enum status status = STATUS_OK;
	*hold = true;
	for (size_t i = 0; i < count && *hold && status == STATUS_OK; i++)
		status = compare_one(session, &compares[i], hold, err);
	return status;
}

void session_copy_value(struct store_entry *entry, sqlite3_stmt *statement, int value, int revision)
{
	size_t length = (size_t)sqlite3_column_bytes(statement, value);
	entry->value = xmalloc(length + 1);
	if (length)
		memcpy(entry->value, sqlite3_column_blob(statement, value), length);
	entry->value[length] = '\0';
	entry->length = length;
	entry->revision = sqlite3_column_int64(statement, revision);
}

static enum status get_one(
	struct session *session, const char *key, struct store_entry *entry, struct error *err)
{
	sqlite3_stmt *statement = session_keep(session, STATEMENT_GET, key, err);
	if (!statement)
		return err->status;
	int code = sqlite3_step(statement);
	enum status status = STATUS_OK;
	entry->key = xstrdup(key);
	if (code == SQLITE_ROW)
		session_copy_value(entry, statement, 0, 1);
	else if (code != SQLITE_DONE)
		status = session_failed(session, "read", code, err);
	sqlite3_reset(statement);
	return status;
}

static enum status put_one(struct session *session, const struct store_op *op, struct error *err)
{
	sqlite3_stmt *statement = session_keep(session, STATEMENT_PUT, op->key, err);
	if (!statement)
		return err->status;
	if (op->length)
		sqlite3_bind_blob(statement, 2, op->value, (int)op->length, SQLITE_STATIC);
	else
		sqlite3_bind_zeroblob(statement, 2, 0);
	sqlite3_bind_int64(statement, 3, session->revision + 1);
	session->changed = true;
	return session_finish(session, statement, err);
}

static enum status delete_one(struct session *session, const char *key, struct error *err)
{
	sqlite3_stmt *statement = session_keep(session, STATEMENT_DELETE, key, err);
	if (!statement)
		return err->status;
	enum status status = session_finish(session, statement, err);
	if (status != STATUS_OK || sqlite3_changes(session->database) == 0)
		return status;
	session->changed = true;
	session->deleted++;
	return compact_bury(session, key, err);
}

static enum status run_branch(struct session *session, const struct store_op *ops, size_t count,
	struct store_answer *answer, struct error *err)
{
	enum status status = STATUS_OK;
	if (count)
		answer->entries = xcalloc(count, sizeof(*answer->entries));
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		switch (ops[i].kind) {
		case STORE_PUT: status = put_one(session, &ops[i], err); break;
		case STORE_DELETE: status = delete_one(session, ops[i].key, err); break;
		case STORE_GET:
			status = get_one(
				session, ops[i].key, &answer->entries[answer->count++], err);
			break;
		}
	}
	session->revision += session->changed;
	session->changed = false;
	answer->revision = session->revision;
	return status;
}

/*
 * Run the request, and increment session->revision if it has changed something. A session that
 * reads becomes one that may write if it needs that.
 */
static enum status run_one(struct session *session, const struct store_request *request,
	struct store_answer *answer, struct error *err)
{
	for (;;) {
		enum status status = session_compare(
			session, request->compares, request->compare_count, &answer->held, err);
		if (status != STATUS_OK)
			return status;
		const struct store_op *ops = answer->held ? request->then : request->otherwise;
		size_t count = answer->held ? request->then_count : request->otherwise_count;
		if (session->write || !store_ops_change(ops, count)) {
			store_revision before = session->revision;
			status = run_branch(session, ops, count, answer, err);
			if (status == STATUS_OK && request->group)
				answer->news = news_count(session->store, request->group,
					request->news && session->revision > before);
			if (status == STATUS_OK)
				status = range_count(session, request->count, answer, err);
			return status;
		}
		status = session_upgrade(session, err);
		if (status != STATUS_OK)
			return status;
	}
}

static enum status write_meta(struct session *session, struct error *err)
{
	enum status status = STATUS_OK;
	if (session->revision == session->began)
		return STATUS_OK;
	if (session->deleted)
		status = compact_some(session, err);
	return status == STATUS_OK
		       ? session_write_meta(session, session->revision, session->floor, err)
		       : status;
}

/*
 * A request with compares begins as a reader, and becomes a writer if it has to: of many processes
 * that claim, all except the winner only read, and take fewer locks. *dropped: it failed, and a new
 * opening may help.
 */
static enum status run(struct sqlite_store *store, const struct store_request *request,
	int64_t deadline, struct store_answer *answer, bool *dropped, struct error *err)
{
	struct session session;
	bool write = store_request_changes(request) && !request->compare_count;
	answer->known = true;
	enum status status = session_begin(&session, store, write, deadline, err);
	if (status == STATUS_OK) {
		status = run_one(&session, request, answer, err);
		if (status == STATUS_OK)
			status = write_meta(&session, err);
		status = session_end(&session, status, &answer->known, err);
	}
	*dropped = session.dropped;
	return status;
}

enum status session_run(struct store *base, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *err)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	bool dropped;
	enum status status = run(store, request, deadline, answer, &dropped, err);
	if (status == STATUS_OK || !answer->known || !dropped || clock_now() >= deadline)
		return status;
	/* Nothing was changed. Try once more, with the files opened again. */
	store_answer_release(answer);
	return run(store, request, deadline, answer, &dropped, err);
}

/* ---- Operations ---- */

static enum status operate(
	struct session *session, struct store_operation *operation, struct error *err)
{
	int before = sqlite3_total_changes(session->database);
	for (size_t i = 0; i < STORE_OPERATION_KEYS; i++)
		operation->changed[i] = NULL;
	int code = operation->run(session->database, operation->context);
	if (code != SQLITE_OK)
		return session_failed(session, operation->write ? "change" : "read", code, err);
	enum status status = STATUS_OK;
	for (size_t i = 0; i < STORE_OPERATION_KEYS && status == STATUS_OK; i++) {
		const struct store_op put = {.kind = STORE_PUT, .key = operation->changed[i]};
		if (put.key)
			status = put_one(session, &put, err);
	}
	session->changed = false;
	session->revision += sqlite3_total_changes(session->database) != before;
	operation->revision = session->revision;
	return status == STATUS_OK ? write_meta(session, err) : status;
}

enum status session_operate(
	struct store *base, struct store_operation *operation, int64_t deadline, struct error *err)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	for (bool again = false;; again = true) {
		struct session session;
		bool known;
		enum status status =
			session_begin(&session, store, operation->write, deadline, err);
		if (status == STATUS_OK) {
			status = operate(&session, operation, err);
			status = session_end(&session, status, &known, err);
		}
		/* It may be run again, and new descriptors may help. */
		if (status == STATUS_OK || again || !session.dropped || clock_now() >= deadline)
			return status;
	}
}
