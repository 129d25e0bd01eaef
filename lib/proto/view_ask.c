/* SPDX-License-Identifier: MIT */
/* Questions about all tasks of a view together. */
#include "proto/view.h"

#include <string.h>

#include "base/clock.h"

#define CHECKED_MOST 16 /* processes to check, once another task has checked all */

uint64_t view_joined(const struct view *view)
{
	uint64_t tasks = view->attempt.tasks;
	uint64_t count = view->shown[RECORD_TASK] + view_unseen(view, RECORD_TASK);
	return view->all_there || count > tasks ? tasks : count;
}

/* Count the tasks that have joined, or still can join, and have neither left nor died. */
static uint64_t count_there(const struct view *view)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		count += agreement_counts(&view->agreement, i) &&
			 (view_has_joined(view, i) || !*view->seal);
	return count;
}

bool view_all_through(const struct view *view)
{
	return count_there(view) == 0;
}

bool view_may_be_through(const struct view *view)
{
	uint64_t gone = 0, unseen = 0;
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		gone += !view->members[i].shown[RECORD_TASK] &&
			!agreement_counts(&view->agreement, i);
	/* Tasks whose TASK was counted but not read are there, too, unless known to be gone. */
	if (*view->seal && !view->all_there && view_unseen(view, RECORD_TASK) > gone)
		unseen = view_unseen(view, RECORD_TASK) - gone;
	return count_there(view) + unseen <= view_unseen(view, RECORD_LEFT);
}

int64_t view_leave_by(const struct view *view)
{
	int64_t deadline = view->agreement.deadline;
	return deadline == CLOCK_NEVER ? CLOCK_NEVER : deadline - LEAVE_EARLY;
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
	return !view_has_joined(view, task) ||
	       (view->agreement.peers[task].left == REASON_NONE && view_is_surely_dead(view, task));
}

bool view_is_gathered(const struct view *view)
{
	unsigned looked = 0;
	/* Checking processes takes time: check none before all tasks have joined. */
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
