/* SPDX-License-Identifier: MIT */
/*
 * The one line of a command's stderr that says best why it failed. Pure: lines and times in.
 *
 * That is the last line with a letter in it, for launchers draw lines of ===== around their
 * reports; but rather the first exception of the last minute, which is the cause of those that
 * follow. torchrun's own exception only says that a worker has failed, so it is none.
 */
#ifndef AGENT_CHILDREN_ERROR_LINE_H
#define AGENT_CHILDREN_ERROR_LINE_H

#include <stdbool.h>
#include <stdint.h>

#define ERROR_LINE 400

/* A zeroed one is empty. */
struct error_line {
	char last[ERROR_LINE];	    /* with a letter */
	char exception[ERROR_LINE]; /* the first of the newest minute that has one; "": none */
	int64_t exception_at;
	bool in_traceback; /* its head has come, its exception not yet */
};

/* A whole line, without its newline; one that is too long was cut. */
void error_line_take(struct error_line *lines, const char *line, int64_t now);

/* What says best why a command failed that has ended at now; "": nothing does. */
const char *error_line_best(const struct error_line *lines, int64_t now);

#endif
