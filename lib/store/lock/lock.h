/* SPDX-License-Identifier: MIT */
/*
 * The lock of a store, which one process in the whole cluster can hold: DATABASE.lock. It is of one
 * of two kinds, by the filesystem on which the store was made, and what is on the disk says which:
 *
 *	a file		(lockfile.h) with a byte-range lock of the kernel, on a filesystem of one
 *			machine, or where such locks reach the other machines
 *	a directory	(token.h) with one file in it that is only ever renamed, elsewhere
 *
 * Before it, a thread takes the mutex of its process (database_mutex.h), and, on a filesystem that
 * other machines see, the lock of its machine (machine.h). No wait outlasts its deadline.
 *
 *	lock_open; then lock_take, lock_give, as often as you like; lock_close
 */
#ifndef STORE_LOCK_LOCK_H
#define STORE_LOCK_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "store/cache.h"
#include "store/filesystem.h"
#include "store/lock/database_mutex.h"
#include "store/lock/machine.h"
#include "store/lock/token.h"

enum lock_kind { LOCK_FILE, LOCK_TOKEN };

struct lock {
	enum lock_kind kind;
	char *path;	/* DATABASE.lock */
	char *database; /* the file with the database, as of our last lock_take */
	char *base;	/* DATABASE */
	enum cache cache;
	bool shared_group;
	bool made;	/* the database was once complete: if it is missing, it was deleted */
	bool read_only; /* the lock file cannot be written: a lock that keeps writers out is enough
			 */
	bool may_be_read_only;
	enum lock_kind chosen; /* the kind that a new store would have here */
	bool queues;	 /* who waits, waits in the kernel: its locks are those of this machine */
	int outlived;	 /* as in struct filesystem_traits */
	int64_t looked;	 /* when lock_refresh looked last */
	unsigned opened; /* how many times the lock file was opened */
	struct database_mutex *mutex;
	struct machine machine;
	/* LOCK_FILE */
	int descriptor;		       /* -1: it is to be opened again */
	struct stat itself, directory; /* the open file, and the directory in which it was */
	/* LOCK_TOKEN */
	char token[TOKEN_NAME]; /* ours; empty: we do not have it */
	char file[TOKEN_FILE];	/* the file that it names */
	bool moving;		/* the database is to be copied: takeover.h */
	int64_t renamed;	/* clock_now before the last rename */
	struct token holder;	/* who had it when we last waited */
	int lost; /* EAGAIN: it was ours, and is another's; another errno: not known */
};

struct lock_terms {
	const char *database;
	bool create;	/* make it if there is neither lock nor database */
	bool read_only; /* if we cannot write, a lock that keeps only writers out is enough */
	bool shared_group;
	bool alone;	     /* do not use the lock of this machine */
	bool of_this_kernel; /* the filesystem is one of this machine, whatever is assumed */
	struct filesystem_traits traits;
};

/* The kind for a new store. Pure. */
enum lock_kind lock_choose(const struct filesystem_traits *traits);
/* Whether this machine may use a store of this kind. Pure. STATUS_USAGE: err says why not. */
enum status lock_follow(
	enum lock_kind kind, const struct filesystem_traits *traits, struct error *err);

/* Make it a closed lock, which may be closed again. */
void lock_init(struct lock *lock);
/* STATUS_NO: there is neither lock nor database, and create was not asked for. */
enum status lock_open(
	struct lock *lock, const struct lock_terms *terms, int64_t deadline, struct error *err);
void lock_close(struct lock *lock);

/*
 * STATUS_OK: we have it; lock->database is where the database is. If lock->moving is set, call
 * takeover_run before the database is touched.
 */
enum status lock_take(struct lock *lock, int64_t deadline, struct error *err);
/*
 * True: it was ours until now. False: another process may have taken it over: do not rely on
 * anything read or written since lock_take; lock_lost says why.
 */
bool lock_give(struct lock *lock);
/*
 * Show others that we live; to be called often. Mostly this only reads the clock. False: it is
 * another's, or this is not known: stop, and call lock_give, which is false, too.
 */
bool lock_keep(struct lock *lock);
/* After false: set err to "REASON; CONSEQUENCE". */
enum status lock_lost(const struct lock *lock, const char *consequence, struct error *err);
/* After lock->moving: the database is now in this file. */
bool lock_settle(struct lock *lock, const char *file);
/* While we have it: record that the database is complete. */
enum status lock_note_made(struct lock *lock, struct error *err);

/*
 * Whether the lock under the path is the one that was opened. STATUS_DAMAGED: it was deleted or
 * replaced. STATUS_TEMPORARY: its directory is another one or cannot be read, because it was moved,
 * or its filesystem was unmounted; the lock is then to be opened again, which lock_take does.
 */
enum status lock_check(struct lock *lock, struct error *err);
/* Without the lock: whether lock->database still is the database, as far as is known. */
bool lock_names_file(const struct lock *lock);
/*
 * Sites delete files that were not changed for some days, and using a store changes neither its
 * lock nor a database that is only read: if they are older than a day, set their times to now.
 * Mostly this only reads the clock.
 */
void lock_refresh(struct lock *lock);

/* The path of the database file of this name (token.h), and an ending; to be freed. */
char *lock_path_of(const struct lock *lock, const char *file, const char *ending);
/*
 * The reverse, for the last part of such a path: set file, and return the ending. NULL: it is not
 * the name of a database or of its journal.
 */
const char *lock_read_name(const struct lock *lock, const char *name, char file[TOKEN_FILE]);

/* "cannot ACTION lock PATH: REASON; CURE"; returns the status of the errno. */
enum status lock_failed(struct error *err, const char *action, const struct lock *lock, int number);

#endif
