/* SPDX-License-Identifier: MIT */
#include "agent/children/on_event.h"

#include <ctype.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/process/descriptor.h"
#include "base/process/variables.h"
#include "base/xalloc.h"

#define INPUT_MOST 4096 /* bytes that a command takes on its stdin (subprocess.h) */

/* Set PREEMPT_EVENT_STEP and the like from the fields of the event. */
static void set_fields(struct variables *list, const struct json_object *fields)
{
	json_object_object_foreach(fields, name, value)
	{
		char variable[64];
		snprintf(variable, sizeof(variable), "PREEMPT_EVENT_%s", name);
		for (char *c = variable; *c; c++)
			*c = (char)toupper((unsigned char)*c);
		variables_set(list, variable, json_object_get_string(value));
	}
}

static char **environment_of(
	const struct on_event *on_event, const struct message_event *event, const char *said)
{
	struct variables list = {0};
	variables_inherit(&list);
	variables_set(&list, "PREEMPT_EVENT", event->word);
	variables_set(&list, "PREEMPT_EVENT_TEXT", said);
	variables_set(&list, "PREEMPT_RUN", on_event->run);
	variables_set(&list, "PREEMPT_STORE", on_event->store);
	variables_set_number(&list, "PREEMPT_ATTEMPT", on_event->attempt);
	if (event->fields)
		set_fields(&list, event->fields);
	return list.items;
}

static void waiting_release(struct on_event_waiting *waiting)
{
	variables_release(&(struct variables){.items = waiting->environment});
	free(waiting->line);
}

void on_event_add(struct on_event *on_event, const struct message_event *event, const char *said)
{
	struct text line = {0};
	if (!on_event->command)
		return;
	if (on_event->count == ON_EVENT_QUEUE) {
		message_error("warning: --on-event: its command is behind by %d events; it is not "
			      "run for \"%s\"",
			ON_EVENT_QUEUE, event->word);
		return;
	}
	message_add_json(event, said, &line);
	text_add(&line, "\n");
	bool fits = !line.too_long && line.length <= INPUT_MOST;
	on_event->queue[on_event->count++] = (struct on_event_waiting){.word = event->word,
		.environment = environment_of(on_event, event, said),
		.line = xstrdup(fits ? line.data : "")};
	text_release(&line);
}

static void start_next(struct on_event *on_event, int64_t now)
{
	struct on_event_waiting next = on_event->queue[0];
	on_event->count--;
	memmove(on_event->queue, on_event->queue + 1, on_event->count * sizeof(next));
	on_event->running = next.word;
	/* Our stdout belongs to the training. */
	hook_start(&on_event->hook, "--on-event",
		&(struct subprocess_options){.shell = on_event->command,
			.environment = next.environment,
			.input = next.line,
			.standard[1] = STDERR_FILENO,
			.limit = now + ON_EVENT_LIMIT});
	waiting_release(&next);
}

void on_event_advance(struct on_event *on_event, int64_t now, int64_t *wake)
{
	while (!hook_runs(&on_event->hook, now, wake)) {
		const struct subprocess *process = &on_event->hook.process;
		if (on_event->running && process->ended && process->code && !process->late)
			message_error("warning: --on-event: the command failed with %d for the "
				      "event \"%s\"",
				process->code, on_event->running);
		on_event->running = NULL;
		if (!on_event->count)
			return;
		subprocess_release(&on_event->hook.process);
		start_next(on_event, now);
	}
}

/* Readable when the command that runs has ended; -1: none runs, or there is no pidfd for it. */
static int descriptor_of(const struct on_event *on_event)
{
	const struct subprocess *process = &on_event->hook.process;
	return process->pid ? process->end.descriptor : -1;
}

void on_event_finish(struct on_event *on_event, int64_t until)
{
	for (int64_t now; (now = clock_now()) < until;) {
		int64_t wake = until;
		on_event_advance(on_event, now, &wake);
		if (!on_event->hook.process.pid)
			break;
		(void)descriptor_wait(descriptor_of(on_event), wake);
	}
	size_t left = on_event->count + (on_event->hook.process.pid != 0);
	if (left)
		message_error(
			"warning: --on-event: this program ended before the command had run for "
			"the last %zu event(s)",
			left);
	subprocess_release(&on_event->hook.process);
	while (on_event->count)
		waiting_release(&on_event->queue[--on_event->count]);
}
