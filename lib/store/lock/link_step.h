/* SPDX-License-Identifier: MIT */
/*
 * The steps by which mode link takes, keeps and gives back the lock, as a pure function: what was
 * answered in, what to do next out. lock_link.c carries them out on a filesystem; tests/unit/
 * link_search.c on a modelled one, in every order of three processes that are killed and stopped
 * anywhere.
 *
 * The lock is the directory HELD = DATABASE.lock.held. It is free while it is missing or empty; the
 * one name in it says who holds it. A name is used for one acquisition and never again.
 *
 *	take	make a directory of one's own with one's name in it, rename it to HELD. The
 *		filesystem refuses that where HELD holds a name, and replaces it where it is empty.
 *	leave	unlink HELD/own name.
 *	renew	rename HELD/own name to HELD/a new name of one's own: it fails where the lock was
 *		taken away, and else the processes that watch see another name and wait from the
 *		beginning.
 *	break	rename HELD/dead name to HELD/a new name of one's own, by any process that considers
 *		the holder of that name dead. The lock is never free in between: the process that
 *		has it then has overtaken another, and first puts the files out of its reach
 *		(takeover_step.h). A takeover that is not finished is given up by leaving a name
 *		behind, never by unlinking it, so that the next process begins it again.
 *
 * A process that is stopped before any of these steps and continues an hour later, or whose request
 * the network repeats, can only remove its own name or a dead one, never another process's lock.
 * That is why it is no plain file or hard link: there is no "unlink it if it is still mine", so
 * that an unlink that comes late would remove the lock of another process (the search finds that).
 * A second lock, for breaking, would not cure it: its holder, too, can be stopped between its last
 * look and the unlink, and a process that gives its own lock back late does not ask for it. Here it
 * is not needed: of two that rename the same dead name one comes late and does nothing.
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
	LINK_UNMAKE,	 /* undo MAKE and TAKE, of which it is not known what came of them */
	LINK_RENEW,	 /* rename HELD/name to HELD/next */
	LINK_CHECK_NEXT, /* is HELD/next there? */

	LINK_HELD,   /* it is ours */
	LINK_BUSY,   /* another has it: begin again later */
	LINK_FAILED, /* it could not be asked for */
	LINK_LOST,   /* it was ours and is no longer, or that cannot be told: touch nothing */
};

enum link_answer {
	LINK_YES,
	LINK_OCCUPIED,	/* TAKE: HELD is not empty */
	LINK_MISSING,	/* there is nothing under this name */
	LINK_UNCERTAIN, /* an error: it may have happened or not, or may still happen */
	LINK_NOBODY,	/* LOOK: HELD is missing or empty */
	LINK_OURSELVES, /* LOOK: only our name of now is in it */
	LINK_DEAD,	/* LOOK: all names in it are of dead holders */
	LINK_ALIVE,	/* LOOK: at least one may not be */
};

/* Zeroed: before link_begin. Few bits, all of its memory. */
struct link_step {
	enum link_action action;
	enum link_answer cause; /* why it is checked */
	unsigned char rounds;	/* how often it was begun again */
	bool overtook;		/* a dead name was renamed to ours, or that is not known */
};

/* Each answers the action to carry out; from LINK_HELD on nothing is left to do. */
enum link_action link_begin(struct link_step *step, bool made);
enum link_action link_begin_renewal(struct link_step *step);
enum link_action link_next(struct link_step *step, enum link_answer answer);

#endif
