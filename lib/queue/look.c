/* SPDX-License-Identifier: MIT */
/* Looking at commands: lists, counts, and how those turned out that a caller waits for. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "queue/spec.h"
#include "queue/sql.h"

#define PAGE 500 /* commands to read in one transaction */

/* ---- Selections ---- */

static bool has_state(const struct queue_selection *set, enum queue_state state)
{
	return !set->states || set->states & 1u << state;
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
		if (has_state(x->set, sql_state(rows, 0)) &&
			(!x->set->tag || !strcmp(x->set->tag, sql_text(rows, 1))))
			sql_ids_add(&x->ids, id);
		sqlite3_reset(rows);
	}
}

static enum status select_ids(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct sql_selected *x = context;
	sqlite3_stmt *rows = NULL;
	x->ids.count = 0;
	x->absent = x->first_absent = 0;
	if (x->set->ids)
		select_by_ids(s, x);
	else if (x->set->beyond)
		rows = sql_rows(s, "SELECT id, state FROM command WHERE queue=?1 AND over>?2",
			SQL(*x->set->beyond));
	else
		rows = sql_rows(s,
			"SELECT id, state FROM command INDEXED BY command_state WHERE queue=?1"
			" AND (?2 IS NULL OR tag=?2)",
			SQL(x->set->tag));
	while (sql_next(s, rows))
		if (has_state(x->set, sql_state(rows, 1)))
			sql_ids_add(&x->ids, sql_unsigned(rows, 0));
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

/* Read who runs a command. */
static void name_worker(struct sql *s, struct queue_view *view)
{
	struct queue_worker worker = {0};
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT w.spec FROM command c JOIN worker w ON w.queue=?1 AND w.token=c.worker"
		" WHERE c.queue=?1 AND c.id=?2",
		SQL(view->item.id));
	if (!sql_next(s, rows))
		return;
	if (spec_read_worker(sql_text(rows, 0), &worker)) {
		memcpy(view->result.worker, worker.name, sizeof(worker.name));
		memcpy(view->result.host, worker.process.host, sizeof(worker.process.host));
	}
	sqlite3_reset(rows);
}

struct page {
	const uint64_t *ids;
	size_t count, found;
	struct queue_view *views;
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
		struct queue_view *view = &page->views[page->found];
		if (!sql_view(s, page->ids[i], view))
			continue;
		page->found++;
		if (view->state == QUEUE_RUNNING)
			name_worker(s, view);
	}
	return STATUS_OK;
}

enum status queue_visit(struct queue *queue, const struct queue_selection *set,
	queue_visitor *visit, void *context, struct error *err)
{
	struct sql_selected selected = {.set = set};
	struct page page = {.views = xcalloc(PAGE, sizeof(*page.views))};
	enum status status = sql_select(queue, &selected, err);
	for (size_t done = 0, count = selected.ids.count; done < count && status == STATUS_OK;
		done += page.count) {
		page.ids = selected.ids.items + done;
		page.count = count - done < PAGE ? count - done : PAGE;
		status = sql_call(queue, false, read_page, &page, err);
		for (size_t i = 0; i < page.found && status == STATUS_OK; i++)
			status = visit(context, &page.views[i]);
		release_page(&page);
	}
	free(page.views);
	free(selected.ids.items);
	return status;
}

enum status queue_inspect(
	struct queue *queue, uint64_t id, struct queue_view *view, struct error *err)
{
	struct page page = {.ids = &id, .count = 1, .views = view};
	enum status status = sql_call(queue, false, read_page, &page, err);
	if (status == STATUS_OK && !page.found)
		status = STATUS_NO;
	if (status != STATUS_OK)
		release_page(&page);
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
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT state, count(*) FROM command INDEXED BY command_state WHERE queue=?1"
		" AND (?2 IS NULL OR tag=?2) GROUP BY state",
		SQL(tag));
	while (sql_next(s, rows))
		outcome->in[sql_state(rows, 0)] += sql_unsigned(rows, 1);
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
			"SELECT state, over, CASE WHEN" BLAMED
			"THEN because END FROM command WHERE queue=?1 AND id=?2",
			SQL(id));
		if (!sql_next(s, rows)) {
			outcome->absent = outcome->absent ? outcome->absent : id;
			continue;
		}
		enum queue_state state = sql_state(rows, 0);
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
	*outcome = (struct queue_outcome){0};
	if (x->set->ids)
		look_at_ids(s, x);
	else
		look_at_many(s, x);
	const uint64_t *in = outcome->in;
	outcome->open = in[QUEUE_BLOCKED] + in[QUEUE_WAITING] + in[QUEUE_RUNNING];
	outcome->scheduled = s->now.next - 1;
	outcome->over = s->now.over;
	outcome->failure = s->now.failure;
	int64_t longest = sql_number(
		s, "SELECT CASE WHEN min(life) THEN max(life) END FROM worker WHERE queue=?1");
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
