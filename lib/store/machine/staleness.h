/* SPDX-License-Identifier: MIT */
/*
 * A staleness timer: for how long a value that should change was observed unchanged. It counts
 * observations, not the difference of two clock readings: the time between two observations counts
 * for at most a sixteenth of the limit. So a suspended machine, a stopped observer or a server that
 * does not answer is not mistaken for staleness of the other side.
 *
 * A zeroed struct staleness has seen nothing. It may lie in memory that processes share, and
 * survives the death of any of them at any point: what is torn counts for too little, never for too
 * much.
 */
#ifndef STORE_MACHINE_STALENESS_H
#define STORE_MACHINE_STALENESS_H

#include <stdatomic.h>
#include <stdint.h>

struct staleness {
	_Atomic uint64_t what;
	_Atomic int64_t last; /* observation, milliseconds */
	_Atomic int64_t silent;
};

/*
 * One observation at now (clock_now) of a value whose hash is what (0: none). Answers for how many
 * milliseconds of the limit it has been this.
 */
int64_t staleness_observe(struct staleness *staleness, uint64_t what, int64_t now, int64_t limit);

#endif
