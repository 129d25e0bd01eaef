/* SPDX-License-Identifier: MIT */
/*
 * The outer lock of a store: one holder in the whole cluster. Three levels, taken in this order and
 * never waited for beyond the deadline: the threads of this process (guard.h), the processes of
 * this machine (machine.h), the machines. How machines exclude each other stands in the lock file
 * (lockfile.h, lock_mode.h).
 *
 * Fork: the lock belongs to the open file description. It is always released explicitly, so a child
 * that still has a copy of the descriptor does not keep it.
 */
#ifndef STORE_SHAREDLOCK_H
#define STORE_SHAREDLOCK_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/guard.h"
#include "store/lock_mode.h"
#include "store/lockfile.h"
#include "store/machine.h"

struct sharedlock {
	struct lockfile file;
	struct guard *guard;
	struct machine machine;
};

/* A lock that is closed: closing it again is legal. */
void sharedlock_init(struct sharedlock *lock);
/* STATUS_NO: there is neither lock file nor database, and create was not asked for. */
enum status sharedlock_open(struct sharedlock *lock, const struct lockfile_terms *terms,
	int64_t deadline, struct error *err);
void sharedlock_close(struct sharedlock *lock);

/* STATUS_DAMAGED: the file under the path is no longer the one that was opened. */
enum status sharedlock_acquire(struct sharedlock *lock, int64_t deadline, struct error *err);
void sharedlock_release(struct sharedlock *lock);

/* How the machines are asked: one for each mode. */
struct lock_kind {
	/* Once: 0: we hold it; EAGAIN: another does; else what went wrong. */
	int (*try)(struct sharedlock *lock);
	void (*release)(struct sharedlock *lock);
};
extern const struct lock_kind lock_fcntl;

/*
 * Ask for a byte-range lock, command F_SETLK or F_OFD_SETLK: 0, EAGAIN: another has it, or what
 * went wrong. EACCES, which may mean either, is told apart.
 */
int lock_fcntl_ask(int descriptor, int command, struct flock *lock);

#endif
