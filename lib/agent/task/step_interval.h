/* SPDX-License-Identifier: MIT */
/*
 * How fast a task comes from one boundary to the next, from looks at its `step` about once a
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
	int64_t since; /* when it was first seen at that step, or last seen standing still */
	bool held;     /* it stood still because it was told to, and has not been told otherwise */
	int64_t recent[STEP_INTERVAL_RECENT];
	size_t next;
	int64_t longest; /* that was ever seen, fading away */
};

/*
 * step of next boundary next was seen at now, or, where it is a new one, was reached at now; held:
 * it stands still because it was told to.
 */
void step_interval_saw(
	struct step_interval *interval, uint64_t step, uint64_t next, bool held, int64_t now);

/* It was told something else at now; held: it is to stand still there, too. */
void step_interval_told(struct step_interval *interval, bool held, int64_t now);

/* A save at step took so long, which is no part of a way: unless it is behind us already. */
void step_interval_saved(struct step_interval *interval, uint64_t step, int64_t time, int64_t now);

/*
 * The longest way from one boundary to the next that is to be expected: the longest of the last few
 * and of the present one, or of an earlier one, by so much less as it is longer ago (an evaluation
 * every hundred steps is remembered, the compilation of the first step is forgotten).
 */
int64_t step_interval_longest(const struct step_interval *interval, int64_t now);
/* The usual one: the average of the last few; 0: not known. */
int64_t step_interval_usual(const struct step_interval *interval);

#endif
