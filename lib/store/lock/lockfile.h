/* SPDX-License-Identifier: MIT */
/*
 * The lock file of a store: a byte of it is locked by whoever uses the store. Its text says what it
 * is, and whether the database was ever complete; it is made whole, before the database. The lock
 * belongs to the open file description, and is always released explicitly: a forked child that has
 * a copy of the descriptor does not keep it.
 *
 * Two inodes under one path are two locks. So after locking it, who has it looks whether the path
 * still names it; and a process in the middle of a transaction has SQLite's own locks, too.
 *
 * A lock file of version 0.1.0 with "mode fcntl" is read; one with "mode link" is refused.
 */
#ifndef STORE_LOCK_LOCKFILE_H
#define STORE_LOCK_LOCKFILE_H

#include "store/lock/lock.h"

/*
 * The format of a store: of its lock file and of its database (user_version). Stores of another
 * format are refused; 1 and 2 were used before the first release.
 */
#define STORE_FORMAT	 3
#define TEXT_OF(number)	 #number
#define VALUE_OF(number) TEXT_OF(number)

/* Returns 0, or an errno; EEXIST and the like: another process may have made it. */
int lockfile_make(const struct lock *lock);
/*
 * Open and read it; with read_only, also if it cannot be written. STATUS_NO: there is none.
 * *number: the errno of the failure, or 0.
 */
enum status lockfile_open(struct lock *lock, bool read_only, int *number, struct error *err);
void lockfile_close(struct lock *lock);

/* Returns 0, EAGAIN (another has it), or another errno. */
int lockfile_take(struct lock *lock);
/* As lockfile_take, and waits as lockfile_wait does. */
int lockfile_take_until(struct lock *lock, int64_t deadline);
void lockfile_give(struct lock *lock);

/* As lock_check. */
enum status lockfile_check(struct lock *lock, struct error *err);
/* It is not where it was: set err to the reason. */
enum status lockfile_gone(const struct lock *lock, struct error *err);

/* Read again what it records. */
enum status lockfile_read(struct lock *lock, struct error *err);
/* Record that the database is complete. */
enum status lockfile_note_made(struct lock *lock, struct error *err);

/* Returns STATUS_DAMAGED: `what`, the lock file or the database, has this format, not ours. */
enum status lockfile_refuse_format(const char *what, unsigned format, struct error *err);

/*
 * Ask for a byte-range lock with command F_SETLK or F_OFD_SETLK. Returns 0; EAGAIN: another process
 * has it; or another errno. fcntl may report EACCES for both: this finds out which of them it is.
 */
struct flock;
int lockfile_ask(int descriptor, int command, struct flock *lock);
/*
 * For a filesystem of this machine: take the lock, and wait in the kernel's queue until the
 * deadline, so that of all who wait only the next one is woken. As lockfile_ask with F_OFD_SETLK.
 */
int lockfile_wait(int descriptor, struct flock *lock, int64_t deadline);

#endif
