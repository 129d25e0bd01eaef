/* SPDX-License-Identifier: MIT */
/*
 * The progress of a queue, from counts at several times: how fast commands end, how long the rest
 * will take, and a line for a terminal. Pure. Zeroed: no counts yet.
 */
#ifndef QUEUE_THROUGHPUT_H
#define QUEUE_THROUGHPUT_H

#include "base/text.h"
#include "queue/records.h"

/* The rate is measured over the last THROUGHPUT_KEPT counts, which are at least PERIOD apart. */
#define THROUGHPUT_KEPT	  16
#define THROUGHPUT_PERIOD 1000 /* ms */

struct queue_throughput {
	struct queue_count now;
	int64_t began;	   /* clock_now at the first count */
	uint64_t at_first; /* commands that were over at that time */
	struct {
		int64_t at;
		uint64_t over;
	} kept[THROUGHPUT_KEPT]; /* a ring */
	size_t count, next;
};

void queue_throughput_note(
	struct queue_throughput *progress, const struct queue_count *count, int64_t now);

/* The number of commands that are over: succeeded, failed or cancelled. */
uint64_t queue_throughput_over(const struct queue_count *count);

/* Commands per second; 0: not known yet. */
double queue_throughput_rate(const struct queue_throughput *progress, int64_t now);
/* Milliseconds until all are over, at that rate; negative: not known. */
int64_t queue_throughput_left(const struct queue_throughput *progress, int64_t now);

/*
 * "[####----] 12/100, 4 running, 1 failed, 2.5/s, 35s left" in at most width columns. Less
 * important parts are left out if it is too long.
 */
void queue_throughput_line(
	const struct queue_throughput *progress, int64_t now, size_t width, struct text *line);

#endif
