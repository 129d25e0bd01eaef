/* SPDX-License-Identifier: MIT */
/*
 * The first steps of a process that has taken the lock over from a process that may be alive, as a
 * pure function: from what the last step answered it decides the next one. takeover.c carries the
 * steps out on files; tests/unit/takeover_search.c on a model, in every order of processes that are
 * stopped, overtaken and killed anywhere, and shows that no acknowledged write is lost.
 *
 * The overtaken process may go on at any time, also between its look at the lock and its next
 * write. So we replace the database and the journal by new files, which it does not have open:
 *
 *	make	a workspace of our own in HELD, the directory of the lock (link_step.h).
 *	prove	that we still hold the lock: a process that overtakes us now sees the workspace.
 *	clear	remove the workspaces of all other processes. Each process renames files to the
 *		names of database and journal only from its own workspace, which it makes once: so
 *		from now on only we can do it.
 *	copy	the journal and the database, then read both again. If neither has changed, the
 *		copies show both at one moment. The overtaken process writes in SQLite's order, so
 *		they are what a loss of power at that moment would have left.
 *	recover	let SQLite roll back in the workspace, as after a loss of power; sync.
 *	place	rename the copy over the database and sync, then a blank journal over the journal
 *		and sync. In between the old journal is beside the new database; to play it back, as
 *		after a crash, changes nothing, because the database already has those pages.
 *
 * If the overtaken process was about to write, it has both files open (write_guard.h), so it writes
 * to the old files. It reports a commit only if all was synced and it then released the lock
 * itself: in that case no process had overtaken it, and our copy has its commit.
 *
 * A process that dies or fails in between leaves a name in HELD, and the next one begins again.
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
	TAKEOVER_UNMAKE, /* remove our workspace */

	TAKEOVER_DONE,
	TAKEOVER_FAILED,
};

enum takeover_answer {
	TAKEOVER_YES,
	TAKEOVER_CHANGED, /* COMPARE: the file is no longer equal to the copy */
	TAKEOVER_NOTHING, /* COPY_DATABASE: there is no database */
	TAKEOVER_NO,	  /* failed, or the outcome is not known */
};

/* Zeroed: the action TAKEOVER_MAKE is next. */
struct takeover_step {
	enum takeover_action action;
	unsigned char rounds; /* how many times the files were copied again */
	bool failed;
};

/* Returns the action to carry out; TAKEOVER_DONE and TAKEOVER_FAILED are results. */
enum takeover_action takeover_next(struct takeover_step *step, enum takeover_answer answer);

#endif
