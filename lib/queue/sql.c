/* SPDX-License-Identifier: MIT */
/* One transaction, and its statements. */
#include "queue/sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define FORMAT	   1
#define KEY_PREFIX "queues/%s/" /* of the keys that queue_wait waits for */

static const char schema[] =
#include "queue/schema.inc"
	;

/* ---- Statements ---- */

static bool failed(struct sql *s, int code)
{
	if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE)
		return false;
	if (s->code == SQLITE_OK)
		s->code = code;
	return true;
}

/* Prepare a statement, or find the one that was prepared before. */
static sqlite3_stmt *keep(struct sql *s, const char *text)
{
	for (size_t i = 0; i < s->kept_count; i++)
		if (s->kept[i].text == text)
			return s->kept[i].statement;
	if (s->kept_count == SQL_KEPT)
		abort();
	sqlite3_stmt *statement = NULL;
	if (failed(s, sqlite3_prepare_v2(s->database, text, -1, &statement, NULL)))
		return NULL;
	s->kept[s->kept_count].text = text;
	s->kept[s->kept_count++].statement = statement;
	return statement;
}

sqlite3_stmt *sql_begin(struct sql *s, const char *text, const struct sql_value *values)
{
	sqlite3_stmt *rows = s->code == SQLITE_OK ? keep(s, text) : NULL;
	if (!rows)
		return NULL;
	sqlite3_reset(rows);
	/* A statement that is not of one queue does not have ?1. */
	if (sqlite3_bind_parameter_count(rows) > 0)
		failed(s, sqlite3_bind_int64(rows, 1, s->queue));
	for (int i = 0; values[i].kind != SQL_END; i++)
		failed(s, values[i].kind == SQL_NUMBER
				  ? sqlite3_bind_int64(rows, i + 2, values[i].number)
				  : sqlite3_bind_text(
					    rows, i + 2, values[i].text, -1, SQLITE_STATIC));
	return rows;
}

bool sql_next(struct sql *s, sqlite3_stmt *rows)
{
	if (!rows || s->code != SQLITE_OK)
		return false;
	int code = sqlite3_step(rows);
	if (code == SQLITE_ROW)
		return true;
	failed(s, code);
	sqlite3_reset(rows);
	return false;
}

int64_t sql_run(struct sql *s, const char *text, const struct sql_value *values)
{
	sqlite3_stmt *statement = sql_begin(s, text, values);
	if (!statement)
		return 0;
	while (sql_next(s, statement))
		;
	return s->code == SQLITE_OK ? sqlite3_changes(s->database) : 0;
}

int64_t sql_first(struct sql *s, const char *text, const struct sql_value *values)
{
	sqlite3_stmt *rows = sql_begin(s, text, values);
	int64_t number = 0;
	if (sql_next(s, rows)) {
		number = sqlite3_column_int64(rows, 0);
		sqlite3_reset(rows);
	}
	return number;
}

void sql_ids_add(struct parse_numbers *ids, uint64_t id)
{
	ids->items = xgrow(ids->items, ids->count, &ids->room, sizeof(*ids->items));
	ids->items[ids->count++] = id;
}

void sql_ids_read(struct sql *s, sqlite3_stmt *rows, struct parse_numbers *ids)
{
	while (sql_next(s, rows))
		sql_ids_add(ids, sql_unsigned(rows, 0));
}

const char *sql_text(sqlite3_stmt *rows, int column)
{
	const char *text = (const char *)sqlite3_column_text(rows, column);
	return text ? text : "";
}

uint64_t sql_unsigned(sqlite3_stmt *rows, int column)
{
	int64_t number = sqlite3_column_int64(rows, column);
	return number > 0 ? (uint64_t)number : 0;
}

void sql_copy(char *to, size_t size, sqlite3_stmt *rows, int column)
{
	snprintf(to, size, "%s", sql_text(rows, column));
}

/* ---- The transaction ---- */

struct call {
	struct queue *queue;
	bool write;
	sql_operation *operation;
	void *context;
	struct error *err;
	enum status status;
	bool woken[QUEUE_ANY];
	char keys[QUEUE_ANY][160];
	char guard[160]; /* a new queue: a key of which 0.1.0 says that it cannot read it */
	struct store_operation store;
};

/* Asked without a statement, because preparing one takes longer. */
static bool has_tables(struct sql *s)
{
	int code = sqlite3_table_column_metadata(
		s->database, NULL, "setting", NULL, NULL, NULL, NULL, NULL, NULL);
	return code != SQLITE_ERROR && !failed(s, code);
}

/* Whether version 0.1.0 has left keys of a queue of this name. */
static bool is_old(struct sql *s, const char *name)
{
	return sql_number(s,
		"SELECT 1 FROM keys WHERE key > CAST('queue/'||?2||'/' AS BLOB)"
		" AND key < CAST('queue/'||?2||'0' AS BLOB)",
		SQL(name));
}

/* Find the queue; with call->write make it. STATUS_NO: there is none. */
static enum status find_queue(struct sql *s, struct call *call)
{
	static const char find[] =
		"SELECT number, format, next, over, failure FROM queue WHERE name=?2";
	const char *name = call->queue->name;
	bool tables = has_tables(s);
	sqlite3_stmt *rows = tables ? sql_rows(s, find, SQL(name)) : NULL;
	if (sql_next(s, rows)) {
		int64_t format = sqlite3_column_int64(rows, 1);
		s->queue = sqlite3_column_int64(rows, 0);
		s->now = (struct sql_numbers){
			sql_unsigned(rows, 2), sql_unsigned(rows, 3), sql_unsigned(rows, 4)};
		sqlite3_reset(rows);
		return format <= FORMAT ? STATUS_OK
					: error_set(call->err, STATUS_DAMAGED,
						  "queue %s in store %s is of a newer version of "
						  "preempt-tools: not used",
						  name, store_where(call->queue->store));
	}
	if (is_old(s, name))
		return error_set(call->err, STATUS_DAMAGED,
			"queue %s in store %s was made by preempt-tools 0.1.0, the last version "
			"that reads it: finish it with that version, or use another --queue",
			name, store_where(call->queue->store));
	if (!call->write || s->code != SQLITE_OK)
		return STATUS_NO;
	if (!tables)
		failed(s, sqlite3_exec(s->database, schema, NULL, NULL, NULL));
	sql_do(s, "INSERT INTO queue(name, format) VALUES(?2, ?3)", SQL(name), SQL(FORMAT));
	s->queue = sqlite3_last_insert_rowid(s->database);
	s->now.next = 1;
	call->store.changed[QUEUE_ANY] = call->guard;
	return STATUS_OK;
}

static int run(struct sqlite3 *database, void *context)
{
	struct call *call = context;
	struct sql s = {.database = database};
	failed(&s, sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL));
	call->status = find_queue(&s, call);
	struct sql_numbers before = s.now;
	if (call->status == STATUS_OK)
		call->status = call->operation(&s, call->context, call->err);
	if (memcmp(&before, &s.now, sizeof(before)) != 0)
		sql_do(&s,
			"UPDATE queue SET next=?2, over=?3, failure=nullif(?4, 0) WHERE number=?1",
			SQL(s.now.next), SQL(s.now.over), SQL(s.now.failure));
	for (size_t i = 0; i < s.kept_count; i++)
		sqlite3_finalize(s.kept[i].statement);
	for (size_t topic = 0; topic < QUEUE_ANY; topic++)
		call->store.changed[topic] = s.woken[topic] ? call->keys[topic] : NULL;
	return s.code;
}

enum status sql_call(
	struct queue *queue, bool write, sql_operation *operation, void *context, struct error *err)
{
	struct error unasked;
	struct call call = {.queue = queue,
		.write = write,
		.operation = operation,
		.context = context,
		.err = err ? err : &unasked};
	call.store = (struct store_operation){.run = run, .context = &call, .write = write};
	snprintf(call.keys[QUEUE_WORK], sizeof(call.keys[0]), KEY_PREFIX "work", queue->name);
	snprintf(call.keys[QUEUE_OVER], sizeof(call.keys[0]), KEY_PREFIX "over", queue->name);
	snprintf(call.guard, sizeof(call.guard), "queue/%s/count/@next", queue->name);
	enum status status = store_run(queue->store, &call.store, call.err);
	if (status == STATUS_OK)
		queue->revision = call.store.revision;
	return status == STATUS_OK ? call.status : status;
}

enum status queue_wait(struct queue *queue, enum queue_topic topic, store_revision *since,
	int64_t deadline, int wake, struct error *err)
{
	static const char *const names[] = {"work", "over", ""};
	char prefix[160];
	snprintf(prefix, sizeof(prefix), KEY_PREFIX "%s", queue->name, names[topic]);
	return store_wait(queue->store, prefix, since, deadline, wake, err);
}
