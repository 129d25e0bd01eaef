/* SPDX-License-Identifier: MIT */
/*
 * Fairness between machines. Processes of one machine pass the lock on within microseconds, but
 * other machines poll for it only every HANDOFF_RETRY ms. While processes of this machine queue for
 * it, the others would find it free only by luck, and wait for many seconds. So a turn of this
 * machine ends after HANDOFF_LONGEST ms: the lock is then left free for longer than other machines
 * pause between two polls.
 *
 * Zeroed: no turn has begun. The struct is in memory that the processes of a machine share; the
 * process at the head of their queue reads and writes it. If it is killed before it writes, a
 * turn is only shorter or longer.
 */
#ifndef STORE_MACHINE_HANDOFF_H
#define STORE_MACHINE_HANDOFF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Milliseconds. */
#define HANDOFF_RETRY	64 /* the longest pause between two tries of a process that waits */
#define HANDOFF_LONGEST 1000
#define HANDOFF_PAUSE	(HANDOFF_RETRY + HANDOFF_RETRY / 4)

struct handoff {
	_Atomic int64_t began,
		gave; /* clock_now: lock first taken in the turn, and last released */
};

/* For how many milliseconds the lock must still be left free before we ask for it; mostly 0. */
int64_t handoff_pause(const struct handoff *handoff, int64_t now);
/* We have taken the lock. waited: another machine had it before, so a new turn begins. */
void handoff_taken(struct handoff *handoff, int64_t now, bool waited);
/* We have released the lock. */
void handoff_given(struct handoff *handoff, int64_t now);

#endif
