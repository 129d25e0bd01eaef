/* SPDX-License-Identifier: MIT */
/*
 * Whether the training of one task advances: a pure function of what its agent reads on the board.
 * Each call of preempt_step is progress, also with the same step again, as during an evaluation.
 * Time counts only after the first call, and only while the agent runs, does not hold the training,
 * and gets answers from the store: a pause of the machine, an agreement, or a filesystem that
 * stalls during a save is no hang. Time counts, too, once the others must have given the task up
 * (cut_off_given_up).
 */
#ifndef LIVE_PROGRESS_H
#define LIVE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* One reading of the board. */
struct progress_reading {
	int64_t now;
	bool counts;  /* the time since the last reading counts (above) */
	bool started; /* the training has called preempt_step */
	uint64_t step;
	int64_t written; /* when the board's file was written last, by its own clock */
};

/* Zeroed: nothing was read. */
struct progress {
	bool started;
	uint64_t step;
	int64_t written;
	int64_t looked_at;
	int64_t standing; /* ms that count since the last progress */
};

/* Take in one reading. True: the training hangs: no progress for `limit` ms (0: no limit). */
bool progress_observe(struct progress *p, int64_t limit, const struct progress_reading *look);

#endif
