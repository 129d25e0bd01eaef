/* SPDX-License-Identifier: MIT */
/* Commands as text: a row of a table, a JSON object, or a full description. Pure. */
#ifndef PREEMPT_QUEUE_ROWS_H
#define PREEMPT_QUEUE_ROWS_H

#include "queue/queue.h"

/* The head of the table, or a row of it, with a newline. now: clock_utc. */
void rows_heading(struct text *text);
void rows_add(struct text *text, const struct queue_view *view, int64_t now);
/* One line, with a newline. */
void rows_add_json(struct text *text, const struct queue_view *view);
/* "name: value" lines. */
void rows_describe(struct text *text, const struct queue_view *view, int64_t now);

/* The file of its stdout (--stdout), malloc'd; NULL: the queue keeps the output. */
char *rows_output(const struct queue_view *view);
/* "exit 3", "signal 9", "timed out: ...", for messages. */
void rows_ending(struct text *text, const struct queue_ending *ending);
/* "1.2s", "3m05s", "2h05m" */
struct rows_time {
	char text[32];
};
struct rows_time rows_time(int64_t milliseconds);

#endif
