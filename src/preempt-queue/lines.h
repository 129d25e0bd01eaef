/* SPDX-License-Identifier: MIT */
/*
 * Lines of stdin, as they come: those that were read are returned before the next is waited for. A
 * signal of base/process/ending.h ends the waiting. Begin with all zero, except end_of_line.
 */
#ifndef PREEMPT_QUEUE_LINES_H
#define PREEMPT_QUEUE_LINES_H

#include "queue/records.h"

struct lines {
	char end_of_line; /* '\n', '\0' */
	char bytes[2 * QUEUE_ITEM_MAX];
	size_t begin, end; /* what is read and not used */
	bool over;	   /* there is no more to read */
	uint64_t line;	   /* the number of the last one */
};

/* STATUS_OK: more was read, or it is over. STATUS_NO: nothing is there yet, or a signal has come.
 */
enum status lines_read(struct lines *lines, bool wait, struct error *err);

/*
 * The next line, without its end, with a NUL; good until more is read. STATUS_NO: it is not there
 * yet, or it was the last. STATUS_USAGE: it is too long for a command, or has a NUL in it.
 */
enum status lines_next(struct lines *lines, char **line, size_t *length, struct error *err);

#endif
