/* SPDX-License-Identifier: MIT */
/*
 * Fairness between machines. Processes of one machine hand the lock on within microseconds, while
 * other machines poll for it at most every HANDOFF_RETRY ms. As long as this machine's queue is not
 * empty, the others would find the lock free only by luck and wait for many seconds. So after
 * HANDOFF_LONGEST ms the lock is left free for longer than any of them sleeps between two polls.
 *
 * A zeroed struct handoff is over. It lies in memory that the processes of a machine share; whoever
 * comes next to hold the lock reads and writes it, one at a time. What one who was killed did not
 * write makes a turn shorter or longer, never anything wrong.
 */
#ifndef STORE_MACHINE_HANDOFF_H
#define STORE_MACHINE_HANDOFF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Milliseconds. */
#define HANDOFF_RETRY	64 /* the longest pause between two looks of one who waits */
#define HANDOFF_LONGEST 1000
#define HANDOFF_PAUSE	(HANDOFF_RETRY + HANDOFF_RETRY / 4)

struct handoff {
	_Atomic int64_t began, gave; /* clock_now: first taken, and last given back */
};

/* Before the lock is asked for: for how many milliseconds it is to be left free first; mostly 0. */
int64_t handoff_pause(const struct handoff *handoff, int64_t now);
/* It was got. waited: another machine had it meanwhile, so this is a new turn. */
void handoff_taken(struct handoff *handoff, int64_t now, bool waited);
/* It was given back. */
void handoff_given(struct handoff *handoff, int64_t now);

#endif
