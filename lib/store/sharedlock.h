/* SPDX-License-Identifier: MIT */
/*
 * The outer lock of a store: one holder in the whole cluster. Three levels, taken in this order and
 * never waited for beyond the deadline: the threads of this process (guard.h), the processes of
 * this machine (machine.h), the machines.
 *
 * How machines exclude each other, the mode, is chosen by whoever makes the store, stands in the
 * lock file, and is followed by everybody: two modes at once would be no lock at all. The lock file
 * also holds a nonce, which is in the database too: a database with a lock file that is not its own
 * is refused. The file is made whole, and but for its last line never written again.
 *
 * Fork: the lock belongs to the open file description. It is always released explicitly, so a child
 * that still has a copy of the descriptor does not keep it.
 */
#ifndef STORE_SHAREDLOCK_H
#define STORE_SHAREDLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/filesystem.h"
#include "store/guard.h"
#include "store/machine.h"

enum lock_mode {
	LOCK_AUTO,  /* only ever asked for: as recorded, else what the filesystem allows */
	LOCK_FCNTL, /* an open-file-description lock on the lock file */
	LOCK_LINK,  /* a hard link, for filesystems whose locks stay on one machine */
};

/* What the opener wants and where it is. */
struct sharedlock_terms {
	const char *database;
	enum lock_mode mode; /* asked for */
	bool create;	     /* make the lock file if there is neither it nor the database */
	bool read_only;	     /* a lock that only keeps writers out will do, where we cannot write */
	bool shared_group;
	struct filesystem_verdict verdict;
};

struct sharedlock {
	char *path; /* DATABASE.lock */
	int descriptor;
	enum lock_mode mode;
	char nonce[33];
	bool local;	/* no other machine writes it */
	bool made;	/* the database was finished once; see sharedlock_read_made */
	bool read_only; /* the filesystem or the file cannot be written */
	struct guard *guard;
	struct machine machine;
};

bool lock_mode_parse(const char *name, enum lock_mode *mode);
const char *lock_mode_name(enum lock_mode mode);

/* Pure. The mode of a store to be made there; STATUS_USAGE with the reason where there is none. */
enum status lock_mode_choose(enum lock_mode asked, const struct filesystem_verdict *verdict,
	enum lock_mode *mode, struct error *err);
/* Pure. Whether a store made in this mode may be opened from here. */
enum status lock_mode_follow(enum lock_mode recorded, enum lock_mode asked,
	const struct filesystem_verdict *verdict, struct error *err);

/* STATUS_NO: there is neither lock file nor database, and create was not asked for. */
enum status sharedlock_open(struct sharedlock *lock, const struct sharedlock_terms *terms,
	int64_t deadline, struct error *err);
void sharedlock_close(struct sharedlock *lock);

/* STATUS_DAMAGED: the file under the path is no longer the one that was opened. */
enum status sharedlock_acquire(struct sharedlock *lock, int64_t deadline, struct error *err);
void sharedlock_release(struct sharedlock *lock);

/*
 * Under the lock: read again, and write, that the database was finished. A lock file that says so
 * without a database means that the database was deleted.
 */
enum status sharedlock_read_made(struct sharedlock *lock, struct error *err);
enum status sharedlock_write_made(struct sharedlock *lock, struct error *err);

/*
 * What to do about an errno that a store can run into: "free space or choose another place", ""
 * where there is nothing to say.
 */
const char *lock_cure(int number);

#endif
