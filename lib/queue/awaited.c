/* SPDX-License-Identifier: MIT */
/* The outcome of the commands that a caller waits for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/moves.h"

/*
 * Keep in *first the failure that came first, or view if it is `better`. True: it is view.
 */
static bool keep_first(struct queue_failure *first, const struct queue_view *view, bool better)
{
	bool sooner = view->result.ended < first->utc ||
		      (view->result.ended == first->utc && view->item.id < first->id);
	if (!better && !sooner)
		return false;
	queue_failure_of(&view->item, &view->result, first);
	return true;
}

static enum status add(void *context, const struct queue_view *view)
{
	struct queue_awaited *outcome = context;
	outcome->commands++;
	if (view->state < QUEUE_SUCCEEDED) {
		outcome->going_on++;
	} else if (view->state == QUEUE_FAILED && view->item.halt != HALT_NEVER) {
		keep_first(&outcome->first, view, !outcome->failed);
		outcome->failed++;
	} else if (view->state == QUEUE_FAILED) {
		keep_first(&outcome->first_kept_going, view, !outcome->kept_going);
		if (outcome->kept_going < QUEUE_AWAITED_NAMED)
			outcome->named[outcome->kept_going] = view->item.id;
		outcome->kept_going++;
	} else if (view->state == QUEUE_CANCELLED && view->result.because) {
		if (!outcome->failed && keep_first(&outcome->first, view, !outcome->cancelled))
			outcome->because = view->result.because;
		outcome->cancelled++;
	}
	return STATUS_OK;
}

struct tagged {
	const char *tag;
	struct queue_awaited *outcome;
};

static enum status add_tagged(void *context, const struct queue_view *view)
{
	struct tagged *tagged = context;
	return view->item.tag && !strcmp(view->item.tag, tagged->tag) ? add(tagged->outcome, view)
								      : STATUS_OK;
}

static enum status add_named(struct queue *queue, const struct queue_selection *set,
	struct queue_awaited *outcome, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t at = 0; at < set->count && status == STATUS_OK; at += QUEUE_CHANGE_BATCH) {
		struct queue_view views[QUEUE_CHANGE_BATCH] = {0};
		size_t count = set->count - at;
		if (count > QUEUE_CHANGE_BATCH)
			count = QUEUE_CHANGE_BATCH;
		status = queue_inspect_some(queue, set->ids + at, count, views, err);
		for (size_t i = 0; i < count; i++) {
			if (status == STATUS_OK && views[i].item.id)
				(void)add(outcome, &views[i]);
			else if (status == STATUS_OK && !outcome->absent)
				outcome->absent = set->ids[at + i];
			queue_view_release(&views[i]);
		}
	}
	return status;
}

static enum status add_all(struct queue *queue, const struct queue_count *count,
	struct queue_awaited *outcome, struct error *err)
{
	static const enum queue_state failed = QUEUE_FAILED, cancelled = QUEUE_CANCELLED;
	store_revision since = 0, again = 0;
	enum status status = STATUS_OK;
	outcome->going_on = count->waiting + count->running;
	if (!outcome->going_on && count->failed)
		status = queue_visit_done(queue, &since, &failed, add, outcome, err);
	if (!outcome->going_on && count->cancelled && status == STATUS_OK)
		status = queue_visit_done(queue, &again, &cancelled, add, outcome, err);
	outcome->commands = count->scheduled;
	return status;
}

enum status queue_awaited(struct queue *queue, const struct queue_selection *set,
	const struct queue_count *count, struct queue_awaited *outcome, struct error *err)
{
	struct queue_awaited found = {0};
	struct tagged tagged = {set->tag, &found};
	enum status status = set->tag	  ? queue_visit(queue, 0, add_tagged, &tagged, err)
			     : set->count ? add_named(queue, set, &found, err)
					  : add_all(queue, count, &found, err);
	if (status == STATUS_OK)
		*outcome = found;
	return status;
}

/* STATUS_NO: no such command was ever scheduled; the user may have mistyped a name. */
static enum status say_nothing_there(const struct queue *queue, const struct queue_selection *set,
	const struct queue_awaited *outcome, struct error *err)
{
	if (outcome->absent)
		return error_set(err, STATUS_NO,
			"queue %s: there is no command %" PRIu64
			": it was never scheduled, or it was forgotten",
			queue->name, outcome->absent);
	if (set->tag)
		return error_set(err, STATUS_NO, "queue %s: no command has the tag \"%s\"",
			queue->name, set->tag);
	return error_set(
		err, STATUS_NO, "queue %s: nothing was ever scheduled; see --queue", queue->name);
}

static enum status say_kept_going(
	const struct queue *queue, const struct queue_awaited *outcome, struct error *err)
{
	struct text ids = {0};
	for (uint64_t i = 0; i < outcome->kept_going && i < QUEUE_AWAITED_NAMED; i++)
		text_addf(&ids, "%s%" PRIu64, i ? ", " : "", outcome->named[i]);
	if (outcome->kept_going > QUEUE_AWAITED_NAMED)
		text_add(&ids, " ...");
	(void)error_set(err, STATUS_NO,
		"queue %s: %" PRIu64 " of %" PRIu64
		" commands failed: %s; preempt-queue list --state failed shows them",
		queue->name, outcome->kept_going, outcome->commands, text_string(&ids));
	text_release(&ids);
	return STATUS_NO;
}

enum status queue_awaited_answer(const struct queue *queue, const struct queue_selection *set,
	const struct queue_awaited *outcome, struct error *err)
{
	if (outcome->absent || !outcome->commands)
		return say_nothing_there(queue, set, outcome, err);
	if (outcome->failed) {
		struct queue_failure first = outcome->first;
		first.cancelled = outcome->cancelled;
		first.others = outcome->failed - 1;
		queue_failure_say(queue, &first, err);
		return STATUS_BROKEN;
	}
	if (outcome->cancelled)
		return error_set(err, STATUS_BROKEN,
			"queue %s: command %" PRIu64 " (%s)%s cancelled because command %" PRIu64
			" failed; retry --cancelled puts back what was cancelled, forget removes it",
			queue->name, outcome->first.id, outcome->first.command,
			outcome->cancelled > 1 ? " and others were" : " was", outcome->because);
	return outcome->kept_going ? say_kept_going(queue, outcome, err) : STATUS_OK;
}
