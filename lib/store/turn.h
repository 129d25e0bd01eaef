/* SPDX-License-Identifier: MIT */
/*
 * Fairness between machines. Processes of one machine hand the lock on within microseconds, while
 * other machines poll for it at most every TURN_RETRY ms. As long as this machine's queue is not
 * empty, the others would find the lock free only by luck and wait for many seconds. So after
 * TURN_LONGEST ms the lock is left free for longer than any of them sleeps between two polls.
 *
 * A zeroed struct turn is over. It lies in memory that the processes of a machine share; whoever
 * comes next to hold the lock reads and writes it, one at a time. What one who was killed did not
 * write makes a turn shorter or longer, never anything wrong.
 */
#ifndef STORE_TURN_H
#define STORE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Milliseconds. */
#define TURN_RETRY   64 /* the longest pause between two looks of one who waits */
#define TURN_LONGEST 1000
#define TURN_REST    (TURN_RETRY + TURN_RETRY / 4)

struct turn {
	_Atomic int64_t began, gave; /* clock_now: first taken, and last given back */
};

/* Before the lock is asked for: for how many milliseconds it is to be left free first; mostly 0. */
int64_t turn_rest(const struct turn *turn, int64_t now);
/* It was got. waited: another machine had it meanwhile, so this is a new turn. */
void turn_took(struct turn *turn, int64_t now, bool waited);
/* It was given back. */
void turn_gave(struct turn *turn, int64_t now);

#endif
