/* SPDX-License-Identifier: MIT */
/*
 * The steps by which mode link takes, keeps and gives back the lock, as a pure function: from what
 * the last request answered it decides the next one. lock_link.c carries the steps out on a
 * filesystem; tests/unit/link_search.c on a model, in every order of three processes that are
 * killed and stopped anywhere.
 *
 * The lock is the directory HELD = DATABASE.lock.held. It is free while it is missing or empty; the
 * one name in it says who holds it. A name is used for one acquisition and never again.
 *
 *	take	make a directory with our name in it, and rename it to HELD. The filesystem refuses
 *		that if HELD contains a name, and replaces HELD if it is empty.
 *	leave	unlink our name in HELD.
 *	renew	rename our name in HELD to a new name. If the lock was taken over, this fails.
 *		Otherwise the waiting processes see another name, and count its silence from 0.
 *	break	a process that considers the holder dead renames the dead name in HELD to a new
 *		name of its own, so the lock is never free in between. The dead holder may be alive
 *		after all, so the process first puts the store's files out of its reach
 *		(takeover_step.h). If it cannot finish this, it leaves a name in HELD, so that the
 *		next process begins the takeover again.
 *
 * A process may be stopped before any of these steps and continue an hour later, or the network may
 * repeat its request: it can then only remove its own name or a dead one, never the lock of another
 * process. With a plain file or hard link as the lock this would not be so: there is no "unlink it
 * if it is still mine", and a late unlink would remove the lock of another process (the search
 * finds that). A second lock that must be held for breaking would not help: its holder, too, can be
 * stopped before the unlink. Names need no such lock: if two processes rename the same dead name,
 * the second rename fails.
 */
#ifndef STORE_LOCK_LINK_STEP_H
#define STORE_LOCK_LINK_STEP_H

#include <stdbool.h>

enum link_action {
	LINK_MAKE,	 /* a directory of our own, with a fresh name in it */
	LINK_TAKE,	 /* rename it to HELD */
	LINK_CHECK,	 /* is HELD/name there? */
	LINK_LIST_HELD,	 /* who is in HELD? */
	LINK_BREAK,	 /* rename the dead name in HELD to HELD/next */
	LINK_CLEAR,	 /* rmdir HELD, which fails unless it is empty */
	LINK_UNMAKE,	 /* undo MAKE and TAKE, whose outcome is not known */
	LINK_RENEW,	 /* rename HELD/name to HELD/next */
	LINK_CHECK_NEXT, /* is HELD/next there? */

	LINK_HELD,   /* it is ours */
	LINK_BUSY,   /* another has it: begin again later */
	LINK_FAILED, /* the filesystem could not be asked */
	LINK_LOST,   /* it was ours and is no longer, or this is not known: touch nothing */
};

enum link_answer {
	LINK_YES,
	LINK_OCCUPIED,	/* TAKE: HELD is not empty */
	LINK_MISSING,	/* no such name */
	LINK_UNCERTAIN, /* an error: the request was, was not, or will still be carried out */
	LINK_NOBODY,	/* LIST_HELD: HELD is missing or empty */
	LINK_OURSELVES, /* LIST_HELD: HELD contains only our present name */
	LINK_DEAD,	/* LIST_HELD: all holders in it are dead, or only workspaces are left */
	LINK_ALIVE,	/* LIST_HELD: at least one holder in it may be alive */
};

/* All state of a run of steps; small, because the search keeps many. Zeroed: before link_begin. */
struct link_step {
	enum link_action action;
	enum link_answer cause; /* CHECK: the answer that made it necessary */
	unsigned char rounds;	/* how many times the steps were begun again */
	bool overtook;		/* a dead name was or may have been renamed to ours */
};

/* Each returns the action to carry out; LINK_HELD and those after it are results. made: our
 * directory is left from an attempt that ended with LINK_BUSY. */
enum link_action link_begin(struct link_step *step, bool made);
enum link_action link_begin_renewal(struct link_step *step);
enum link_action link_next(struct link_step *step, enum link_answer answer);

#endif
