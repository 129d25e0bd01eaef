/* SPDX-License-Identifier: MIT */
/*
 * Mode link: the lock is a name in the store's directory. It needs nothing of the filesystem but
 * that names are made, moved and removed one after the other, as the server sees them; no
 * byte-range locks, no fresh cache. The steps, and why they are right, are in link_step.h.
 *
 * Who may be taken for dead: a process of this machine (same boot, same PID namespace) that is
 * gone, at once; one that is seen alive on this machine, never; any other, when its name has not
 * changed for the takeover time (lockfile.h), as observed from here (staleness.h). A holder knows
 * that: it renews its name at every read and write once a quarter of that time has passed, by
 * CLOCK_BOOTTIME, and goes on no more where that fails. That makes it rare that one who lives is
 * overtaken. What makes it harmless is in takeover_step.h, and needs no clock.
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
	bool lost;
	bool overtook; /* another was taken for dead: its takeover is not finished */
	int why; /* where it is lost because nobody could be asked: errno; 0: it was taken over */
	bool sweep; /* a holder was killed: he may have left more */
	bool swept;
	char name[LINK_NAME_MAX]; /* ours */
	char next[LINK_NAME_MAX]; /* that it is to be renewed to, or may have been */
	int64_t since;		  /* clock_boot before it was last known to be ours and new */
	/* Who was in the way when we asked last, for messages, and for how long he was silent. */
	char holder[LINK_NAME_MAX];
	int64_t silent;
	struct staleness staleness; /* where the machine has no page to share it */
};

#endif
