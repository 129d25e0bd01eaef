/* SPDX-License-Identifier: MIT */
/*
 * A VFS layer of SQLite, through which every store is opened. It does two things.
 *
 * It skips two of the six syncs of a transaction on a new connection: the sync of the directory if
 * the journal already exists, and a second sync of a file that was not written since the first.
 *
 * For a lock that can be lost it is a write guard. Before each read, write, sync and truncation of
 * the database and the journal it checks by the clock that we still hold the lock. If not, no
 * access reaches the files, not even a rollback. But a process that is stopped between the check
 * and the write still writes. So the guard also asks the filesystem when SQLite has opened the
 * journal for writing; by then the database is open, and nothing is written yet. If we hold the
 * lock then, a process that overtakes us replaces the files that we have open (takeover_step.h),
 * and no process reads what we write to them later.
 */
#ifndef STORE_SQLITE_WRITE_GUARD_H
#define STORE_SQLITE_WRITE_GUARD_H

#include <sqlite3.h>
#include <stdbool.h>

struct lock;

struct write_guard {
	struct lock *lock;
	bool lockless; /* do not use SQLite's own locks */
	bool touched;  /* a write may have reached the database (not only the journal) */
};

/*
 * sqlite3_open_v2 through this layer; returns SQLite's code. Do not move *write_guard until the
 * database is closed.
 */
int write_guard_open(
	const char *path, int flags, struct write_guard *write_guard, sqlite3 **database);

#endif
