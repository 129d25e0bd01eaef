/* SPDX-License-Identifier: MIT */
/* What is right for a process that wants to join, as pure functions of what there is. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "group/attempt.h"

enum attempt_verdict attempt_judge(const struct attempt_scene *scene, uint64_t tasks)
{
	/* The others of this launch have left already; it is to be started again as a whole. */
	if (scene->exists && scene->claimed && scene->same_launch && scene->slot == SLOT_FREE)
		return ATTEMPT_TOO_LATE;
	if (!scene->exists || scene->closed)
		return ATTEMPT_OPEN;
	if (scene->slot == SLOT_OURS)
		return ATTEMPT_JOINED;
	if (scene->launch == LAUNCH_OLDER)
		return ATTEMPT_REFUSE_LINGERING;
	if (scene->all_through)
		return ATTEMPT_OPEN;
	if (scene->slot == SLOT_ALIVE)
		return ATTEMPT_REFUSE_ALIVE;
	if (scene->launch == LAUNCH_NEWER || scene->launch == LAUNCH_OTHER) {
		/* The scheduler started the job again. Tasks of the old launch that still run
		 * conflict with it. */
		if (scene->others == SLOT_ALIVE)
			return scene->launch == LAUNCH_NEWER && scene->sealed
				       ? ATTEMPT_WAIT
				       : ATTEMPT_REFUSE_ALIVE;
		if (scene->launch == LAUNCH_NEWER)
			return ATTEMPT_BURY;
		return scene->others == SLOT_UNKNOWN || scene->slot == SLOT_UNKNOWN ? ATTEMPT_WAIT
										    : ATTEMPT_BURY;
	}
	switch (scene->slot) {
	case SLOT_LEFT:
	case SLOT_UNKNOWN: return ATTEMPT_WAIT;
	case SLOT_DEAD: return ATTEMPT_BURY;
	default: break;
	}
	/*
	 * Without a launch id this may be the first task of a new launch. An attempt is over when
	 * nobody lives who joined it; one that is not complete yet, when it has lost a task.
	 */
	if (!scene->same_launch && (scene->sealed ? scene->deserted : scene->lost))
		return ATTEMPT_BURY;
	if (scene->sealed)
		return scene->claimed ? ATTEMPT_TOO_LATE : ATTEMPT_WAIT;
	return scene->tasks == tasks ? ATTEMPT_JOIN : ATTEMPT_REFUSE_TASKS;
}

/* The restart count in "SCHEDULER:JOB:RESTART[+...]", and the length of what stands before it. */
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
		return LAUNCH_OTHER; /* two steps of one job, say: neither is to be preferred */
	return restart > other_restart ? LAUNCH_NEWER : LAUNCH_OLDER;
}
