/* SPDX-License-Identifier: MIT */
/*
 * A SQLite VFS layer through which every store is opened. (1) It skips two of the six syncs of a
 * transaction on a fresh connection: that of the directory if the journal exists already, and a
 * second sync of a file that was not written since the first. (2) For locks that can be lost it is
 * a write guard: before every read, write, sync and truncation of the database and its journal it
 * checks by the clock that the lock is still ours; once it is not, nothing reaches the files any
 * more, not even a rollback. One that is stopped between that look and the write still writes. So
 * the filesystem is asked once more when the journal has been opened for writing, which comes after
 * the database was opened and before anything is written: where the lock was ours then, both files
 * are those that a process replaces if it overtakes us (takeover_step.h), and no process reads what
 * is written to them later.
 */
#ifndef STORE_SQLITE_WRITE_GUARD_H
#define STORE_SQLITE_WRITE_GUARD_H

#include <sqlite3.h>
#include <stdbool.h>

struct lock;

struct write_guard {
	struct lock *lock;
	bool lockless; /* without SQLite's own locks */
	bool touched;  /* something may have reached the database itself */
};

/*
 * sqlite3_open_v2 through this layer, and SQLite's code. Where the lock can be lost it guards the
 * database; it stays where it is until that is closed.
 */
int write_guard_open(
	const char *path, int flags, struct write_guard *write_guard, sqlite3 **database);

#endif
