/* SPDX-License-Identifier: MIT */
/*
 * A VFS layer of SQLite, through which every store is opened.
 *
 * It skips two of the six syncs of a transaction on a new connection: the sync of the directory if
 * the journal already exists, and a second sync of a file that was not written since the first.
 *
 * With a token it keeps the lock (lock_keep) at each read, write and sync, so that a long
 * transaction is not taken over; and SQLite takes no locks of its own, since a server may keep them
 * long after a machine died.
 */
#ifndef STORE_SQLITE_VFS_H
#define STORE_SQLITE_VFS_H

#include <sqlite3.h>

struct lock;

/* sqlite3_open_v2 through this layer; returns SQLite's code. */
int vfs_open_database(const char *path, int flags, struct lock *lock, sqlite3 **database);

#endif
