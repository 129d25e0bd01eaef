/* SPDX-License-Identifier: MIT */
/*
 * Decide whether a run may run again after an attempt has ended, and when: a pure function of how
 * its attempts ended and of what is allowed.
 *
 * Each cause has its own count. A preemption is no failure and never counts. Crashes and hangs
 * count from the start of the run; when a user starts it again after it had finished, or after a
 * decision not to run it again, the counts begin at zero. Lost tasks have no limit of their own. An
 * attempt has made no progress if all its tasks joined, it failed or was preempted without its
 * checkpoint, and it saved no newer step than all before it. Such attempts in a row are counted; an
 * attempt whose saves the store cannot show (outcome.measured is false) is left out.
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
	uint64_t restarts; /* after failures of any kind; may be BUDGET_UNLIMITED */
	uint64_t crashes;
	uint64_t hangs;
	uint64_t no_progress;
	/*
	 * The pause before the n-th restart in a row is random between 1 ms and pause x 2^(n-1), at
	 * most longest_pause; ms. A new row begins after progress, and after BUDGET_STEADY.
	 */
	int64_t pause, longest_pause;
};
#define BUDGET_DEFAULTS                                                                            \
	{                                                                                          \
		.restarts = BUDGET_UNLIMITED, .crashes = 3, .hangs = 3, .no_progress = 3,          \
		.pause = 1000, .longest_pause = 300000                                             \
	}
#define BUDGET_STEADY 600000 /* ms: after an attempt that lasted this long a new row begins */

struct budget_decision {
	bool again;
	bool decided;  /* true: not again, by decision (93); false: again, or it has finished */
	int64_t pause; /* ms, with again; 0 after a preemption */
	char why[768]; /* "attempt 3 crashed, 2 of 3: task 1 failed on n2 with 1: ..." */
};

/*
 * Count the newest attempts that resumed, one after another, from this checkpoint (its step, and
 * outcome_from its path) and failed. Attempts among them that were preempted, or whose end is not
 * known, are skipped.
 */
uint64_t budget_failed_from(const struct outcome *past, size_t count, uint64_t step, uint64_t from);

/*
 * past[count - 1] is the attempt that has just ended; the older ones, as far as known, come before
 * it. draw is a random number. CAUSE_OPEN counts as CAUSE_LOST: no task of the attempt runs.
 */
void budget_decide(const struct outcome *past, size_t count, const struct budget_limits *limits,
	uint64_t draw, struct budget_decision *decision);

#endif
