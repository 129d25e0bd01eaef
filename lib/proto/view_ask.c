/* SPDX-License-Identifier: MIT */
/* Questions about all tasks of a view together. */
#include "proto/view.h"

#include <string.h>

/* Processes of this machine that a task checks after another task has checked all. */
#define CHECKED_MOST 16

/* The largest number of tasks that share one agent, which may write for all of them in one change.
 */
static uint64_t tasks_together(const struct view *view)
{
	uint64_t most = 1, run = 1;
	for (uint64_t i = 1; i < view->attempt.tasks; i++) {
		const struct process_identity *who = &view->members[i].agent;
		const struct process_identity *before = &view->members[i - 1].agent;
		bool same = who->pid && who->pid == before->pid && who->start == before->start &&
			    !strcmp(who->boot, before->boot);
		run = same ? run + 1 : 1;
		if (run > most)
			most = run;
	}
	return most;
}

uint64_t view_unread(const struct view *view)
{
	store_revision changes = view->store - view->revision - (store_revision)view->written_all;
	return changes > 0 ? (uint64_t)changes : 0;
}

uint64_t view_unseen_records(const struct view *view)
{
	uint64_t changes = view_unseen(view);
	return changes ? changes * tasks_together(view) : 0;
}

uint64_t view_joined(const struct view *view)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		count += view->members[i].joined;
	return count;
}

/* How many tasks that have joined, or still may, have not left and are not dead. */
static uint64_t count_there(const struct view *view)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		bool may_join = !view->members[i].joined && !*view->seal;
		count += agreement_counts(&view->agreement, i) &&
			 (view->members[i].joined || may_join);
	}
	return count;
}

bool view_all_through(const struct view *view)
{
	return count_there(view) == 0;
}

bool view_may_be_through(const struct view *view)
{
	/*
	 * Of what was not read since the last whole reading, so many are reports and saves, once
	 * all have saved; the rest may be goodbyes.
	 */
	const struct agreement_view *a = &view->agreement;
	uint64_t unread = view_unread(view) * tasks_together(view), others = 0;
	bool all_saved = a->decided && a->all_saved == a->round;
	for (uint64_t i = 0; i < a->tasks && all_saved; i++)
		if (a->peers[i].member && agreement_counts(a, i))
			others +=
				(!a->peers[i].reported && !view->members[i].unreported ? 1U : 0U) +
				(a->peers[i].saved ? 0U : 1U);
	return unread >= count_there(view) + others || view_all_through(view);
}

const char *view_why(const struct view *view)
{
	return *view->seal_text ? view->seal_text : view->seal;
}

bool view_all_completed(const struct view *view)
{
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		if (view->agreement.peers[i].left != REASON_COMPLETED)
			return false;
	return true;
}

bool view_is_surely_dead(const struct view *view, uint64_t task)
{
	return view->agreement.peers[task].dead ||
	       process_check(&view->members[task].agent) == PROCESS_GONE;
}

static bool is_missing(const void *context, uint64_t task)
{
	const struct view *view = context;
	return !view->members[task].joined ||
	       (view->agreement.peers[task].left == REASON_NONE && view_is_surely_dead(view, task));
}

bool view_is_gathered(const struct view *view)
{
	unsigned looked = 0;
	/* Looking at processes takes time: none is looked at before all places are taken. */
	if (view_joined(view) < view->attempt.tasks)
		return false;
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		if (is_missing(view, i))
			return false;
		/* The task that joined last has checked all processes a moment ago. */
		looked += process_check(&view->members[i].agent) == PROCESS_ALIVE;
		if (view->all_joined && looked == CHECKED_MOST)
			break;
	}
	return true;
}

uint64_t view_name_missing(const struct view *view, struct text *text)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		count += is_missing(view, i);
	keys_write_set(view->attempt.tasks, is_missing, view, text);
	return count;
}
