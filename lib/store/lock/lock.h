/* SPDX-License-Identifier: MIT */
/*
 * The lock of a store: one holder in the whole cluster. It has three levels, taken in this order,
 * and none is waited for beyond the deadline: the threads of this process (database_mutex.h), the
 * processes of this machine (machine.h), the machines. The lock file records how machines exclude
 * each other (lockfile.h, lock_mode.h).
 *
 * The lock belongs to the open file description and is always released explicitly, so a forked
 * child that still has a copy of the descriptor does not keep it.
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
	struct link_state link; /* mode link only */
	struct lock_request
		*request; /* mode fcntl only: one that is not answered yet; mostly NULL */
	bool entered;	  /* the first two levels are taken */
};

/* A lock that is closed: closing it again is legal. */
void lock_init(struct lock *lock);
/* STATUS_NO: there is neither lock file nor database, and create was not asked for. */
enum status lock_open(
	struct lock *lock, const struct lockfile_terms *terms, int64_t deadline, struct error *err);
void lock_close(struct lock *lock);

/* False: it must be opened again before it can be acquired. Only while it is not held. */
bool lock_is_open(const struct lock *lock);
/*
 * Replace a lock by fresh, which was opened later under the same path, if it is the lock of the
 * same store; else STATUS_NO: fresh is closed, and lock stays.
 *
 * The same store is the one whose lock file has the same nonce. Device and inode do not tell: they
 * change with each mount, and on some filesystems with each look. So this is as safe as a process
 * that starts now and opens the store; we hold nothing from before. Another process may still hold
 * the lock through the old lock file:
 * - on another machine, or here through the old mount: it is the same file on the server and the
 *   same lock. Mode fcntl is only used where locks reach all mounts, and the names of mode link are
 *   in the directory, which is the same;
 * - here through the old mount of a disk of this machine: the kernel keeps both mounts as one
 *   filesystem, so it is the same inode;
 * - through a lock file that was deleted and replaced by a copy: these are two locks.
 *   lockfile_verify refuses a process that has the old one open. One that is in the middle of a
 *   transaction has SQLite's locks on the database (mode fcntl), or does not depend on the inode of
 *   the lock file (mode link).
 */
enum status lock_replace(struct lock *lock, struct lock *fresh);

/*
 * Take the first two levels, so that lock_acquire only asks the machines. STATUS_NO: the
 * request that was posted was carried out by another process of this machine, or it is not known
 * whether it was (post->fate); then nothing is taken.
 */
enum status lock_enter_queue(
	struct lock *lock, struct post *post, int64_t deadline, struct error *err);
/*
 * STATUS_DAMAGED: the file under the path is no longer the one that was opened. After another error
 * the lock file may have been dropped, because it could not be reached through what was open: see
 * lock_is_open.
 */
enum status lock_acquire(struct lock *lock, int64_t deadline, struct error *err);
/* lock_unlock, then lock_leave_queue. */
bool lock_release(struct lock *lock);
/*
 * Let other machines have it, and keep the first two levels: no other process of this machine goes
 * on before lock_leave_queue. True: the filesystem says that it was ours until now. False: others
 * may have taken it over, and what was read or written since it was last known to be ours does not
 * count (link.lost).
 */
bool lock_unlock(struct lock *lock);
void lock_leave_queue(struct lock *lock);

/*
 * Whether the lock that was acquired is still ours, to be asked before every write. False: touch
 * nothing any more, and release it. Costs a look at the clock; ask: ask the filesystem in any case.
 */
bool lock_confirm(struct lock *lock, bool ask);
/* Whether writes must be guarded by lock_confirm. In other modes a holder cannot lose the lock. */
bool lock_can_be_lost(const struct lock *lock);
/* "its lock was taken over ...; CONSEQUENCE", or that this cannot be told; mostly STATUS_TEMPORARY.
 */
enum status lock_lost(const struct lock *lock, const char *consequence, struct error *err);

/* How the machines are asked: one for each mode. */
struct lock_kind {
	/*
	 * Ask once. 0: we hold it; EAGAIN: another has it; EINPROGRESS: the filesystem did not
	 * answer before the deadline; else an errno.
	 */
	int (*try)(struct lock *lock, int64_t deadline);
	/* It is not tried any more; NULL: nothing to do. */
	void (*give_up)(struct lock *lock);
	/* As lock_unlock. */
	bool (*release)(struct lock *lock);
	/* As lock_confirm; NULL: it cannot be lost. */
	bool (*confirm)(struct lock *lock, bool ask);
	/* What stood in the way, from the answer of try, which is not 0. Returns err's status. */
	enum status (*explain)(const struct lock *lock, int number, struct error *err);
	/* The store is closed. */
	void (*close)(struct lock *lock);
};
extern const struct lock_kind lock_fcntl, lock_link;

/*
 * Ask for a byte-range lock, command F_SETLK or F_OFD_SETLK: 0, EAGAIN: another has it, or what
 * went wrong. EACCES, which may mean either, is told apart.
 */
int lock_fcntl_ask(int descriptor, int command, struct flock *lock);

#endif
