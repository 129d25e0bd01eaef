/* SPDX-License-Identifier: MIT */
/*
 * The messages of a program, on stderr: "PROGRAM: TEXT", one line, one write, control characters
 * escaped; or as JSON. For programs, agents and workers; other code fills a struct error instead.
 */
#ifndef BASE_MESSAGE_H
#define BASE_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct json_object;

enum message_level { MESSAGE_QUIET = -1, MESSAGE_NORMAL = 0, MESSAGE_VERBOSE = 1 };

void message_program(const char *name); /* name must stay valid */
void message_level(enum message_level level);

enum message_format {
	MESSAGE_PLAIN,	 /* "PROGRAM: TEXT" */
	MESSAGE_STAMPED, /* the time in UTC, then the same */
	MESSAGE_JSON,	 /* one object per line (message_add_json) */
};
void message_format(enum message_format format);
/* The run and tasks ("0-7") that later JSON lines name; both texts must stay valid. */
void message_about(const char *run, const char *tasks);
void message_attempt(uint64_t attempt);

/*
 * How long (ms) a message waits if the reader of stderr does not read; then messages are dropped
 * until it reads again. For programs that must not block; by default they wait for ever.
 */
void message_patience(int64_t milliseconds);
/* True with -q: leave out output that only a user would read. */
bool message_is_quiet(void);

/* Print an error or a warning, at every level. */
void message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a warning for each line; lines may be NULL. */
void message_warnings(const char *lines);
/* Print what happened; not with -q. */
void message_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print why it happened; only with -v. */
void message_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A message that programs recognize by its word. */
struct message_event {
	enum message_level level;   /* MESSAGE_QUIET: an error or a warning */
	const char *word;	    /* the functions above use "message" */
	struct json_object *fields; /* its details; NULL: none */
};
void message_event(const struct message_event *event, const char *text);
/*
 * Add the event to line as a JSON object, without a newline: time, level, program, event, text;
 * run, attempt and tasks if they are known; and the fields.
 */
void message_add_json(const struct message_event *event, const char *said, struct text *line);

/*
 * Show text, without a newline, as the last line of the terminal, in place of the one that is
 * shown; NULL: show none. A message takes its place. Only if stderr is a terminal, and not with -q.
 */
void message_progress(const char *text);

/* Print err, as most programs do last when they fail, and return its status. */
int message_fail(const struct error *err);

/* Print text on stdout at once. False: that failed, and a message says so (as message_close). */
bool message_print(const char *text);

/*
 * Flush and close stdout, and return code. If a write failed, print a message (but not if the
 * reader has gone: EPIPE), and return STATUS_TEMPORARY in place of 0.
 */
int message_close(int code);

#endif
