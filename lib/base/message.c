/* SPDX-License-Identifier: MIT */
#include "base/message.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

static const char *program = "preempt";
static enum message_level threshold = MESSAGE_NORMAL;
static int64_t patience = -1; /* ms; negative: for ever */
static bool stalled;

void message_program(const char *name)
{
	program = name;
}

void message_level(enum message_level level)
{
	threshold = level;
}

void message_patience(int64_t milliseconds)
{
	patience = milliseconds;
}

bool message_is_quiet(void)
{
	return threshold <= MESSAGE_QUIET;
}

/* Whether stderr takes a line now, or within the patience; waited for in full only once. */
static bool is_taken(void)
{
	struct pollfd polled = {.fd = STDERR_FILENO, .events = POLLOUT};
	int64_t until = clock_after(stalled ? 0 : patience);
	int ready;
	if (patience < 0)
		return true;
	do
		ready = poll(&polled, 1, clock_poll_timeout(until));
	while (ready < 0 && errno == EINTR);
	stalled = ready == 0;
	return !stalled;
}

static void say(const char *format, va_list arguments)
{
	char raw[1024];
	char line[1400];
	vsnprintf(raw, sizeof(raw), format, arguments);
	int used = snprintf(line, sizeof(line), "%s: ", program);
	text_escape(line + used, sizeof(line) - (size_t)used - 1, raw, strlen(raw));
	strcat(line, "\n");
	int kept = errno;
	if (is_taken())
		(void)file_write_all(STDERR_FILENO, line, strlen(line));
	errno = kept;
}

#define SAY_FROM(level)                                                                            \
	do {                                                                                       \
		va_list arguments;                                                                 \
		if (threshold < (level))                                                           \
			return;                                                                    \
		va_start(arguments, format);                                                       \
		say(format, arguments);                                                            \
		va_end(arguments);                                                                 \
	} while (0)

void message_error(const char *format, ...)
{
	SAY_FROM(MESSAGE_QUIET);
}

void message_warnings(const char *lines)
{
	for (const char *line = lines ? lines : "", *end; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		if (end > line)
			message_error("warning: %.*s", (int)(end - line), line);
	}
}

void message_info(const char *format, ...)
{
	SAY_FROM(MESSAGE_NORMAL);
}

void message_detail(const char *format, ...)
{
	SAY_FROM(MESSAGE_VERBOSE);
}

int message_fail(const struct error *err)
{
	message_error("%s", err->text);
	return err->status;
}

int message_close(int code)
{
	int failed = fflush(stdout) == EOF || ferror(stdout);
	/* A stdout that was closed at the start is an error only if something was to be
	 * written. */
	if (fclose(stdout) == EOF && errno != EBADF)
		failed = 1;
	if (failed && errno != EPIPE)
		message_error("cannot write the answer to stdout: %s", strerror(errno));
	return failed && code == 0 ? STATUS_TEMPORARY : code;
}
