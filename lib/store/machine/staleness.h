/* SPDX-License-Identifier: MIT */
/*
 * A staleness timer: for how long a value that should change was observed unchanged. It counts
 * observations, not the difference of two clock readings: the time between two observations counts
 * for at most a sixteenth of the limit. So a suspended machine, a stopped observer or a server that
 * does not answer is not mistaken for staleness of the other side.
 *
 * Zeroed: nothing was observed. The struct may be in memory that processes share, and any of them
 * may be killed at any point: it then counts too little silence, never too much.
 */
#ifndef STORE_MACHINE_STALENESS_H
#define STORE_MACHINE_STALENESS_H

#include <stdatomic.h>
#include <stdint.h>

struct staleness {
	_Atomic uint64_t what;
	_Atomic int64_t last; /* time of the last observation (clock_now) */
	_Atomic int64_t silent;
};

/*
 * Observe at now (clock_now) a value whose hash is what (0: none). Returns for how many
 * milliseconds it was observed unchanged.
 */
int64_t staleness_observe(struct staleness *staleness, uint64_t what, int64_t now, int64_t limit);

#endif
