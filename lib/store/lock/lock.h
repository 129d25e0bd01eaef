/* SPDX-License-Identifier: MIT */
/*
 * The lock of a store, which one process in the whole cluster can hold. It has three levels, taken
 * in this order: among the threads of this process (database_mutex.h), among the processes of this
 * machine (machine.h), and among the machines, in the mode that the lock file records (lockfile.h,
 * lock_mode.h). No wait outlasts its deadline.
 *
 * In mode fcntl the lock belongs to the open file description, and is always released explicitly: a
 * forked child that has a copy of the descriptor does not keep it.
 */
#ifndef STORE_LOCK_LOCK_H
#define STORE_LOCK_LOCK_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/lock/database_mutex.h"
#include "store/lock/lock_link.h"
#include "store/lock/lock_mode.h"
#include "store/lock/lockfile.h"
#include "store/machine/machine.h"

struct lock {
	struct lockfile file;
	struct database_mutex *mutex;
	struct machine machine;
	struct link_state link;	      /* mode link only */
	struct lock_request *request; /* mode fcntl: a request not answered yet; NULL: none */
	bool entered;		      /* the first two levels are taken */
};

/* Make it a closed lock, which may be closed again. */
void lock_init(struct lock *lock);
/* STATUS_NO: there is neither lock file nor database, and create was not asked for. */
enum status lock_open(
	struct lock *lock, const struct lockfile_terms *terms, int64_t deadline, struct error *err);
void lock_close(struct lock *lock);

/* False: open it again before acquiring it. Not to be called while the lock is held. */
bool lock_is_open(const struct lock *lock);
/*
 * Replace lock by fresh, which was opened later under the same path, if both are of the same store,
 * that is, if their lock files have the same nonce. (Device and inode change with each mount, and
 * on some filesystems with each look.) STATUS_NO: two stores; fresh is closed, and lock stays.
 *
 * This is as safe as a process that starts now and opens the store, because we hold nothing.
 * Another process may still hold the lock through the old lock file:
 * - on another machine, or here through the old mount: it is the same file on the server and the
 *   same lock. Mode fcntl is only used if locks reach all mounts; the names of mode link are in the
 *   directory, which is the same;
 * - here through the old mount of a disk of this machine: the kernel treats both mounts as one
 *   filesystem, so it is the same inode;
 * - through a lock file that was deleted and replaced by a copy: these are two locks. But
 *   lockfile_verify refuses a process that has the old one open, and a process in the middle of a
 *   transaction has SQLite's locks on the database (mode fcntl), or does not depend on the inode of
 *   the lock file (mode link).
 */
enum status lock_replace(struct lock *lock, struct lock *fresh);

/*
 * Take the first two levels. STATUS_NO: another process of this machine has carried out the request
 * that we posted, or it is not known whether it has (post->fate); then no level is taken.
 */
enum status lock_enter_queue(
	struct lock *lock, struct post *post, int64_t deadline, struct error *err);
/*
 * Take all levels that are not taken yet; after an error none is taken. STATUS_DAMAGED: the file
 * under the path is no longer the one that was opened. After another error lock_is_open may be
 * false: the open lock file could not be used any more, and was closed.
 */
enum status lock_acquire(struct lock *lock, int64_t deadline, struct error *err);
/* lock_unlock, then lock_leave_queue. */
bool lock_release(struct lock *lock);
/*
 * Release the lock for other machines, and keep the first two levels until lock_leave_queue. True:
 * the filesystem says that the lock was ours until now. False: another process may have taken it
 * over: do not rely on anything read or written since lock_confirm was last true (link.lost).
 */
bool lock_unlock(struct lock *lock);
void lock_leave_queue(struct lock *lock);

/*
 * Whether we still hold the lock; to be called before each write. False: touch nothing, and release
 * it. Mostly this only reads the clock; with ask, it always asks the filesystem.
 */
bool lock_confirm(struct lock *lock, bool ask);
/* Whether lock_confirm is needed before each write: in mode fcntl a holder cannot lose the lock. */
bool lock_can_be_lost(const struct lock *lock);
/* After lock_confirm was false: set err to "REASON; CONSEQUENCE". Mostly STATUS_TEMPORARY. */
enum status lock_lost(const struct lock *lock, const char *consequence, struct error *err);

/* How machines exclude each other in one mode. */
struct lock_kind {
	/*
	 * Try once. 0: we hold it. EAGAIN: another machine does. EINPROGRESS: the filesystem did
	 * not answer before the deadline. Otherwise another errno.
	 */
	int (*try)(struct lock *lock, int64_t deadline);
	/* We stop trying. NULL: nothing to do. */
	void (*give_up)(struct lock *lock);
	/* As lock_unlock. */
	bool (*release)(struct lock *lock);
	/* As lock_confirm. NULL: the lock cannot be lost. */
	bool (*confirm)(struct lock *lock, bool ask);
	/* Set err to the reason why `try` returned this number, not 0. Returns err->status. */
	enum status (*explain)(const struct lock *lock, int number, struct error *err);
	/* The store is being closed, or its lock file turned out not to be the right one. */
	void (*close)(struct lock *lock);
};
extern const struct lock_kind lock_fcntl, lock_link;

/*
 * Ask for a byte-range lock with command F_SETLK or F_OFD_SETLK. Returns 0; EAGAIN: another process
 * has it; or another errno. fcntl may report EACCES for both: this finds out which of them it is.
 */
int lock_fcntl_ask(int descriptor, int command, struct flock *lock);

#endif
