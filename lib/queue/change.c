/* SPDX-License-Identifier: MIT */
#include "queue/after.h"
#include "queue/output/files.h"
#include "queue/output/output.h"

static bool is_over(const struct queue_view *view)
{
	return view->state >= QUEUE_SUCCEEDED;
}

/* The key of the place at which the command was seen. */
static const char *place_of(struct moves *moves, const struct queue_view *view)
{
	char key[QUEUE_KEY_MAX];
	if (view->state != QUEUE_WAITING)
		return queue_own_key_at(moves->queue, &moves->t,
			view->state == QUEUE_BLOCKED   ? "blocked"
			: view->state == QUEUE_RUNNING ? "run"
						       : "done",
			view->item.id);
	queue_key_waiting(moves->queue, key, view->item.priority, view->item.id);
	return transaction_own(&moves->t, key);
}

/* Require that the command is still there. */
static void require(struct moves *moves, const struct queue_view *view)
{
	transaction_require_told(&moves->t, place_of(moves, view), view->revision);
}

static enum queue_changed cancel(
	struct moves *moves, const struct queue_view *view, store_revision dependents)
{
	if (is_over(view))
		return QUEUE_CHANGED_NOT;
	require(moves, view);
	if (view->state != QUEUE_RUNNING) {
		moves_over(moves, view->item.id, dependents);
		moves_cancel(moves, place_of(moves, view), view->item.id, &view->history, 0,
			"cancelled as it waited");
		return QUEUE_CHANGED;
	}
	if (!view->cancelling)
		moves_request_cancel(moves, view->item.id, 0);
	return QUEUE_CHANGED_REQUESTED;
}

static enum queue_changed retry(struct moves *moves, const struct queue_view *view, bool any)
{
	if (!is_over(view) || (view->state == QUEUE_SUCCEEDED && !any))
		return QUEUE_CHANGED_NOT;
	require(moves, view);
	/* Its dependents must know of its end, and moves_reopen needs a free pending/new/ID. */
	moves_require(moves, "pending/over", view->item.id, 0);
	moves_require(moves, "pending/new", view->item.id, 0);
	moves_reopen(moves, &view->item, view->state, view->history.starts, view->after);
	return QUEUE_CHANGED;
}

static enum queue_changed forget(struct moves *moves, const struct queue_view *view)
{
	static const char *const places[] = {"item", "done", "out", "err"};
	if (!is_over(view))
		return QUEUE_CHANGED_NOT;
	require(moves, view);
	moves_require(moves, "pending/over", view->item.id, 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		transaction_delete(&moves->t,
			queue_own_key_at(moves->queue, &moves->t, places[i], view->item.id));
	return QUEUE_CHANGED;
}

/* Remove the files of a command. Call this only when the store no longer names them. */
static void remove_files(
	const struct queue *queue, const struct queue_view *view, enum queue_change how)
{
	if (view->result.out_filed || view->result.err_filed)
		output_remove_both(queue, view->item.id, view->result.token);
	if (how == QUEUE_FORGET)
		files_remove_item(queue, view->item.id, true);
}

/* For the commands that are put back: fill view->after with what blocks them now. */
static enum status find_blocking(
	struct queue *queue, struct queue_view *views, size_t count, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		struct parse_numbers ids = {0};
		if (!views[i].item.after || !is_over(&views[i]))
			continue;
		status = parse_numbers(views[i].item.after, QUEUE_ID_MAX, &ids, "after", err);
		if (status == STATUS_OK)
			status = queue_after(queue, &ids, true, &views[i].after, err);
		parse_numbers_release(&ids);
	}
	return status;
}

/* One try. STATUS_NO: a command has moved since it was read. */
static enum status change(struct queue *queue, enum queue_change how, struct queue_view *views,
	size_t count, enum queue_changed *changed, struct error *err)
{
	struct moves moves;
	uint64_t ids[QUEUE_CHANGE_BATCH];
	store_revision dependents[QUEUE_CHANGE_BATCH] = {0};
	enum status status = moves_begin(&moves, queue, err);
	for (size_t i = 0; i < count; i++)
		ids[i] = views[i].item.id;
	if (status == STATUS_OK && how == QUEUE_CANCEL)
		status = queue_dependents(queue, ids, count, dependents, err);
	else if (status == STATUS_OK && how != QUEUE_FORGET)
		status = find_blocking(queue, views, count, err);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		if (!views[i].item.id)
			changed[i] = QUEUE_CHANGED_ABSENT;
		else if (how == QUEUE_CANCEL)
			changed[i] = cancel(&moves, &views[i], dependents[i]);
		else if (how == QUEUE_FORGET)
			changed[i] = forget(&moves, &views[i]);
		else
			changed[i] = retry(&moves, &views[i], how == QUEUE_RETRY_ANY);
	}
	if (status == STATUS_OK && moves.t.op_count)
		status = moves_run_told(&moves, err);
	moves_release(&moves);
	return status;
}

enum status queue_change(struct queue *queue, enum queue_change how, const uint64_t *ids,
	size_t count, enum queue_changed *changed, struct error *err)
{
	struct queue_view views[QUEUE_CHANGE_BATCH];
	enum status status;
	do {
		/* Before a finished command is put back or forgotten, tell its dependents of its
		 * end. */
		status = how == QUEUE_CANCEL ? STATUS_OK : queue_carry_on(queue, NULL, err);
		if (status == STATUS_OK)
			status = queue_inspect_some(queue, ids, count, views, err);
		if (status != STATUS_OK)
			return status;
		status = change(queue, how, views, count, changed, err);
		for (size_t i = 0; i < count; i++) {
			if (status == STATUS_OK && how != QUEUE_CANCEL &&
				changed[i] == QUEUE_CHANGED)
				remove_files(queue, &views[i], how);
			queue_view_release(&views[i]);
		}
	} while (status == STATUS_NO);
	/* If this fails, workers and other clients carry on. */
	if (status == STATUS_OK)
		(void)queue_carry_on(queue, NULL, NULL);
	return status;
}
