/* SPDX-License-Identifier: MIT */
/* Commands as text: a row of a table, a JSON object, all that is known of one. Pure. */
#ifndef PREEMPT_QUEUE_ROWS_H
#define PREEMPT_QUEUE_ROWS_H

#include "queue/queue.h"

/* The head of the table, and a row of it; each with its newline. now: clock_utc. */
void rows_heading(struct text *text);
void rows_add(struct text *text, const struct queue_view *view, int64_t now);
/* On one line, with its newline. */
void rows_add_json(struct text *text, const struct queue_view *view);
/* "name: value" lines. */
void rows_describe(struct text *text, const struct queue_view *view, int64_t now);

/* The file that its stdout goes to (--stdout), to be freed; NULL: the queue keeps it. */
char *rows_output(const struct queue_view *view);
/* "exit 3", "signal 9", "timed out: ...", for messages. */
void rows_ending(struct text *text, const struct queue_ending *ending);
/* "1.2s", "3m05s", "2h05m" */
struct rows_time {
	char text[32];
};
struct rows_time rows_time(int64_t milliseconds);

#endif
