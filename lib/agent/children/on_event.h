/* SPDX-License-Identifier: MIT */
/*
 * --on-event: a shell command of the user's that is run for each event of the group, one after the
 * other, with the event in its environment and as a line of JSON on its stdin (empty if the line
 * has more than 4096 bytes). The agent does not wait for it: events queue up, and a command that
 * takes too long is ended. A failure is reported as a warning. Private to lib/agent.
 */
#ifndef AGENT_CHILDREN_ON_EVENT_H
#define AGENT_CHILDREN_ON_EVENT_H

#include "agent/children/hook.h"
#include "base/message.h"

#define ON_EVENT_QUEUE 16    /* events that wait, at most */
#define ON_EVENT_LIMIT 10000 /* ms for the command of one event */

struct on_event_waiting {
	const char *word;
	char **environment;
	char *line; /* of JSON */
};

/* Set command, run and store, which must stay valid, and zero the rest. The agent sets attempt. */
struct on_event {
	const char *command; /* run by sh; NULL: no event is passed on */
	const char *run, *store;
	uint64_t attempt;
	struct on_event_waiting queue[ON_EVENT_QUEUE];
	size_t count;	     /* of queue */
	const char *running; /* the word of the event that the command runs for */
	struct hook hook;
};

/* Queue an event with its message. If too many wait, it is left out, with a warning. */
void on_event_add(struct on_event *on_event, const struct message_event *event, const char *said);
/* Reap a command that has ended, start the next. *wake becomes at most its time limit. */
void on_event_advance(struct on_event *on_event, int64_t now, int64_t *wake);
/* Run the commands of the waiting events, at most until the instant `until`; drop the rest. */
void on_event_finish(struct on_event *on_event, int64_t until);

#endif
