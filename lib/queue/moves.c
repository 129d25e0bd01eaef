/* SPDX-License-Identifier: MIT */
/* How commands move from state to state, for all transactions. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/rules.h"
#include "queue/spec.h"
#include "queue/sql.h"

/* ---- Reading a row ---- */

void queue_view_release(struct queue_view *view)
{
	queue_item_release(&view->item);
	free(view->after);
	view->after = NULL;
}

enum queue_state sql_state(sqlite3_stmt *rows, int column)
{
	enum queue_state state = QUEUE_DAMAGED;
	(void)queue_state_parse(sql_text(rows, column), &state);
	return state;
}

/* What a blocked command still waits for, as "3-7,9". */
static char *list_needs(struct sql *s, uint64_t id)
{
	struct text text = {0};
	struct text_ranges ranges = {.text = &text};
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT a.needs FROM after a CROSS JOIN command n ON n.queue=?1 AND n.id=a.needs"
		" WHERE a.queue=?1 AND a.id=?2 AND n.state<>'succeeded' ORDER BY a.needs",
		SQL(id));
	while (sql_next(s, rows))
		text_range(&ranges, sql_unsigned(rows, 0));
	text_ranges_end(&ranges);
	char *list = xstrdup(text_string(&text));
	text_release(&text);
	return list;
}

/* clang-format off */
#define COLUMNS(X)                                                                                 \
	X(state) X(priority) X(needs) X(tag) X(halt) X(spec) X(starts) X(attempts) X(transients)   \
	X(preempted) X(lost) X(lost_early) X(refused) X(token) X(since) X(asked) X(refused_on)     \
	X(blamed) X(result) X(ended) X(because) X(over)
/* clang-format on */
#define COLUMN_NAME(column)   #column ","
#define COLUMN_NUMBER(column) C_##column,
enum column { COLUMNS(COLUMN_NUMBER) };

static void read_item(sqlite3_stmt *rows, uint64_t id, struct queue_item *item)
{
	(void)spec_read_item(sql_text(rows, C_spec), item);
	item->id = id;
	item->priority = sqlite3_column_int(rows, C_priority);
	item->needs = sqlite3_column_int64(rows, C_needs);
	if (!queue_halt_parse(sql_text(rows, C_halt), &item->halt))
		item->halt = HALT_NEVER;
	if (sqlite3_column_type(rows, C_tag) != SQLITE_NULL)
		item->tag = xstrdup(sql_text(rows, C_tag));
}

static void read_result(sqlite3_stmt *rows, struct queue_view *view)
{
	if (sqlite3_column_type(rows, C_result) != SQLITE_NULL)
		(void)spec_read_result(sql_text(rows, C_result), &view->result);
	if (!view->result.ended)
		view->result.ended = sqlite3_column_int64(rows, C_ended);
	if (view->state > QUEUE_RUNNING && view->state != QUEUE_DAMAGED && !*view->token)
		view->result.ending.kind = ENDING_CANCELLED;
}

bool sql_view(struct sql *s, uint64_t id, struct queue_view *view)
{
	*view = (struct queue_view){0};
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT " COLUMNS(COLUMN_NAME) " 0 FROM command WHERE queue=?1 AND id=?2", SQL(id));
	if (!sql_next(s, rows))
		return false;
	*view = (struct queue_view){.state = sql_state(rows, C_state),
		.history = {.starts = sql_unsigned(rows, C_starts),
			.attempts = sql_unsigned(rows, C_attempts),
			.transients = sql_unsigned(rows, C_transients),
			.preempted = sql_unsigned(rows, C_preempted),
			.lost = sql_unsigned(rows, C_lost),
			.lost_early = sql_unsigned(rows, C_lost_early),
			.refused = sql_unsigned(rows, C_refused)},
		.over = sql_unsigned(rows, C_over)};
	bool runs = view->state == QUEUE_RUNNING;
	view->told = runs && sqlite3_column_type(rows, C_asked) != SQLITE_NULL;
	view->because = sql_unsigned(rows, runs ? C_asked : C_because);
	view->since = runs ? sqlite3_column_int64(rows, C_since) : 0;
	read_item(rows, id, &view->item);
	sql_copy(view->token, sizeof(view->token), rows, C_token);
	sql_copy(view->refused_on, sizeof(view->refused_on), rows, C_refused_on);
	sql_copy(view->blamed, sizeof(view->blamed), rows, C_blamed);
	if (!runs)
		read_result(rows, view);
	sqlite3_reset(rows);
	if (view->state == QUEUE_BLOCKED)
		view->after = list_needs(s, id);
	return true;
}

/* ---- The end of a command ---- */

static void read_dependents(struct sql *s, uint64_t id, struct parse_numbers *ids)
{
	sql_ids_read(
		s, sql_rows(s, "SELECT id FROM after WHERE queue=?1 AND needs=?2", SQL(id)), ids);
}

/* Let those commands wait for a worker that waited for this one only. */
static void release_dependents(struct sql *s, uint64_t id)
{
	struct parse_numbers ids = {0};
	read_dependents(s, id, &ids);
	for (size_t i = 0; i < ids.count; i++)
		s->woken[QUEUE_WORK] |=
			sql_do(s,
				"UPDATE command SET state='waiting' WHERE queue=?1 AND id=?2 AND"
				" state='blocked' AND NOT EXISTS"
				" (SELECT 1 FROM after a CROSS JOIN command n ON n.queue=?1 AND"
				" n.id=a.needs WHERE a.queue=?1 AND a.id=?2 AND n.state<>'succeeded')",
				SQL(ids.items[i])) > 0;
	free(ids.items);
}

/* Set the state of a command that is over, and number it. */
static void set_over(struct sql *s, uint64_t id, enum queue_state state, uint64_t because,
	const char *result, int64_t now)
{
	sql_do(s,
		"UPDATE command SET state=?3, because=nullif(?4, 0), result=coalesce(?5, result),"
		" ended=?6, over=?7, worker=NULL, asked=NULL, refused_on=NULL, blamed=NULL, rested=NULL"
		" WHERE queue=?1 AND id=?2",
		SQL(id), SQL(queue_state_word(state)), SQL(because), SQL(result), SQL(now),
		SQL(++s->now.over));
	s->woken[QUEUE_OVER] = true;
}

/* Cancel all that comes after this command, and after what that cancels. A list, no recursion: a
 * chain may have 100,000 commands. */
static void cancel_dependents(struct sql *s, uint64_t id, uint64_t because, int64_t now)
{
	struct parse_numbers gone = {0};
	sql_ids_add(&gone, id);
	for (size_t i = 0; i < gone.count; i++) {
		size_t kept = gone.count, next = kept;
		read_dependents(s, gone.items[i], &gone);
		for (; next < gone.count; next++) {
			uint64_t one = gone.items[next];
			if (!sql_number(s,
				    "SELECT state='blocked' FROM command WHERE queue=?1 AND id=?2",
				    SQL(one)))
				continue;
			set_over(s, one, QUEUE_CANCELLED, because, NULL, now);
			gone.items[kept++] = one;
		}
		gone.count = kept;
	}
	free(gone.items);
}

/* What it means for others that a command is over. */
static void spread(
	struct sql *s, uint64_t id, enum queue_state state, uint64_t because, int64_t now)
{
	if (state == QUEUE_SUCCEEDED)
		release_dependents(s, id);
	else
		cancel_dependents(s, id, because ? because : id, now);
	if (state == QUEUE_FAILED && !s->now.failure &&
		sql_number(s,
			"SELECT halt IN ('now', 'soon') FROM command WHERE queue=?1 AND id=?2",
			SQL(id)))
		s->now.failure = id;
}

void sql_over(
	struct sql *s, uint64_t id, enum queue_state state, uint64_t because, const char *result)
{
	int64_t now = clock_utc();
	set_over(s, id, state, because, result, now);
	spread(s, id, state, because, now);
}

/* ---- The end of a start ---- */

static bool was_early(const struct queue_view *start, const struct sql_end *end)
{
	int64_t elapsed = end->result->ended - start->since;
	/* Clocks of machines differ: a start in the future is no early loss. */
	return elapsed >= 0 && elapsed - end->silence < RULES_EARLY;
}

/* Whether no other machine can show that this one is to blame. */
static bool is_confirmed(struct sql *s, const struct queue_view *start, const char *host)
{
	if (*start->refused_on && strcmp(start->refused_on, host) != 0)
		return true;
	return !sql_number(s, "SELECT 1 FROM worker WHERE queue=?1 AND host<>?2", SQL(host));
}

/* Write how a start has ended, and what that means. failed: its worker is to blame, if the command
 * succeeds on another machine. */
static void write_end(struct sql *s, const struct sql_end *end, enum queue_state state,
	const struct queue_view *start, bool failed)
{
	const struct queue_history *h = &start->history;
	const struct queue_ending *ending = &end->result->ending;
	const char *none = NULL;
	struct json_object *result = spec_write_result(end->result);
	sql_do(s,
		"UPDATE command SET attempts=?3, transients=?4, preempted=?5, lost=?6,"
		" lost_early=?7, refused=?8 WHERE queue=?1 AND id=?2",
		SQL(end->id), SQL(h->attempts), SQL(h->transients), SQL(h->preempted), SQL(h->lost),
		SQL(h->lost_early), SQL(h->refused));
	if (state == QUEUE_WAITING) {
		sql_do(s,
			"UPDATE command SET state='waiting', result=?3, ended=?4, refused_on=?5,"
			" blamed=coalesce(?6, blamed), rested=?7, rest=?8, worker=NULL, asked=NULL"
			" WHERE queue=?1 AND id=?2",
			SQL(end->id), SQL(json_line(result)), SQL(end->result->ended),
			SQL(rules_is_refusal(ending) ? end->host : none),
			SQL(failed ? end->worker : none),
			SQL(rules_rests(ending) ? end->worker : none),
			SQL(clock_utc() + rules_pause(h)));
		s->woken[QUEUE_WORK] = true;
	} else {
		sql_over(s, end->id, state, state == QUEUE_CANCELLED ? start->because : 0,
			json_line(result));
	}
	json_object_put(result);
}

static enum queue_state end_running(
	struct sql *s, const struct sql_end *end, struct queue_view *start)
{
	const struct queue_ending *ending = &end->result->ending;
	bool refused = rules_is_refusal(ending);
	const struct rules_start known = {.max_attempts = start->item.max_attempts,
		.max_transient = start->item.max_transient,
		.ending = ending,
		.early = was_early(start, end),
		.confirmed = refused && is_confirmed(s, start, end->host),
		.told = start->told};
	uint64_t attempts = start->history.attempts;
	enum queue_state state = rules_decide(&known, &start->history);
	write_end(s, end, state, start, refused || start->history.attempts > attempts);
	/* It failed on another machine, and has succeeded here. */
	if (state == QUEUE_SUCCEEDED && *start->blamed)
		sql_do(s,
			"UPDATE worker SET faults=faults+1 WHERE queue=?1 AND token=?2"
			" AND host<>?3",
			SQL(start->blamed), SQL(end->host));
	return state;
}

bool sql_end_start(struct sql *s, const struct sql_end *end, enum queue_state *state)
{
	struct queue_view start;
	bool found = sql_view(s, end->id, &start) && start.state != QUEUE_DAMAGED &&
		     (!end->token || !strcmp(end->token, start.token));
	/* Not running: this end was handed in before. */
	*state = found && start.state == QUEUE_RUNNING ? end_running(s, end, &start) : start.state;
	queue_view_release(&start);
	return found;
}

/* ---- Rows that were written wrongly ---- */

/* End the starts that run without a worker. */
static uint64_t lose_orphans(struct sql *s)
{
	struct parse_numbers ids = {0};
	uint64_t lost = 0;
	sql_ids_read(s,
		sql_rows(s, "SELECT id FROM command INDEXED BY command_state WHERE queue=?1 AND"
			    " state='running' AND"
			    " (worker IS NULL OR worker NOT IN"
			    " (SELECT token FROM worker WHERE queue=?1))"),
		&ids);
	for (size_t i = 0; i < ids.count; i++) {
		enum queue_state state;
		struct queue_result result = {
			.ending = {.kind = ENDING_LOST, .text = "its worker is not registered"},
			.ended = clock_utc()};
		const struct sql_end end = {
			.id = ids.items[i], .result = &result, .worker = "", .host = ""};
		lost += sql_end_start(s, &end, &state);
	}
	free(ids.items);
	return lost;
}

/* If nothing waits or runs, blocked commands that can wait now, or else never: something that they
 * need was not told to them, will not succeed, or needs them. */
static void settle_blocked(struct sql *s)
{
	struct parse_numbers ids = {0};
	int64_t released = sql_do(s,
		"UPDATE command SET state='waiting' WHERE queue=?1 AND state='blocked' AND NOT"
		" EXISTS (SELECT 1 FROM after a CROSS JOIN command n ON n.queue=?1 AND n.id=a.needs"
		" WHERE a.queue=?1 AND a.id=command.id AND n.state<>'succeeded')");
	s->woken[QUEUE_WORK] |= released > 0;
	if (!released)
		sql_ids_read(s,
			sql_rows(s, "SELECT id FROM command WHERE queue=?1 AND state='blocked'"),
			&ids);
	for (size_t i = 0; i < ids.count; i++)
		set_over(s, ids.items[i], QUEUE_CANCELLED, 0, NULL, clock_utc());
	free(ids.items);
}

bool sql_has_open(struct sql *s)
{
	bool found = false;
	for (enum queue_state state = 0; state <= QUEUE_RUNNING && !found; state++)
		found = sql_number(s, "SELECT 1 FROM command WHERE queue=?1 AND state=?2 LIMIT 1",
			SQL(queue_state_word(state)));
	return found;
}

uint64_t sql_mend(struct sql *s)
{
	uint64_t lost = lose_orphans(s);
	if (!sql_number(
		    s, "SELECT 1 FROM command WHERE queue=?1 AND state IN ('waiting', 'running')"))
		settle_blocked(s);
	return lost;
}
