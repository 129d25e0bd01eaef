/* SPDX-License-Identifier: MIT */
/* Workers come and leave, take commands, hand in results, and are declared dead. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/rules.h"
#include "queue/spec.h"
#include "queue/sql.h"

/* ---- The list of workers ---- */

static enum status enter(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct queue_worker *worker = context;
	bool given = worker->index != UINT64_MAX;
	worker->number = (uint64_t)sql_number(s,
		"SELECT coalesce((SELECT number FROM worker WHERE queue=?1 AND token=?2),"
		" (SELECT min(n) FROM (SELECT 0 AS n UNION SELECT number+1 FROM worker WHERE"
		" queue=?1) WHERE n NOT IN (SELECT number FROM worker WHERE queue=?1)))",
		SQL(worker->token));
	struct queue_worker written = *worker;
	if (!given)
		written.index = worker->number;
	struct json_object *json = spec_write_worker(&written);
	sql_do(s,
		"INSERT OR IGNORE INTO worker(queue, token, number, host, silence, life, spec)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
		SQL(worker->token), SQL(worker->number), SQL(worker->process.host),
		SQL(worker->period * (int64_t)worker->limit), SQL(worker->life),
		SQL(json_line(json)));
	json_object_put(json);
	(void)sql_mend(s);
	s->woken[QUEUE_WORK] = true;
	return STATUS_OK;
}

enum status queue_register(struct queue *queue, struct queue_worker *worker, struct error *err)
{
	enum status status = process_identify(0, &worker->process, err);
	if (status != STATUS_OK)
		return status;
	if (!*worker->token)
		queue_draw_token(worker->token);
	worker->started = clock_utc();
	status = sql_call(queue, true, enter, worker, err);
	if (status == STATUS_OK && worker->index == UINT64_MAX)
		worker->index = worker->number;
	return status;
}

struct worker_list {
	struct queue_worker *items;
	size_t count, room;
};

static enum status list_workers(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct worker_list *list = context;
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT token, number, life, faults, spec, host, silence,"
		" (SELECT count(*) FROM command c WHERE c.queue=?1 AND c.worker=w.token)"
		" FROM worker w WHERE queue=?1 ORDER BY number");
	list->count = 0;
	while (sql_next(s, rows)) {
		list->items = xgrow(list->items, list->count, &list->room, sizeof(*list->items));
		struct queue_worker *worker = &list->items[list->count++];
		*worker = (struct queue_worker){0};
		/* It must be fenced in time also if another version has written this row. */
		if (!spec_read_worker(sql_text(rows, 4), worker)) {
			*worker = (struct queue_worker){.name = "(damaged)",
				.period = sqlite3_column_int64(rows, 6),
				.limit = 1};
			sql_copy(worker->process.host, sizeof(worker->process.host), rows, 5);
		}
		sql_copy(worker->token, sizeof(worker->token), rows, 0);
		worker->number = sql_unsigned(rows, 1);
		worker->life = sqlite3_column_int64(rows, 2);
		worker->faults = sql_unsigned(rows, 3);
		worker->running = sql_unsigned(rows, 7);
	}
	return STATUS_OK;
}

enum status queue_workers(
	struct queue *queue, struct queue_worker **workers, size_t *count, struct error *err)
{
	struct worker_list list = {0};
	enum status status = sql_call(queue, false, list_workers, &list, err);
	if (status == STATUS_NO)
		status = STATUS_OK;
	if (status != STATUS_OK) {
		free(list.items);
		return status;
	}
	*workers = list.items;
	*count = list.count;
	return STATUS_OK;
}

/* ---- The end of a worker ---- */

/* Give back all that a worker holds, and remove it. Returns how many commands. */
static uint64_t give_back(struct sql *s, const char *worker, enum queue_ending_kind kind,
	const char *text, int64_t silence)
{
	uint64_t back = 0;
	struct parse_numbers ids = {0};
	struct queue_worker known = {0};
	char host[sizeof(known.process.host)] = "";
	sqlite3_stmt *row = sql_rows(
		s, "SELECT spec, host FROM worker WHERE queue=?1 AND token=?2", SQL(worker));
	if (sql_next(s, row)) {
		(void)spec_read_worker(sql_text(row, 0), &known);
		sql_copy(host, sizeof(host), row, 1);
		sqlite3_reset(row);
	}
	sql_ids_read(s,
		sql_rows(s,
			"SELECT id FROM command INDEXED BY command_worker WHERE queue=?1"
			" AND worker=?2 AND state='running'",
			SQL(worker)),
		&ids);
	for (size_t i = 0; i < ids.count; i++) {
		enum queue_state state;
		struct queue_result result = {.ending = {.kind = kind}, .ended = clock_utc()};
		snprintf(result.ending.text, sizeof(result.ending.text), "%s", text);
		snprintf(result.worker, sizeof(result.worker), "%s", known.name);
		snprintf(result.host, sizeof(result.host), "%s", host);
		const struct sql_end end = {.id = ids.items[i],
			.result = &result,
			.worker = worker,
			.host = host,
			.silence = silence};
		back += sql_end_start(s, &end, &state);
	}
	if (sql_do(s, "DELETE FROM worker WHERE queue=?1 AND token=?2", SQL(worker)))
		s->woken[QUEUE_WORK] = true;
	free(ids.items);
	return back;
}

static enum status leave(struct sql *s, void *context, struct error *err)
{
	(void)err;
	give_back(s, context, ENDING_PREEMPTED, "its worker has left", 0);
	return STATUS_OK;
}

enum status queue_leave(struct queue *queue, const char *worker, struct error *err)
{
	char token[QUEUE_TOKEN];
	snprintf(token, sizeof(token), "%s", worker);
	return sql_call(queue, true, leave, token, err);
}

struct fence {
	const char *self, *dead;
	uint64_t back;
};

static enum status fence(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct fence *x = context;
	x->back = 0;
	/* One that was declared dead itself declares nobody dead. */
	if (!sql_number(s, "SELECT 1 FROM worker WHERE queue=?1 AND token=?2", SQL(x->self)))
		return STATUS_NO;
	int64_t silence = sql_number(
		s, "SELECT silence FROM worker WHERE queue=?1 AND token=?2", SQL(x->dead));
	x->back = give_back(s, x->dead, ENDING_LOST, "its worker disappeared", silence);
	x->back += sql_mend(s);
	return STATUS_OK;
}

enum status queue_fence(
	struct queue *queue, const char *self, const char *dead, uint64_t *back, struct error *err)
{
	struct fence x = {.self = self, .dead = dead};
	enum status status = sql_call(queue, true, fence, &x, err);
	if (status == STATUS_OK)
		*back = x.back;
	return status;
}

/* ---- Taking, and handing in ---- */

void queue_exchange_release(struct queue_exchange *x)
{
	for (size_t i = 0; i < x->taken_count; i++)
		queue_view_release(&x->taken[i]);
	free(x->taken);
	free(x->told);
	x->taken = NULL;
	x->told = NULL;
	x->taken_count = x->told_count = 0;
}

static void hand_in(struct sql *s, const struct queue_exchange *x, const char *host)
{
	for (size_t i = 0; i < x->ended_count; i++) {
		struct queue_ended *ended = &x->ended[i];
		const struct sql_end end = {.id = ended->id,
			.token = ended->token,
			.result = &ended->result,
			.worker = x->worker,
			.host = host};
		ended->accepted = sql_end_start(s, &end, &ended->state);
	}
}

/* Choose commands to take: no others can take them until this transaction ends. */
static void choose(struct sql *s, const struct queue_exchange *x, const char *host, size_t want,
	struct parse_numbers *ids)
{
	int64_t now = clock_utc();
	/* The index command_state has all columns of a command here. A clock that was set back must
	 * not make a pause longer. */
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT id FROM command WHERE queue=?1 AND state='waiting' AND needs+0<=?2"
		" AND (refused_on IS NULL OR refused_on<>?3 OR NOT EXISTS"
		" (SELECT 1 FROM worker WHERE queue=?1 AND host<>?3))"
		" AND (rested IS NULL OR rested<>?4 OR rest NOT BETWEEN ?5 AND ?6)"
		" ORDER BY priority DESC, id",
		SQL(x->left), SQL(host), SQL(x->worker), SQL(now + 1), SQL(now + RULES_PAUSE_MOST));
	ids->count = 0;
	while (ids->count < want && sql_next(s, rows))
		sql_ids_add(ids, sql_unsigned(rows, 0));
	if (rows)
		sqlite3_reset(rows);
}

/* Fail a command whose row no worker can read, so that nobody waits for it. */
static void fail_damaged(struct sql *s, uint64_t id)
{
	struct queue_result result = {
		.ending = {.kind = ENDING_CANNOT, .code = CODE_CANNOT_RUN}, .ended = clock_utc()};
	snprintf(result.ending.text, sizeof(result.ending.text),
		"the row of command %" PRIu64 " in the store is damaged, or of another version",
		id);
	struct json_object *json = spec_write_result(&result);
	sql_over(s, id, QUEUE_FAILED, 0, json_line(json));
	json_object_put(json);
}

/* Take so many commands; if an earlier call has taken some, and its answer was lost, these. */
static void take(struct sql *s, struct queue_exchange *x, const char *host, size_t want)
{
	struct parse_numbers ids = {0};
	int64_t now = clock_utc();
	sql_ids_read(s,
		sql_rows(s,
			"SELECT id FROM command INDEXED BY command_worker WHERE queue=?1 AND"
			" worker=?2 AND state='running' AND token=?3 ORDER BY priority DESC, id",
			SQL(x->worker), SQL(x->nonce)),
		&ids);
	bool repeated = ids.count;
	if (!repeated)
		choose(s, x, host, want, &ids);
	x->taken = xrealloc(x->taken, ids.count + 1, sizeof(*x->taken));
	for (size_t i = 0; i < ids.count; i++) {
		struct queue_view *view = &x->taken[x->taken_count];
		if (!repeated)
			sql_do(s,
				"UPDATE command SET state='running', worker=?3, token=?4, since=?5,"
				" starts=starts+1, asked=NULL WHERE queue=?1 AND id=?2",
				SQL(ids.items[i]), SQL(x->worker), SQL(x->nonce), SQL(now));
		if (sql_view(s, ids.items[i], view) && !view->item.damaged) {
			x->taken_count++;
		} else {
			fail_damaged(s, ids.items[i]);
			queue_view_release(view);
		}
	}
	/* There is room for those who schedule. */
	s->woken[QUEUE_OVER] |= ids.count;
	free(ids.items);
}

static void read_told(struct sql *s, struct queue_exchange *x)
{
	size_t room = 0;
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT id, token FROM command INDEXED BY command_worker WHERE queue=?1"
		" AND worker=?2 AND asked IS NOT NULL",
		SQL(x->worker));
	while (sql_next(s, rows)) {
		x->told = xgrow(x->told, x->told_count, &room, sizeof(*x->told));
		struct queue_told *told = &x->told[x->told_count++];
		told->id = sql_unsigned(rows, 0);
		sql_copy(told->token, sizeof(told->token), rows, 1);
	}
}

/* How many ms until the first of the commands that this worker leaves alone may be taken. */
static int64_t rest_of(struct sql *s, const char *worker)
{
	int64_t now = clock_utc();
	int64_t until = sql_number(s,
		"SELECT min(rest) FROM command INDEXED BY command_state WHERE queue=?1 AND"
		" state='waiting' AND rested=?2 AND rest>?3",
		SQL(worker), SQL(now));
	return until ? until - now : CLOCK_NEVER;
}

static enum status exchange(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct queue_exchange *x = context;
	char host[65] = "";
	queue_exchange_release(x);
	sqlite3_stmt *row = sql_rows(
		s, "SELECT host, faults FROM worker WHERE queue=?1 AND token=?2", SQL(x->worker));
	if (!sql_next(s, row))
		return STATUS_NO;
	sql_copy(host, sizeof(host), row, 0);
	x->faults = sql_unsigned(row, 1);
	sqlite3_reset(row);
	hand_in(s, x, host);
	x->failure = s->now.failure;
	if (x->want)
		take(s, x, host, x->failure ? 0 : x->want);
	x->unfit = 0;
	x->rest = CLOCK_NEVER;
	if (x->taken_count < x->want && !x->failure) {
		if (!x->taken_count) {
			(void)sql_mend(s);
			take(s, x, host, x->want);
		}
		x->rest = rest_of(s, x->worker);
		if (x->left != CLOCK_NEVER)
			x->unfit = (uint64_t)sql_number(s,
				"SELECT id FROM command WHERE queue=?1 AND state='waiting'"
				" AND needs+0>?2"
				" ORDER BY priority DESC, id LIMIT 1",
				SQL(x->left));
	}
	read_told(s, x);
	x->drained = !x->taken_count && !sql_has_open(s);
	return STATUS_OK;
}

enum status queue_exchange(struct queue *queue, struct queue_exchange *x, struct error *err)
{
	if (!*x->nonce)
		queue_draw_token(x->nonce);
	enum status status = sql_call(queue, true, exchange, x, err);
	if (status_is_error(status))
		queue_exchange_release(x);
	else
		*x->nonce = '\0';
	return status;
}
