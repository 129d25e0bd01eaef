/* SPDX-License-Identifier: MIT */
/* Decide what a process that wants to join has to do: pure functions of what the store shows. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "run/attempt.h"

enum attempt_join_decision attempt_decide_join(
	const struct attempt_join_state *state, uint64_t tasks)
{
	/* This launch was preempted before we joined: it is to be started again as a whole. */
	if (state->exists && state->claimed && state->same_launch &&
		state->membership == MEMBERSHIP_FREE)
		return ATTEMPT_TOO_LATE;
	if (!state->exists || state->closed)
		return ATTEMPT_OPEN;
	if (state->membership == MEMBERSHIP_OURS)
		return ATTEMPT_JOINED;
	if (state->launch == LAUNCH_OLDER)
		return ATTEMPT_REFUSE_LINGERING;
	if (state->all_through)
		return ATTEMPT_OPEN;
	if (state->membership == MEMBERSHIP_ALIVE)
		return ATTEMPT_REFUSE_ALIVE;
	if (state->launch == LAUNCH_NEWER || state->launch == LAUNCH_OTHER) {
		/* The scheduler started the job again. Tasks of the old launch that still run
		 * conflict with it. */
		if (state->others == MEMBERSHIP_ALIVE)
			return state->launch == LAUNCH_NEWER && state->sealed
				       ? ATTEMPT_WAIT
				       : ATTEMPT_REFUSE_ALIVE;
		if (state->launch == LAUNCH_NEWER)
			return ATTEMPT_DECLARE_DEAD;
		return state->others == MEMBERSHIP_UNKNOWN ||
				       state->membership == MEMBERSHIP_UNKNOWN
			       ? ATTEMPT_WAIT
			       : ATTEMPT_DECLARE_DEAD;
	}
	switch (state->membership) {
	case MEMBERSHIP_LEFT:
	case MEMBERSHIP_UNKNOWN: return ATTEMPT_WAIT;
	case MEMBERSHIP_DEAD: return ATTEMPT_DECLARE_DEAD;
	default: break;
	}
	/*
	 * Without a launch id this may be the first task of a new launch. A sealed attempt is over
	 * when no other task of it lives; one that is not sealed is over when it has lost a task.
	 */
	if (!state->same_launch && (state->sealed ? state->deserted : state->lost))
		return ATTEMPT_DECLARE_DEAD;
	if (state->sealed)
		return state->claimed ? ATTEMPT_TOO_LATE : ATTEMPT_WAIT;
	return state->tasks == tasks ? ATTEMPT_JOIN : ATTEMPT_REFUSE_TASKS;
}

/* The restart count in "SCHEDULER:JOB:RESTART[+...]", and the length of "SCHEDULER:JOB". */
static bool find_restart(const char *launch, size_t *length, uint64_t *restart)
{
	char head[160], *colon;
	snprintf(head, sizeof(head), "%.*s", (int)strcspn(launch, "+"), launch);
	colon = strrchr(head, ':');
	if (!colon || colon == strchr(head, ':') || !parse_decimal(colon + 1, restart))
		return false;
	*length = (size_t)(colon - head);
	return true;
}

enum launch_order attempt_compare_launch(const char *ours, const char *theirs)
{
	size_t length, other_length;
	uint64_t restart, other_restart;
	if (!*ours || !*theirs || !strcmp(ours, theirs))
		return LAUNCH_SAME;
	if (!find_restart(ours, &length, &restart) ||
		!find_restart(theirs, &other_length, &other_restart) || length != other_length ||
		strncmp(ours, theirs, length) || restart == other_restart)
		return LAUNCH_OTHER; /* for instance two steps of one job: neither is newer */
	return restart > other_restart ? LAUNCH_NEWER : LAUNCH_OLDER;
}
