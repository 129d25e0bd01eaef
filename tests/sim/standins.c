/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for base/message.c, base/process/reaper.c and notice/source_set.c: messages go into the
 * trace, the world is told of each reaper, and notices come from the world. idle.c has the
 * stand-ins that need no world.
 */
#include <signal.h>
#include <string.h>

#include "base/message.h"
#include "kernel.h"
#include "nothing.h"
#include "notice/source_set.h"

/* ---- Messages ---- */

static void say(const char *format, va_list args)
{
	const struct process *process = process_current();
	char text[512];
	if (!kernel.trace)
		return;
	vsnprintf(text, sizeof(text), format, args);
	kernel_trace("", "process %d says: %s", process ? process->who.pid : 0, text);
}

#define SAY(format)                                                                                \
	va_list args;                                                                              \
	va_start(args, format);                                                                    \
	say(format, args);                                                                         \
	va_end(args)

void message_error(const char *format, ...)
{
	SAY(format);
}

void message_info(const char *format, ...)
{
	SAY(format);
}

void message_detail(const char *format, ...)
{
	(void)format;
}

void message_event(const struct message_event *event, const char *text)
{
	if (event->level < MESSAGE_VERBOSE)
		message_info("%s", text);
}

void message_add_json(const struct message_event *event, const char *said, struct text *line)
{
	(void)event;
	text_add(line, said);
}

NOTHING(message_attempt, uint64_t)
NOTHING(message_warnings, const char *)

int message_fail(const struct error *err)
{
	message_error("%s", err->text);
	return err->status;
}

NOTHING(message_program, const char *)
NOTHING(message_level, enum message_level)
NOTHING(message_patience, int64_t)
ANSWERS(false, bool, message_is_quiet, void)

int message_close(int code)
{
	return code;
}

/* ---- Reapers ---- */

enum status reaper_start(struct reaper *reaper, struct error *err)
{
	(void)err;
	*reaper = (struct reaper){.socket = -1};
	kernel.world->guarded(process_current(), reaper);
	return STATUS_OK;
}

void reaper_stop(struct reaper *reaper)
{
	(void)reaper;
	kernel.world->guarded(process_current(), NULL);
}

/* ---- Notices ---- */

bool process_give_notice(struct process *process, int64_t left)
{
	int64_t now = kernel.now / MS + CLOCK_ZERO + process->clock;
	if (process->notice_count == MOST_NOTICES)
		return false;
	process->notices[process->notice_count++] = (struct notice){.source = "signal:TERM",
		.signal = SIGTERM,
		.received = now,
		.received_utc = now,
		.deadline = left < 0 ? CLOCK_NEVER : now + left};
	process_poke(process);
	return true;
}

bool source_set_take(struct source_set *watch, struct notice *notice)
{
	(void)watch;
	struct process *process = process_current();
	if (!process->notice_count)
		return false;
	*notice = process->notices[0];
	process->notice_count--;
	memmove(process->notices, process->notices + 1,
		process->notice_count * sizeof(*process->notices));
	return true;
}
