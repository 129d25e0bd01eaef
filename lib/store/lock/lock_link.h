/* SPDX-License-Identifier: MIT */
/*
 * Mode link: the lock is a name in the store's directory. It needs a server that makes, moves and
 * removes names one after the other, but neither byte-range locks nor fresh caches. link_step.h has
 * the steps, and why they are right.
 *
 * When a holder counts as dead: a process of this machine (same boot, same PID namespace) as soon
 * as it has ended, and never before; any other process when its name has not changed for the
 * takeover time (lockfile.h), as observed from here (staleness.h). So a holder renews its name:
 * each read or write first renews it if, on CLOCK_BOOTTIME, a quarter of the takeover time has
 * passed. If the renewal fails, the holder stops. So a live holder is rarely overtaken, and if it
 * is, takeover_step.h, which needs no clock, keeps it from doing harm.
 */
#ifndef STORE_LOCK_LOCK_LINK_H
#define STORE_LOCK_LOCK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/lock/link_name.h"
#include "store/machine/staleness.h"

/* The state of one open store. Zeroed: it neither holds nor wants the lock. */
struct link_state {
	struct link_state *next_live; /* list of the names that this process uses */
	bool live;		      /* this is in the list */
	bool made;		      /* our directory exists, and is not HELD yet */
	bool lost;		      /* since the lock was acquired, lock_confirm has failed */
	/*
	 * We have taken the lock over from a holder that may be alive and may still write: we read
	 * and write nothing before takeover_run, which clears this. If the lock is released before,
	 * the next holder begins the takeover again.
	 */
	bool overtook;
	int why;    /* why the lock is lost: the errno of the check; 0: it was taken over */
	bool sweep; /* a holder was killed, and may have left more than its name */
	bool swept;
	char name[LINK_NAME_MAX]; /* our name in HELD */
	char next[LINK_NAME_MAX]; /* the new name, which may or may not have replaced it */
	int64_t since; /* clock_boot before the last request that has shown that we hold the lock */
	/* The holder that we saw last, and for how long it was silent; for messages. */
	char holder[LINK_NAME_MAX];
	int64_t silent;
	struct staleness staleness; /* used if there is no shared page (machine.h) */
};

#endif
