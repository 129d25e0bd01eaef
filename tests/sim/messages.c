/* SPDX-License-Identifier: MIT */
/* In place of base/message.c: what people are told is a line of the trace. */
#include "base/message.h"

#include "kernel.h"

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

void message_warnings(const char *lines)
{
	(void)lines;
}

int message_fail(const struct error *err)
{
	message_error("%s", err->text);
	return err->status;
}

void message_program(const char *name)
{
	(void)name;
}

void message_level(enum message_level level)
{
	(void)level;
}

void message_patience(int64_t milliseconds)
{
	(void)milliseconds;
}

bool message_is_quiet(void)
{
	return false;
}

int message_close(int code)
{
	return code;
}
