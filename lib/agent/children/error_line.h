/* SPDX-License-Identifier: MIT */
/*
 * The one line of a command's stderr that says best why it failed. Pure: the caller passes lines
 * and times.
 *
 * Exceptions within a minute after a first one form a burst, and the first is their cause. The best
 * line is the first exception of the newest burst, if it came at most a minute before the end. If
 * there is none, it is the last line with a letter in it: launchers draw lines of ===== around
 * their reports. torchrun's own exception does not count: it only says that a worker has failed.
 * Harmless lines of our own programs do not count either.
 */
#ifndef AGENT_CHILDREN_ERROR_LINE_H
#define AGENT_CHILDREN_ERROR_LINE_H

#include <stdbool.h>
#include <stdint.h>

#define ERROR_LINE 400

/* Zeroed: no line was taken in. */
struct error_line {
	char last[ERROR_LINE];	    /* with a letter */
	char exception[ERROR_LINE]; /* the one that began the newest burst; "": none */
	int64_t exception_at;
	bool in_traceback; /* a traceback has begun, and its exception has not come yet */
};

/* Take in a line, without its newline. The caller may have cut it. */
void error_line_take(struct error_line *lines, const char *line, int64_t now);

/* The best line, if the command ended at now; "": none. */
const char *error_line_best(const struct error_line *lines, int64_t now);

#endif
