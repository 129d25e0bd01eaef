/* SPDX-License-Identifier: MIT */
/*
 * What SQLite asks of the kernel in this thread. Its own result codes hide the cause: of a lock
 * that the server refuses it says "busy", and waits for it; of a file that cannot be opened for
 * writing it says "read-only". So its calls pass through here, and what went wrong is kept.
 *
 * Five things are done differently, too: a journal is made only in a directory that has its
 * database; an errno of a lock that no waiting will mend fails at once; EACCES, by which a lock may
 * say both "another has it" and "you may not", is told apart; a call that is interrupted again and
 * again fails at last, where SQLite would try for ever; and a journal that cannot be looked at
 * counts as present.
 *
 * fsync does not pass through here: SQLite cannot be told to. It keeps its errno itself.
 */
#ifndef STORE_SQLITE_SYSCALLS_H
#define STORE_SQLITE_SYSCALLS_H

#include "store/cache.h"

/* Before SQLite opens anything of ours; once is enough, more is harmless. */
void syscalls_install(void);

/* Nothing went wrong yet; and where the files of this thread's next opens lie. */
void syscalls_forget(enum cache cache);

/* The errno of the call that failed last; 0: none did. */
int syscalls_failed(void);

/* The errno of the lock that was refused last; EAGAIN: another has it; 0: all were given. */
int syscalls_lock_failed(void);

#endif
