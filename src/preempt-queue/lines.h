/* SPDX-License-Identifier: MIT */
/*
 * Read lines of stdin as they come: the lines that are there are returned before we wait for more.
 * A signal of base/process/ending.h ends the wait. Zero the struct, then set end_of_line.
 */
#ifndef PREEMPT_QUEUE_LINES_H
#define PREEMPT_QUEUE_LINES_H

#include "queue/records.h"

struct lines {
	char end_of_line; /* '\n' or '\0' */
	char bytes[2 * QUEUE_ITEM_MAX];
	size_t begin, end; /* the bytes that were read and not returned */
	bool over;	   /* stdin is at its end */
	uint64_t line;	   /* the number of the last line */
};

/* STATUS_OK: more was read, or stdin is at its end. STATUS_NO: nothing to read yet, or a signal. */
enum status lines_read(struct lines *lines, bool wait, struct error *err);

/*
 * The next line, without its end, NUL-terminated; valid until more is read. STATUS_NO: it has not
 * been read yet, or there is none. STATUS_USAGE: it is too long for a command, or contains a NUL.
 */
enum status lines_next(struct lines *lines, char **line, size_t *length, struct error *err);

#endif
