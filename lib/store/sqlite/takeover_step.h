/* SPDX-License-Identifier: MIT */
/*
 * What the holder of a lock does first when it was taken over from a process that may be alive, as
 *a pure function: what was answered in, what to do next out. takeover.c carries it out on files;
 * tests/unit/takeover_search.c on modelled ones, in every order of processes that are stopped,
 * overtaken and killed anywhere, and nothing that was acknowledged is ever lost.
 *
 * The overtaken process may go on at any time: no look at a lock is one step with the write
 * that follows. So the files are put out of its reach. The database gets a new inode, and so does
 * the journal:
 *
 *	make	a workspace of our own in HELD, the directory of the lock (link_step.h).
 *	prove	the lock was still ours then: a process that overtakes us sees the workspace.
 *	clear	remove the workspaces of all others. From then on no process but ours can rename a
 *		file to the name of the database or the journal: each does that out of its own
 *		workspace only, which is made once.
 *	copy	journal, database; then read both again. Where nothing has changed, this is what
 *		both were at one moment. The overtaken process writes in SQLite's order, so it
 *		is what a loss of power at that moment would have left.
 *	recover	let SQLite put that right, in the workspace; sync.
 *	place	rename the copy over the database, sync, then a blank journal over the journal,
 *		sync. In between, and after a crash there, the old journal lies beside the new
 *		database: it holds what that holds already, so to play it back changes nothing.
 *
 * The overtaken process has both files open, if it was about to write (write_guard.h): what it
 *still writes goes to the old inodes. It answers that it has committed only if it gave back its
 *lock itself, after all was synced: then no process had overtaken it, and the copy has what it
 *wrote.
 *
 * A process that dies or fails on the way leaves a name in HELD: the next one begins again.
 */
#ifndef STORE_SQLITE_TAKEOVER_STEP_H
#define STORE_SQLITE_TAKEOVER_STEP_H

#include <stdbool.h>

/* In this order. */
enum takeover_action {
	TAKEOVER_MAKE,
	TAKEOVER_PROVE,
	TAKEOVER_CLEAR,
	TAKEOVER_COPY_JOURNAL,
	TAKEOVER_COPY_DATABASE,
	TAKEOVER_COMPARE_JOURNAL,
	TAKEOVER_COMPARE_DATABASE,
	TAKEOVER_RECOVER,
	TAKEOVER_PLACE_DATABASE,
	TAKEOVER_PLACE_JOURNAL,
	TAKEOVER_UNMAKE, /* our workspace */

	TAKEOVER_DONE,
	TAKEOVER_FAILED,
};

enum takeover_answer {
	TAKEOVER_YES,
	TAKEOVER_CHANGED, /* COMPARE: it is no longer what was copied */
	TAKEOVER_NOTHING, /* COPY_DATABASE: there is no database */
	TAKEOVER_NO,	  /* it could not be done, or that is not known */
};

/* Zeroed: about to begin, with the action TAKEOVER_MAKE. */
struct takeover_step {
	enum takeover_action action;
	unsigned char rounds; /* how often it was copied again */
	bool failed;
};

/* Answers the action to carry out next; from TAKEOVER_DONE on nothing is left to do. */
enum takeover_action takeover_next(struct takeover_step *step, enum takeover_answer answer);

#endif
