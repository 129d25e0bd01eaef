/* SPDX-License-Identifier: MIT */
/*
 * Mode link: the lock is a name in the store's directory. The filesystem must only make, move and
 * remove names one after the other, as the server sees them; it needs no byte-range locks and no
 * fresh cache. link_step.h has the steps and why they are right.
 *
 * Which holders count as dead: a process of this machine (same boot, same PID namespace) that has
 * ended, at once; a process that is seen alive on this machine, never; any other, when its name has
 * not changed for the takeover time (lockfile.h) as observed from here (staleness.h). So a holder
 * renews its name at every read and write once a quarter of that time has passed by CLOCK_BOOTTIME,
 * and stops where that fails. This makes it rare that a live holder is overtaken. takeover_step.h,
 * which needs no clock, makes it harmless.
 */
#ifndef STORE_LOCK_LOCK_LINK_H
#define STORE_LOCK_LOCK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/lock/link_name.h"
#include "store/machine/staleness.h"

/* What one opener remembers; zeroed: it does not hold or want the lock. */
struct link_state {
	struct link_state *next_live; /* of this process */
	bool live;		      /* in that list: the names are in use */
	bool made;		      /* our directory, not yet HELD, is there */
	bool lost;		      /* lock_confirm has answered false since it was acquired */
	/*
	 * The lock was taken over from a holder that may be alive and may still write: nothing is
	 * read or written before takeover_run, which clears this. If the lock is released before,
	 * the next holder begins the takeover again.
	 */
	bool overtook;
	int why;    /* why it is lost: the errno of the check; 0: it was taken over */
	bool sweep; /* a holder was killed: it may have left more */
	bool swept;
	char name[LINK_NAME_MAX]; /* ours */
	char next[LINK_NAME_MAX]; /* that it is to be renewed to, or may have been */
	int64_t since;		  /* clock_boot before it was last known to be ours and new */
	/* The holder that we saw last, for messages, and for how long it was silent. */
	char holder[LINK_NAME_MAX];
	int64_t silent;
	struct staleness staleness; /* where the machine has no page to share it */
};

#endif
