/* SPDX-License-Identifier: MIT */
/*
 * Whether a run may run again after an attempt has ended, and when: a pure function of how its
 * attempts ended and of what is allowed.
 *
 * Causes are counted apart. A preemption is no failure and never counts. Crashes and hangs count
 * from the start of the run; when it is started again after it had finished, or after a decision
 * not to run it again, the counts begin at zero. Lost peers have no limit of their own. An attempt
 * without progress is one that failed, or was preempted without its checkpoint, and saved no newer
 * step than all before it; those are counted in a row, and only if saves show in the store.
 */
#ifndef RUN_BUDGET_H
#define RUN_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/outcome.h"

#define BUDGET_UNLIMITED UINT64_MAX

struct budget_limits {
	/* The allowed number; one more stops the run. */
	uint64_t restarts; /* after failures of any kind; BUDGET_UNLIMITED */
	uint64_t crashes;
	uint64_t hangs;
	uint64_t no_progress;
	/*
	 * The pause before the n-th restart in a row is random between 1 ms and pause x 2^(n-1), at
	 * most longest_pause; ms. After progress, or an attempt that lasted BUDGET_STEADY, the row
	 * begins again.
	 */
	int64_t pause, longest_pause;
};
#define BUDGET_DEFAULTS                                                                            \
	{                                                                                          \
		.restarts = BUDGET_UNLIMITED, .crashes = 3, .hangs = 3, .no_progress = 3,          \
		.pause = 1000, .longest_pause = 300000                                             \
	}
#define BUDGET_STEADY 600000 /* ms */

struct budget_decision {
	bool again;
	bool decided;  /* not again: true: decided (93); false: there is nothing to run again (0) */
	int64_t pause; /* ms, with again; 0 after a preemption */
	char why[768]; /* "attempt 3 crashed, 2 of 3: task 1 failed on n2 with 1: ..." */
};

/*
 * How many of the newest attempts in a row that resumed from this checkpoint (its step, and
 * outcome_from its path) have failed. Those that were preempted, or whose end is not known, are not
 * counted.
 */
uint64_t budget_failed_from(const struct outcome *past, size_t count, uint64_t step, uint64_t from);

/*
 * past[count - 1] is the attempt that has just ended; older ones before it, as far as known. draw
 * is a random number. An attempt that is CAUSE_OPEN here is one of which nothing runs any more:
 * lost.
 */
void budget_decide(const struct outcome *past, size_t count, const struct budget_limits *limits,
	uint64_t draw, struct budget_decision *decision);

#endif
