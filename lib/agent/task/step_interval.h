/* SPDX-License-Identifier: MIT */
/*
 * How long a task takes from one boundary to the next, measured by reading its `step` about once a
 * second. Pure; times are milliseconds. A zeroed struct step_interval has seen nothing.
 */
#ifndef AGENT_TASK_STEP_INTERVAL_H
#define AGENT_TASK_STEP_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_INTERVAL_RECENT 8

struct step_interval {
	bool seen;
	uint64_t step;
	int64_t since; /* when the present interval began, or a held task was last seen */
	bool held;     /* the task stands still as it was told, and may not go on yet */
	int64_t recent[STEP_INTERVAL_RECENT];
	size_t next;
	int64_t longest; /* ever measured; each new interval makes it fade a little */
};

/*
 * The board showed this step, followed by the boundary next. now: the time of the look; if the step
 * is new, when it was reached. held: the task stands still because it was told to.
 */
void step_interval_saw(
	struct step_interval *interval, uint64_t step, uint64_t next, bool held, int64_t now);

/* The task got a new order at now. held: this order, too, makes it stand still. */
void step_interval_told(struct step_interval *interval, bool held, int64_t now);

/* A save at step took `time` ms: leave it out of the interval, unless a later step was seen. */
void step_interval_saved(struct step_interval *interval, uint64_t step, int64_t time, int64_t now);

/*
 * The longest interval to expect: the longest of the last few and of the present one, or an earlier
 * one, which counts for less the longer ago it was (an evaluation every hundred steps is
 * remembered, the compilation of the first step is forgotten).
 */
int64_t step_interval_longest(const struct step_interval *interval, int64_t now);
/* The average of the last few intervals; 0: not known. */
int64_t step_interval_usual(const struct step_interval *interval);

#endif
