/* SPDX-License-Identifier: MIT */
/*
 * In place of base/terminal.c, group/pump.c and group/stream.c, whose real work lies outside of the
 * world.
 */
#include "base/terminal.h"
#include "group/pump.h"
#include "group/stream.h"
#include "sim.h"

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
