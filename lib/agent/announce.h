/* SPDX-License-Identifier: MIT */
/*
 * The events that agents report to users and programs, and which agent reports them. What concerns
 * the whole group is reported once per job: by the agent of task 0, or, if that task is dead or the
 * decision was made without its report, by the agent of the next task. Each agent finds this out
 * from its own view. Private to lib/agent.
 */
#ifndef AGENT_ANNOUNCE_H
#define AGENT_ANNOUNCE_H

#include "agent/children/on_event.h"
#include "proto/view.h"
#include "run/identity.h"

/* What may happen; preempt-run(1) has the words. */
enum announce_event {
	ANNOUNCE_JOINED,
	ANNOUNCE_REJOINED, /* the same, of an attempt after the first */
	ANNOUNCE_NOTICE,
	ANNOUNCE_CLAIM,
	ANNOUNCE_AGREED,
	ANNOUNCE_WAITING,
	ANNOUNCE_SAVED,
	ANNOUNCE_ALL_SAVED,
	ANNOUNCE_ALONE,
	ANNOUNCE_BROKEN,
	ANNOUNCE_DEAD,
	ANNOUNCE_HANGS,
	ANNOUNCE_CUT_OFF,
	ANNOUNCE_AGAIN,
	ANNOUNCE_STOPPED, /* the end, by the limits of --restarts */
	ANNOUNCE_END,
};

enum announce_by {
	ANNOUNCE_OTHERS, /* another agent reports it: print it here only with -v */
	ANNOUNCE_OWN,	 /* it concerns the tasks here: print it, run no command */
	ANNOUNCE_GROUP,	 /* this agent speaks for all: print it and run --on-event */
};

/* Report an event as `by` asks. Takes fields over (NULL: none). on_event may be NULL. */
void announce(struct on_event *on_event, enum announce_event event, enum announce_by by,
	struct json_object *fields, const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * The task whose agent speaks for all; 0 before any has joined. A task that has completed is only
 * chosen if `completed` is true, which means: the event is that tasks complete.
 */
uint64_t announce_speaker(const struct view *view, bool completed);
/* ANNOUNCE_GROUP if that task is one of identity's, else ANNOUNCE_OTHERS. */
enum announce_by announce_by(
	const struct view *view, const struct identity *identity, bool completed);

/* Set name to "3" or "0-7". */
void announce_name_tasks(uint64_t first, uint64_t count, char name[64]);

#endif
