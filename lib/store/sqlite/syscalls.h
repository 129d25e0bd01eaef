/* SPDX-License-Identifier: MIT */
/*
 * SQLite's system calls in this thread. Its result codes hide the cause of an error: if a server
 * refuses a lock, SQLite says "busy" and waits; if a file cannot be opened for writing, it says
 * "read-only". So its calls pass through here, and the errno is kept. (Except fsync, which SQLite
 * does not let us replace; but it keeps that errno itself.)
 *
 * Six things also differ from SQLite's own calls: a file is opened so that the server does not lend
 * it (cache.h); a journal is made only in a directory that has its database; a lock fails at once
 * if waiting cannot help; EACCES of a lock, which can mean "another process has it" or "not
 * permitted", becomes one of the two; a call that is interrupted many times fails, which SQLite
 * would repeat for ever; and a journal whose presence cannot be checked counts as present.
 */
#ifndef STORE_SQLITE_SYSCALLS_H
#define STORE_SQLITE_SYSCALLS_H

#include "store/cache.h"

/* Call this before SQLite opens a file of ours. May be called more than once. */
void syscalls_install(void);

/* Forget errors, and say how the files that this thread opens next are cached. */
void syscalls_forget(enum cache cache);

/* The errno of the last call that failed; 0: none has. */
int syscalls_failed(void);

/* The errno of the last lock that failed; EAGAIN: another process has it; 0: none has failed. */
int syscalls_lock_failed(void);

#endif
