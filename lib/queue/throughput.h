/* SPDX-License-Identifier: MIT */
/*
 * How far a queue is, out of successive counts and the times when they were made: how fast commands
 * end, how long the rest takes, and one line that says so. Pure. A zeroed one has seen nothing.
 */
#ifndef QUEUE_THROUGHPUT_H
#define QUEUE_THROUGHPUT_H

#include "base/text.h"
#include "queue/records.h"

/* The rate is that of the last so many counts that are kept; they are at least PERIOD apart. */
#define THROUGHPUT_KEPT	  16
#define THROUGHPUT_PERIOD 1000 /* ms */

struct queue_throughput {
	struct queue_count now;
	int64_t began;	   /* monotonic, ms: when the first count was made */
	uint64_t at_first; /* commands that were over then */
	struct {
		int64_t at;
		uint64_t over;
	} kept[THROUGHPUT_KEPT]; /* a ring */
	size_t count, next;
};

void queue_throughput_note(
	struct queue_throughput *progress, const struct queue_count *count, int64_t now);

/* Succeeded, failed or cancelled. */
uint64_t queue_throughput_over(const struct queue_count *count);

/* Commands per second; 0: nothing has ended yet, or not long enough ago to tell. */
double queue_throughput_rate(const struct queue_throughput *progress, int64_t now);
/* ms until all is over at that rate; negative: not known. */
int64_t queue_throughput_left(const struct queue_throughput *progress, int64_t now);

/*
 * "[####----] 12/100, 4 running, 1 failed, 2.5/s, 35s left" in at most width columns: what is less
 * important is left out until it fits.
 */
void queue_throughput_line(
	const struct queue_throughput *progress, int64_t now, size_t width, struct text *line);

#endif
