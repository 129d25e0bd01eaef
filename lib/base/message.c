/* SPDX-License-Identifier: MIT */
#include "base/message.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

static const char *program = "preempt";
static enum message_level threshold = MESSAGE_NORMAL;
static enum message_format shape = MESSAGE_PLAIN;
static const char *about_run, *about_tasks;
static int64_t patience = -1; /* ms; negative: wait for ever */
/* Other threads print messages, too. */
static _Atomic uint64_t about_attempt;
static _Atomic bool stalled;	 /* the last wait for stderr failed */
static _Atomic bool in_progress; /* a line of message_progress is shown */

void message_program(const char *name)
{
	program = name;
}

void message_level(enum message_level level)
{
	threshold = level;
}

void message_format(enum message_format format)
{
	shape = format;
}

void message_about(const char *run, const char *tasks)
{
	about_run = run;
	about_tasks = tasks;
}

void message_attempt(uint64_t attempt)
{
	about_attempt = attempt;
}

void message_patience(int64_t milliseconds)
{
	patience = milliseconds;
}

bool message_is_quiet(void)
{
	return threshold <= MESSAGE_QUIET;
}

/* Return true if stderr can take a line. Wait up to the patience, unless the last wait failed. */
static bool stderr_takes_line(void)
{
	struct pollfd polled = {.fd = STDERR_FILENO, .events = POLLOUT};
	int64_t until = clock_after(stalled ? 0 : patience);
	int ready;
	do
		ready = poll(&polled, 1, clock_poll_timeout(until));
	while (ready < 0 && errno == EINTR);
	stalled = ready == 0;
	return !stalled;
}

/* Another process that shares stderr may have made it non-blocking, and filled it. */
static void write_patiently(const char *line, size_t length)
{
	while (length && stderr_takes_line()) {
		ssize_t n = write(STDERR_FILENO, line, length);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return;
		line += n < 0 ? 0 : n;
		length -= n < 0 ? 0 : (size_t)n;
	}
}

static void write_bytes(const char *bytes, size_t length)
{
	int kept = errno;
	if (patience < 0)
		(void)file_write_all(STDERR_FILENO, bytes, length);
	else
		write_patiently(bytes, length);
	errno = kept;
}

#define ERASE_LINE "\r\033[K"

static void write_line(const char *line, size_t length)
{
	if (in_progress)
		write_bytes(ERASE_LINE, strlen(ERASE_LINE));
	in_progress = false;
	write_bytes(line, length);
}

void message_progress(const char *text)
{
	struct text line = {0};
	if (message_is_quiet() || !isatty(STDERR_FILENO) || (!text && !in_progress))
		return;
	text_addf(&line, ERASE_LINE "%s", text ? text : "");
	write_bytes(line.data, line.length);
	in_progress = text != NULL;
	text_release(&line);
}

void message_add_json(const struct message_event *event, const char *said, struct text *line)
{
	static const char *const levels[] = {"error", "info", "detail"};
	struct json_object *json = json_object_new_object();
	char utc[32];
	clock_format_utc(clock_utc(), utc);
	json_put_text(json, "time", utc);
	json_put_text(json, "level", levels[event->level - MESSAGE_QUIET]);
	json_put_text(json, "program", program);
	if (about_run)
		json_put_text(json, "run", about_run);
	if (about_attempt)
		json_put_unsigned(json, "attempt", about_attempt);
	if (about_tasks)
		json_put_text(json, "tasks", about_tasks);
	json_put_text(json, "event", event->word);
	json_put_text(json, "text", said);
	if (event->fields) {
		json_object_object_foreach(event->fields, name, value)
			json_object_object_add(json, name, json_object_get(value));
	}
	json_add_line(json, line);
	json_object_put(json);
}

static void say_json(const struct message_event *event, const char *said)
{
	struct text line = {0};
	message_add_json(event, said, &line);
	text_add(&line, "\n");
	write_line(text_string(&line), line.length);
	text_release(&line);
}

void message_event(const struct message_event *event, const char *said)
{
	char line[1400], utc[32];
	int used = 0;
	if (threshold < event->level)
		return;
	if (shape == MESSAGE_JSON) {
		say_json(event, said);
		return;
	}
	if (shape == MESSAGE_STAMPED) {
		clock_format_utc(clock_utc(), utc);
		used = snprintf(line, sizeof(line), "%s ", utc);
	}
	used += snprintf(line + used, sizeof(line) - (size_t)used, "%s: ", program);
	text_escape(line + used, sizeof(line) - (size_t)used - 1, said, strlen(said));
	strcat(line, "\n");
	write_line(line, strlen(line));
}

static void say(enum message_level level, const char *format, va_list arguments)
{
	char raw[1024];
	vsnprintf(raw, sizeof(raw), format, arguments);
	message_event(&(struct message_event){.level = level, .word = "message"}, raw);
}

#define SAY_FROM(level)                                                                            \
	do {                                                                                       \
		va_list arguments;                                                                 \
		va_start(arguments, format);                                                       \
		say(level, format, arguments);                                                     \
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

/* number: errno of the writing that failed; 0: not known. */
static void say_lost(int number)
{
	if (number != EPIPE)
		message_error("cannot write the answer to stdout%s%s", number ? ": " : "",
			number ? strerror(number) : "");
}

bool message_print(const char *text)
{
	errno = 0;
	if (fputs(text, stdout) != EOF && fflush(stdout) != EOF)
		return true;
	say_lost(errno);
	clearerr(stdout);
	return false;
}

int message_close(int code)
{
	errno = 0; /* writing may have failed earlier, for a reason that is no longer known */
	int failed = fflush(stdout) == EOF || ferror(stdout);
	int number = errno;
	/* A stdout that was closed at the start is an error only if something was to be
	 * written. */
	if (fclose(stdout) == EOF && errno != EBADF) {
		failed = 1;
		number = errno;
	}
	if (failed)
		say_lost(number);
	return failed && code == 0 ? STATUS_TEMPORARY : code;
}
