/* SPDX-License-Identifier: MIT */
/*
 * Fairness between machines. Processes of one machine hand the lock on within microseconds, while
 * other machines poll for it at most every HANDOFF_RETRY ms. As long as this machine's queue is not
 * empty, the others would find the lock free only by luck and wait for many seconds. So after
 * HANDOFF_LONGEST ms the lock is left free for longer than any of them sleeps between two polls.
 *
 * A zeroed struct handoff has no turn under way. It is in memory that the processes of a machine
 * share; the holder of the lock reads and writes it. If a process is killed before it writes, a
 * turn is shorter or longer, never anything wrong.
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
	_Atomic int64_t began, gave; /* clock_now: first taken, and last given back */
};

/* For how many milliseconds the lock must be left free before it is asked for; mostly 0. */
int64_t handoff_pause(const struct handoff *handoff, int64_t now);
/* It was taken. waited: another machine had it before, so this is a new turn. */
void handoff_taken(struct handoff *handoff, int64_t now, bool waited);
/* It was given back. */
void handoff_given(struct handoff *handoff, int64_t now);

#endif
