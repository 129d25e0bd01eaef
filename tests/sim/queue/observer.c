/* SPDX-License-Identifier: MIT */
/* What is in the tables after each transaction, and whether it may be there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim.h"

#define BIT(id) (UINT64_C(1) << (id))

/* ---- Reading, without the queue's own statements ---- */

static void copy(char *to, size_t size, sqlite3_stmt *rows, int column)
{
	const char *text = (const char *)sqlite3_column_text(rows, column);
	snprintf(to, size, "%s", text ? text : "");
}

/* A statement of this world, which is prepared once. */
static sqlite3_stmt *ask(int number, const char *sql)
{
	sqlite3_stmt **kept = &world->statements[number];
	if (!*kept && sqlite3_prepare_v2(world->database, sql, -1, kept, NULL) != SQLITE_OK)
		abort();
	return *kept;
}

void observer_end(void)
{
	for (int i = 0; i < MOST_STATEMENTS; i++)
		sqlite3_finalize(world->statements[i]);
}

static void read_rows(struct tables *t)
{
	sqlite3_stmt *rows =
		ask(0, "SELECT id, state, priority, needs, coalesce(asked, -1), starts, attempts,"
		       " transients, preempted, lost, lost_early, token, worker, refused_on, over,"
		       " because, spec, refused, rested, rest FROM command");
	while (sqlite3_step(rows) == SQLITE_ROW) {
		uint64_t id = (uint64_t)sqlite3_column_int64(rows, 0);
		if (id > MOST_COMMANDS) {
			VIOLATE("ids", "command %" PRIu64, id);
			continue;
		}
		struct row *row = &t->row[id];
		row->there = true;
		row->state = QUEUE_DAMAGED;
		(void)queue_state_parse((const char *)sqlite3_column_text(rows, 1), &row->state);
		row->priority = sqlite3_column_int(rows, 2);
		row->needs = sqlite3_column_int64(rows, 3);
		row->asked = sqlite3_column_int64(rows, 4);
		uint64_t *counts[] = {&row->history.starts, &row->history.attempts,
			&row->history.transients, &row->history.preempted, &row->history.lost,
			&row->history.lost_early};
		for (int i = 0; i < 6; i++)
			*counts[i] = (uint64_t)sqlite3_column_int64(rows, 5 + i);
		copy(row->token, sizeof(row->token), rows, 11);
		copy(row->worker, sizeof(row->worker), rows, 12);
		copy(row->refused_on, sizeof(row->refused_on), rows, 13);
		row->over = (uint64_t)sqlite3_column_int64(rows, 14);
		row->because = (uint64_t)sqlite3_column_int64(rows, 15);
		const char *command = strstr((const char *)sqlite3_column_text(rows, 16), "[\"c");
		row->spec = command ? atoi(command + 3) : -1;
		row->history.refused = (uint64_t)sqlite3_column_int64(rows, 17);
		copy(row->rested, sizeof(row->rested), rows, 18);
		row->rest = sqlite3_column_int64(rows, 19);
	}
	sqlite3_reset(rows);
}

static void read_tables(struct tables *t)
{
	memset(t, 0, sizeof(*t));
	read_rows(t);
	sqlite3_stmt *rows = ask(1, "SELECT token, host FROM worker");
	for (; sqlite3_step(rows) == SQLITE_ROW && t->workers < MOST_LISTED; t->workers++) {
		copy(t->worker[t->workers], QUEUE_TOKEN, rows, 0);
		copy(t->host[t->workers], sizeof(t->host[0]), rows, 1);
	}
	sqlite3_reset(rows);
	rows = ask(2, "SELECT next, over, failure FROM queue");
	if (sqlite3_step(rows) == SQLITE_ROW) {
		t->next = (uint64_t)sqlite3_column_int64(rows, 0);
		t->over = (uint64_t)sqlite3_column_int64(rows, 1);
		t->failure = (uint64_t)sqlite3_column_int64(rows, 2);
	}
	sqlite3_reset(rows);
	rows = ask(3, "SELECT id, needs FROM after");
	while (sqlite3_step(rows) == SQLITE_ROW)
		t->after[sqlite3_column_int64(rows, 0)] |= BIT(sqlite3_column_int64(rows, 1));
	sqlite3_reset(rows);
}

void observer_begin(void)
{
	read_tables(&world->tables);
}

bool observer_has_worker(const char *token)
{
	for (int i = 0; i < world->tables.workers; i++)
		if (!strcmp(world->tables.worker[i], token))
			return true;
	return false;
}

/* ---- Whether it may be ---- */

static bool has_worker(const struct tables *t, const char *token)
{
	for (int i = 0; i < t->workers; i++)
		if (!strcmp(t->worker[i], token))
			return true;
	return false;
}

static bool has_other_machine(const struct tables *t, const char *host)
{
	for (int i = 0; i < t->workers; i++)
		if (strcmp(t->host[i], host) != 0)
			return true;
	return false;
}

static bool is_open(const struct row *row)
{
	return row->there && row->state <= QUEUE_RUNNING;
}

static bool is_over(const struct row *row)
{
	return row->there && row->state > QUEUE_RUNNING;
}

/* Of what it comes after: what is open; what ended badly. */
static uint64_t needs_in(const struct tables *t, uint64_t id, bool open)
{
	uint64_t found = 0;
	for (uint64_t other = 1; other <= MOST_COMMANDS; other++) {
		const struct row *row = &t->row[other];
		if (t->after[id] & BIT(other) && row->there &&
			(open ? is_open(row) : is_over(row) && row->state != QUEUE_SUCCEEDED))
			found |= BIT(other);
	}
	return found;
}

static void note_satisfied(const struct tables *was, const struct tables *t, uint64_t id)
{
	const struct row *before = &was->row[id], *row = &t->row[id];
	if (!before->there || (is_over(before) && is_open(row)))
		world->satisfied[id] = 0;
	for (uint64_t other = 1; other <= MOST_COMMANDS; other++)
		if (t->row[other].there && t->row[other].state == QUEUE_SUCCEEDED)
			world->satisfied[id] |= BIT(other);
}

/* Whether it has to wait for one that it comes after. */
static bool comes_too_early(const struct tables *t, uint64_t id)
{
	return (needs_in(t, id, true) | needs_in(t, id, false)) & ~world->satisfied[id];
}

static struct start *start_of(uint64_t id, const char *token)
{
	for (int i = world->starts - 1; i >= 0; i--)
		if (world->start[i].id == id && !strcmp(world->start[i].token, token))
			return &world->start[i];
	return NULL;
}

static void check_taken(const struct tables *was, const struct tables *t, uint64_t id)
{
	const struct row *row = &t->row[id], *before = &was->row[id];
	const struct worker *worker = world->caller;
	world->statistics->starts++;
	if (world->act != WORK || !worker || strcmp(worker->self.token, row->worker) != 0) {
		VIOLATE("take", "command %" PRIu64 " is taken by nobody who asks", id);
		return;
	}
	if (!has_worker(was, row->worker))
		VIOLATE("fenced", "command %" PRIu64 " is taken by one that is not registered", id);
	if (t->failure)
		VIOLATE("halt", "command %" PRIu64 " is taken while a failure is pending", id);
	if (row->needs > worker->exchange.left)
		VIOLATE("needs", "command %" PRIu64 " is taken, and has too little time", id);
	if (*before->refused_on && before->state == QUEUE_WAITING &&
		!strcmp(before->refused_on, worker->process.who.host) &&
		has_other_machine(was, worker->process.who.host))
		VIOLATE("machines", "command %" PRIu64 " is taken where it was refused", id);
	if (!strcmp(before->rested, row->worker) && before->rest > clock_utc())
		VIOLATE("rest", "command %" PRIu64 " is taken again without a pause", id);
	if (row->history.starts != before->history.starts + 1)
		VIOLATE("history", "the start of command %" PRIu64 " is not counted", id);
	if (comes_too_early(t, id))
		VIOLATE("after", "command %" PRIu64 " is taken before what it comes after", id);
	/* One of a higher priority that it could have had. */
	for (uint64_t other = 1; other <= MOST_COMMANDS; other++) {
		const struct row *better = &t->row[other];
		bool sooner = better->priority > row->priority ||
			      (better->priority == row->priority && other < id);
		if (better->there && better->state == QUEUE_WAITING && sooner &&
			was->row[other].state == QUEUE_WAITING && was->row[other].there &&
			better->needs <= worker->exchange.left && !*better->refused_on &&
			strcmp(better->rested, row->worker) != 0)
			VIOLATE("priority", "command %" PRIu64 " is taken before %" PRIu64, id,
				other);
	}
	if (world->starts < MOST_STARTS) {
		struct start *start = &world->start[world->starts++];
		*start = (struct start){.id = id};
		memcpy(start->token, row->token, QUEUE_TOKEN);
	}
}

/* A start has ended. */
static void check_ended(const struct tables *was, uint64_t id)
{
	const struct row *before = &was->row[id];
	struct start *start = start_of(id, before->token);
	bool by_worker = world->act == WORK && world->caller &&
			 !strcmp(world->caller->self.token, before->worker);
	if (!by_worker && world->act != FENCE && world->act != LEAVE)
		VIOLATE("lease",
			"command %" PRIu64 " is no longer run, and nobody has ended it (%s)", id,
			act_name(world->act));
	if (start)
		start->ended_by_worker = by_worker;
}

static void check_over(const struct tables *was, const struct tables *t, uint64_t id)
{
	const struct row *row = &t->row[id];
	struct statistics *stats = world->statistics;
	stats->succeeded += row->state == QUEUE_SUCCEEDED;
	stats->failed += row->state == QUEUE_FAILED;
	stats->cancelled += row->state == QUEUE_CANCELLED;
	stats->dependents += row->state == QUEUE_CANCELLED && world->act == WORK;
	if (row->over <= was->over || row->over > t->over)
		VIOLATE("over", "command %" PRIu64 " is over as number %" PRIu64, id, row->over);
	if (row->state == QUEUE_FAILED && world->spec[row->spec].halt != HALT_NEVER && !t->failure)
		VIOLATE("failure", "the failure of command %" PRIu64 " is not noted", id);
}

static bool counts_in_bounds(const struct row *row)
{
	const struct spec *spec = &world->spec[row->spec];
	uint64_t losses = spec->max_attempts > RULES_LOST_MAX ? spec->max_attempts : RULES_LOST_MAX;
	return row->history.attempts < (spec->max_attempts ? spec->max_attempts : 1) &&
	       row->history.transients <= spec->max_transient && row->history.lost_early < losses;
}

static void check_row(const struct tables *was, const struct tables *t, uint64_t id)
{
	const struct row *before = &was->row[id], *row = &t->row[id];
	if (!row->there) {
		if (before->there && (world->act != FORGET || !is_over(before)))
			VIOLATE("kept", "command %" PRIu64 " is gone", id);
		world->forgotten[id] |= before->there;
		world->statistics->forgotten += before->there;
		return;
	}
	if (row->spec < 0 || row->state == QUEUE_DAMAGED) {
		VIOLATE("rows", "command %" PRIu64 " is damaged", id);
		return;
	}
	if (!before->there) {
		if (world->act != SCHEDULE || id < was->next || id >= t->next)
			VIOLATE("ids", "command %" PRIu64 " is new", id);
		for (uint64_t other = 1; other < id; other++)
			if (world->spec[row->spec].after & BIT(other) &&
				is_open(&was->row[other]) && !(t->after[id] & BIT(other)))
				VIOLATE("after", "command %" PRIu64 " does not come after %" PRIu64,
					id, other);
		for (uint64_t other = 1; other < id; other++)
			if (t->row[other].there && t->row[other].spec == row->spec)
				VIOLATE("once", "%" PRIu64 " and %" PRIu64 " are the same command",
					other, id);
		world->statistics->scheduled++;
	}
	if (before->there && world->act != RETRY &&
		(row->history.attempts < before->history.attempts ||
			row->history.starts < before->history.starts ||
			row->history.lost < before->history.lost))
		VIOLATE("history", "starts of command %" PRIu64 " are forgotten", id);
	bool moved = !before->there || before->state != row->state;
	bool restarted = before->state == QUEUE_RUNNING && row->state == QUEUE_RUNNING &&
			 strcmp(before->token, row->token) != 0;
	if (before->there && before->state == QUEUE_RUNNING && (moved || restarted))
		check_ended(was, id);
	if (row->state == QUEUE_RUNNING && (moved || restarted))
		check_taken(was, t, id);
	if (row->state == QUEUE_RUNNING && !has_worker(t, row->worker))
		VIOLATE("lease", "command %" PRIu64 " runs, and its worker is not there", id);
	if (before->there && is_over(before) && moved && world->act != RETRY)
		VIOLATE("over", "command %" PRIu64 " is over, and changes", id);
	if (before->there && before->state == QUEUE_SUCCEEDED && moved && !world->has_by_ids)
		VIOLATE("over", "command %" PRIu64 " succeeded, and is put back", id);
	if (moved && is_over(row))
		check_over(was, t, id);
	world->statistics->retried += moved && before->there && is_over(before);
	if (moved && before->there && before->state == QUEUE_RUNNING) {
		world->statistics->back += row->state == QUEUE_WAITING;
		world->statistics->lost += row->history.lost > before->history.lost;
		world->statistics->refused += row->history.refused > before->history.refused;
	}
	if (moved && before->there && before->state == QUEUE_BLOCKED)
		world->statistics->released +=
			row->state == QUEUE_WAITING || row->state == QUEUE_RUNNING;
	if (before->there && before->state == QUEUE_RUNNING && before->asked >= 0 &&
		(row->state == QUEUE_WAITING || restarted))
		VIOLATE("cancel", "command %" PRIu64 " was told to end, and waits again", id);
	if ((row->state == QUEUE_WAITING || row->state == QUEUE_BLOCKED) && !counts_in_bounds(row))
		VIOLATE("bounded", "command %" PRIu64 " waits, and has used up its attempts", id);
	if (row->state == QUEUE_BLOCKED && (!needs_in(t, id, true) || needs_in(t, id, false)))
		VIOLATE("after", "command %" PRIu64 " is blocked for no reason", id);
	if (row->state == QUEUE_WAITING && comes_too_early(t, id))
		VIOLATE("after", "command %" PRIu64 " waits, and is to come after others", id);
	if (row->asked >= 0 && row->state != QUEUE_RUNNING)
		VIOLATE("cancel", "command %" PRIu64 " is told to end, and does not run", id);
	if (row->asked >= 0 && before->asked < 0 && world->act != CANCEL && world->act != RAISE)
		VIOLATE("cancel", "nobody has told command %" PRIu64 " to end", id);
}

static void check_failure(const struct tables *was, const struct tables *t)
{
	if (t->failure && !was->failure) {
		world->statistics->failures++;
		if (t->row[t->failure].state != QUEUE_FAILED)
			VIOLATE("failure", "command %" PRIu64 " has not failed", t->failure);
	}
	if (!was->failure || t->failure == was->failure)
		return;
	world->cleared++;
	if (world->act != RAISE || t->failure)
		VIOLATE("failure", "the failure of command %" PRIu64 " is not told", was->failure);
	for (uint64_t id = 1; id <= MOST_COMMANDS; id++)
		if (is_open(&t->row[id]))
			VIOLATE("failure", "command %" PRIu64 " is open after a failure was told",
				id);
}

static void check_woken(
	const struct tables *was, const struct tables *t, const char *const *changed)
{
	bool work = false, over = false, woke_work = false, woke_over = false;
	for (uint64_t id = 1; id <= MOST_COMMANDS; id++) {
		const struct row *before = &was->row[id], *row = &t->row[id];
		bool moved = row->there && (!before->there || before->state != row->state);
		work |= moved && row->state == QUEUE_WAITING;
		work |= row->there && row->asked >= 0 && before->asked < 0;
		over |= moved && is_over(row);
		over |= moved && before->there && before->state <= QUEUE_WAITING &&
			row->state > QUEUE_WAITING;
	}
	for (int i = 0; i < STORE_OPERATION_KEYS; i++) {
		woke_work |= changed[i] && !strcmp(changed[i], "queues/q/work");
		woke_over |= changed[i] && !strcmp(changed[i], "queues/q/over");
	}
	work |= was->workers != t->workers;
	if ((work && !woke_work) || (over && !woke_over))
		VIOLATE("woken", "a change wakes nobody who waits for %s",
			work && !woke_work ? "work" : "ends");
}

static bool is_full(const struct tables *was, const struct tables *t)
{
	uint64_t before = 0, after = 0, limit = world->schedule->limit;
	for (uint64_t id = 1; id <= MOST_COMMANDS; id++) {
		before += was->row[id].there && was->row[id].state <= QUEUE_WAITING;
		after += t->row[id].there && t->row[id].state <= QUEUE_WAITING;
	}
	return limit && before && after > before && after > limit;
}

void observer_commit(const char *const *changed)
{
	static struct tables t;
	const struct tables *was = &world->tables;
	read_tables(&t);
	world->statistics->commits++;
	if (t.next < was->next)
		VIOLATE("ids", "ids are given again from %" PRIu64, t.next);
	if (world->act == WORK && !has_worker(was, world->caller->self.token) &&
		memcmp(t.row, was->row, sizeof(t.row)) != 0)
		VIOLATE("fenced", "one that is not registered changes something");
	for (uint64_t id = 1; id <= MOST_COMMANDS; id++) {
		note_satisfied(was, &t, id);
		check_row(was, &t, id);
	}
	check_failure(was, &t);
	check_woken(was, &t, changed);
	if (world->act == SCHEDULE && is_full(was, &t))
		VIOLATE("limit", "more commands wait than may");
	world->tables = t;
}
