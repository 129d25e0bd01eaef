/* SPDX-License-Identifier: MIT */
/* Looking at commands: lists, counts, and how those turned out that a caller waits for. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "queue/spec.h"
#include "queue/sql.h"

#define PAGE 500 /* commands to read in one transaction */

#define KNOWN_STATES "('blocked', 'waiting', 'running', 'succeeded', 'failed', 'cancelled')"

/* ---- Selections ---- */

static bool has_state(const struct queue_selection *set, enum queue_state state)
{
	return !set->states || set->states & 1u << state;
}

/* The state of a command in a column; QUEUE_DAMAGED: no known one. */
static enum queue_state state_of(sqlite3_stmt *rows, int column)
{
	enum queue_state state = QUEUE_DAMAGED;
	(void)queue_state_parse(sql_text(rows, column), &state);
	return state;
}

static void select_by_ids(struct sql *s, struct sql_selected *x)
{
	for (size_t i = 0; i < x->set->count; i++) {
		uint64_t id = x->set->ids[i];
		sqlite3_stmt *rows = sql_rows(
			s, "SELECT state, tag FROM command WHERE queue=?1 AND id=?2", SQL(id));
		if (!sql_next(s, rows)) {
			x->first_absent = x->absent++ ? x->first_absent : id;
			continue;
		}
		if (has_state(x->set, state_of(rows, 0)) &&
			(!x->set->tag || !strcmp(x->set->tag, sql_text(rows, 1))))
			sql_ids_add(&x->ids, id);
		sqlite3_reset(rows);
	}
}

static void select_by_state(struct sql *s, struct sql_selected *x, enum queue_state state)
{
	const struct queue_selection *set = x->set;
	/* The index command_state has all these columns. */
	sqlite3_stmt *rows =
		state == QUEUE_DAMAGED
			? sql_rows(s,
				  "SELECT id FROM command INDEXED BY command_state WHERE queue=?1"
				  " AND state NOT IN " KNOWN_STATES " AND (?2 IS NULL OR tag=?2)",
				  SQL(set->tag))
			: sql_rows(s,
				  "SELECT id FROM command INDEXED BY command_state WHERE queue=?1"
				  " AND state=?3 AND (?2 IS NULL OR tag=?2)",
				  SQL(set->tag), SQL(queue_state_word(state)));
	sql_ids_read(s, rows, &x->ids);
}

static enum status select_ids(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct sql_selected *x = context;
	x->ids.count = 0;
	x->absent = x->first_absent = 0;
	if (x->set->ids)
		select_by_ids(s, x);
	else if (x->set->beyond)
		sql_ids_read(s,
			sql_rows(s, "SELECT id FROM command WHERE queue=?1 AND over>?2",
				SQL(*x->set->beyond)),
			&x->ids);
	for (enum queue_state state = 0; !x->set->ids && !x->set->beyond && state < QUEUE_STATES;
		state++)
		if (has_state(x->set, state))
			select_by_state(s, x, state);
	parse_numbers_sort(&x->ids);
	return STATUS_OK;
}

enum status sql_select(struct queue *queue, struct sql_selected *selected, struct error *err)
{
	enum status status = sql_call(queue, false, select_ids, selected, err);
	if (status == STATUS_NO && selected->set->ids && selected->set->count) {
		selected->absent = selected->set->count;
		selected->first_absent = selected->set->ids[0];
	}
	return status == STATUS_NO ? STATUS_OK : status;
}

/* ---- Views ---- */

void queue_view_release(struct queue_view *view)
{
	queue_item_release(&view->item);
	free(view->after);
	view->after = NULL;
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

static void read_view(struct sql *s, sqlite3_stmt *rows, struct queue_view *view)
{
	struct queue_worker worker = {0};
	*view = (struct queue_view){.state = state_of(rows, C_state),
		.told = sqlite3_column_type(rows, C_asked) != SQLITE_NULL,
		.because = sql_unsigned(rows, C_because),
		.over = sql_unsigned(rows, C_over)};
	sql_read_item(rows, &view->item);
	sql_read_history(rows, &view->history);
	sql_copy(view->token, sizeof(view->token), rows, C_token);
	if (view->state == QUEUE_RUNNING)
		view->since = sqlite3_column_int64(rows, C_since);
	else if (sqlite3_column_type(rows, C_result) != SQLITE_NULL)
		(void)spec_read_result(sql_text(rows, C_result), &view->result);
	if (view->state != QUEUE_RUNNING && !view->result.ended)
		view->result.ended = sqlite3_column_int64(rows, C_ended);
	if (view->state > QUEUE_RUNNING && view->state != QUEUE_DAMAGED && !*view->token)
		view->result.ending.kind = ENDING_CANCELLED;
	if (view->state == QUEUE_RUNNING && spec_read_worker(sql_text(rows, C_more), &worker)) {
		memcpy(view->result.worker, worker.name, sizeof(worker.name));
		memcpy(view->result.host, worker.process.host, sizeof(worker.process.host));
	}
	if (view->state == QUEUE_BLOCKED)
		view->after = list_needs(s, view->item.id);
}

struct page {
	const uint64_t *ids;
	size_t count, found;
	struct queue_view views[PAGE];
};

static void release_page(struct page *page)
{
	for (size_t i = 0; i < page->found; i++)
		queue_view_release(&page->views[i]);
	page->found = 0;
}

static enum status read_page(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct page *page = context;
	release_page(page);
	for (size_t i = 0; i < page->count; i++) {
		sqlite3_stmt *rows = sql_rows(s,
			"SELECT" SQL_COMMAND ", w.spec FROM command c LEFT JOIN worker w"
			" ON w.queue=?1 AND w.token=c.worker WHERE c.queue=?1 AND c.id=?2",
			SQL(page->ids[i]));
		if (!sql_next(s, rows))
			continue;
		read_view(s, rows, &page->views[page->found++]);
		sqlite3_reset(rows);
	}
	return STATUS_OK;
}

enum status queue_visit(struct queue *queue, const struct queue_selection *set,
	queue_visitor *visit, void *context, struct error *err)
{
	struct sql_selected selected = {.set = set};
	struct page *page = xcalloc(1, sizeof(*page));
	enum status status = sql_select(queue, &selected, err);
	for (size_t done = 0, count = selected.ids.count; done < count && status == STATUS_OK;
		done += page->count) {
		page->ids = selected.ids.items + done;
		page->count = count - done < PAGE ? count - done : PAGE;
		status = sql_call(queue, false, read_page, page, err);
		for (size_t i = 0; i < page->found && status == STATUS_OK; i++)
			status = visit(context, &page->views[i]);
		release_page(page);
	}
	free(page);
	free(selected.ids.items);
	return status;
}

enum status queue_inspect(
	struct queue *queue, uint64_t id, struct queue_view *view, struct error *err)
{
	struct page *page = xcalloc(1, sizeof(*page));
	page->ids = &id;
	page->count = 1;
	enum status status = sql_call(queue, false, read_page, page, err);
	if (status == STATUS_OK && !page->found)
		status = STATUS_NO;
	if (status == STATUS_OK)
		*view = page->views[0];
	else
		release_page(page);
	free(page);
	return status;
}

/* ---- How commands turn out ---- */

struct turning {
	const struct queue_selection *set;
	struct queue_outcome *outcome;
};

/* Not if a user has cancelled what this one came after. */
#define BLAMED                                                                                     \
	" (because AND NOT EXISTS (SELECT 1 FROM command n WHERE n.queue=?1"                       \
	" AND n.id=command.because AND n.state='cancelled')) "

/* Those that are selected all, or by their tag. */
static void look_at_many(struct sql *s, struct turning *x)
{
	const char *tag = x->set->tag;
	struct queue_outcome *outcome = x->outcome;
	outcome->open = sql_has_open(s, tag);
	if (outcome->open && !outcome->counts)
		return;
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT state, count(*) FROM command INDEXED BY command_state WHERE queue=?1"
		" AND (?2 IS NULL OR tag=?2) GROUP BY state",
		SQL(tag));
	while (sql_next(s, rows))
		outcome->in[state_of(rows, 0)] += sql_unsigned(rows, 1);
	outcome->failed = (uint64_t)sql_number(s,
		"SELECT id FROM command INDEXED BY command_state WHERE queue=?1 AND state='failed'"
		" AND (?2 IS NULL OR tag=?2) ORDER BY over LIMIT 1",
		SQL(tag));
	outcome->because = (uint64_t)sql_number(s,
		"SELECT because FROM command INDEXED BY command_state WHERE queue=?1 AND"
		" state='cancelled' AND" BLAMED "AND (?2 IS NULL OR tag=?2) ORDER BY over LIMIT 1",
		SQL(tag));
}

static void look_at_ids(struct sql *s, struct turning *x)
{
	struct queue_outcome *outcome = x->outcome;
	uint64_t failed_over = UINT64_MAX, cancelled_over = UINT64_MAX;
	for (size_t i = 0; i < x->set->count; i++) {
		uint64_t id = x->set->ids[i];
		sqlite3_stmt *rows = sql_rows(s,
			"SELECT state, over, iif(" BLAMED
			", because, 0) FROM command WHERE queue=?1 AND id=?2",
			SQL(id));
		if (!sql_next(s, rows)) {
			outcome->absent = outcome->absent ? outcome->absent : id;
			continue;
		}
		enum queue_state state = state_of(rows, 0);
		uint64_t over = sql_unsigned(rows, 1), because = sql_unsigned(rows, 2);
		outcome->in[state]++;
		if (state == QUEUE_FAILED && over < failed_over) {
			outcome->failed = id;
			failed_over = over;
		} else if (state == QUEUE_CANCELLED && because && over < cancelled_over) {
			outcome->because = because;
			cancelled_over = over;
		}
		sqlite3_reset(rows);
	}
}

static enum status turn_out(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct turning *x = context;
	struct queue_outcome *outcome = x->outcome;
	*outcome = (struct queue_outcome){.counts = outcome->counts};
	if (x->set->ids)
		look_at_ids(s, x);
	else
		look_at_many(s, x);
	const uint64_t *in = outcome->in;
	uint64_t open = in[QUEUE_BLOCKED] + in[QUEUE_WAITING] + in[QUEUE_RUNNING];
	outcome->open = open ? open : outcome->open;
	outcome->scheduled = s->now.next - 1;
	outcome->over = s->now.over;
	outcome->failure = s->now.failure;
	int64_t longest =
		sql_number(s, "SELECT iif(min(life), max(life), 0) FROM worker WHERE queue=?1");
	if (outcome->open && longest)
		outcome->unfit = (uint64_t)sql_number(s,
			"SELECT id FROM command WHERE queue=?1 AND state='waiting' AND needs+0>?2"
			" ORDER BY priority DESC, id LIMIT 1",
			SQL(longest));
	return STATUS_OK;
}

enum status queue_outcome(struct queue *queue, const struct queue_selection *set,
	struct queue_outcome *outcome, struct error *err)
{
	struct turning x = {.set = set, .outcome = outcome};
	enum status status = sql_call(queue, false, turn_out, &x, err);
	if (status != STATUS_NO)
		return status;
	*outcome = (struct queue_outcome){.absent = set->ids && set->count ? set->ids[0] : 0};
	return STATUS_OK;
}
