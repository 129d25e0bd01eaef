/* SPDX-License-Identifier: MIT */
/*
 * In place of base/guard.c, base/terminal.c, notice/watch.c, group/pump.c and
 * group/stream.c, whose real work lies outside of the world.
 */
#include <string.h>

#include "base/guard.h"
#include "base/terminal.h"
#include "group/pump.h"
#include "group/stream.h"
#include "notice/watch.h"
#include "sim.h"

/* ---- The guard, by which the world finds the agent that has it ---- */

enum status guard_start(struct guard *guard, struct error *err)
{
	(void)err;
	struct node *node = machine_current();
	node->self = (struct agent *)((char *)guard - offsetof(struct agent, guard));
	node->boards = node->commands = 0;
	*guard = (struct guard){.socket = -1};
	return STATUS_OK;
}

void guard_stop(struct guard *guard)
{
	struct node *node = machine_current();
	struct world *w = node->world;
	(void)guard;
	for (int i = 0; i < w->schedule->tasks && !node->ghost; i++)
		if (schedule_agent_of(w->schedule, i) == node->agent)
			w->task[i].seat = NULL;
	node->self = NULL;
}

void guard_add(const struct guard *guard, pid_t group)
{
	(void)guard, (void)group;
}

void guard_remove(const struct guard *guard, pid_t group)
{
	(void)guard, (void)group;
}

void guard_add_directory(const struct guard *guard, const char *path)
{
	(void)guard, (void)path;
}

bool guard_keep(struct guard *guard)
{
	(void)guard;
	return false;
}

/* ---- Notices ---- */

enum status watch_add(struct watch *watch, struct source *source, struct error *err)
{
	(void)watch, (void)source, (void)err;
	return STATUS_OK;
}

void watch_release(struct watch *watch)
{
	(void)watch;
}

size_t watch_poll(const struct watch *watch, struct pollfd *polls)
{
	(void)watch, (void)polls;
	return 0;
}

int64_t watch_due(const struct watch *watch)
{
	(void)watch;
	return CLOCK_NEVER;
}

void watch_begin(struct watch *watch, const struct pollfd *polls)
{
	(void)watch, (void)polls;
}

enum watch_event watch_next(
	struct watch *watch, size_t *which, struct notice *notice, struct error *err)
{
	(void)watch, (void)err;
	struct node *node = machine_current();
	if (!node->notice_count)
		return WATCH_END;
	*which = 0;
	*notice = node->notices[0];
	node->notice_count--;
	memmove(node->notices, node->notices + 1, node->notice_count * sizeof(*node->notices));
	return WATCH_NOTICE;
}

bool watch_take_held(struct watch *watch, struct notice *notice)
{
	(void)watch, (void)notice;
	return false;
}

bool watch_owns(const struct watch *watch, pid_t pid)
{
	(void)watch, (void)pid;
	return false;
}

/* ---- No terminal, no stderr, no second stream of beats ---- */

void terminal_open(struct terminal *terminal)
{
	terminal->descriptor = -1;
}

void terminal_close(struct terminal *terminal)
{
	(void)terminal;
}

bool terminal_is_ours(const struct terminal *terminal)
{
	(void)terminal;
	return false;
}

bool terminal_is_of(const struct terminal *terminal, pid_t group)
{
	(void)terminal, (void)group;
	return false;
}

bool terminal_is_gone(const struct terminal *terminal)
{
	(void)terminal;
	return false;
}

bool terminal_is_used(const struct terminal *terminal)
{
	(void)terminal;
	return false;
}

bool terminal_lend(const struct terminal *terminal, pid_t group)
{
	(void)terminal, (void)group;
	return false;
}

void terminal_take_back(const struct terminal *terminal, pid_t group)
{
	(void)terminal, (void)group;
}

bool terminal_stop(int signal)
{
	(void)signal;
	return false;
}

enum status pump_start(struct pump **pump, size_t count, struct error *err)
{
	(void)count, (void)err;
	*pump = NULL;
	return STATUS_OK;
}

int pump_input(const struct pump *pump, size_t index)
{
	(void)pump, (void)index;
	return 0;
}

void pump_started(struct pump *pump, size_t index)
{
	(void)pump, (void)index;
}

void pump_error_line(struct pump *pump, size_t index, int64_t patience, char line[PUMP_LINE])
{
	(void)pump, (void)index, (void)patience;
	*line = '\0';
}

void pump_stop(struct pump *pump)
{
	(void)pump;
}

enum status stream_claim(const char *store, const struct attempt *attempt, uint64_t task,
	int *descriptor, struct error *err)
{
	(void)store, (void)attempt, (void)task, (void)err;
	*descriptor = -1;
	return STATUS_OK;
}

bool stream_is_stopped(int descriptor)
{
	(void)descriptor;
	return false;
}

enum status stream_stop(const char *store, const struct attempt *attempt, uint64_t task,
	int64_t deadline, struct error *err)
{
	(void)store, (void)attempt, (void)task, (void)deadline, (void)err;
	return STATUS_NO;
}
