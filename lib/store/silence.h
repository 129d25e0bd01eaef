/* SPDX-License-Identifier: MIT */
/*
 * For how long something that should change has been seen not to. Judged by observations, not by
 * two readings of a clock: what lies between two observations counts for a sixteenth of the limit
 * at most, so that a machine that was suspended, an observer that was stopped, or a server that did
 * not answer, is not taken for the silence of the other.
 *
 * A zeroed struct silence has seen nothing. It may lie in memory that processes share, and survives
 * the death of any of them at any point: what is torn counts for too little, never for too much.
 */
#ifndef STORE_SILENCE_H
#define STORE_SILENCE_H

#include <stdatomic.h>
#include <stdint.h>

struct silence {
	_Atomic uint64_t what;
	_Atomic int64_t last; /* observation, milliseconds */
	_Atomic int64_t silent;
};

/*
 * One observation, now (clock_now): it is what it is (a hash of it; 0: nothing). Answers for how
 * many milliseconds of the limit it has been this.
 */
int64_t silence_observe(struct silence *silence, uint64_t what, int64_t now, int64_t limit);

#endif
