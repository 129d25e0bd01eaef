/* SPDX-License-Identifier: MIT */
/*
 * The lock file DATABASE.lock. It records the mode in which machines exclude each other, and a
 * nonce that is in the database too, so that a database with the lock file of another one is
 * refused. It is made whole, before the database, and only its last line is ever rewritten.
 *
 * A struct lockfile owns path and descriptor (close-on-exec): call lockfile_close, also after an
 * error. One with descriptor -1 and all else zero is closed.
 */
#ifndef STORE_LOCK_LOCKFILE_H
#define STORE_LOCK_LOCKFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "store/cache.h"
#include "store/filesystem.h"
#include "store/lock/lock_mode.h"

/* Milliseconds. */
#define TAKEOVER_DEFAULT 5000
#define TAKEOVER_LEAST	 2000
#define TAKEOVER_MOST	 3600000

/*
 * The format of a store: of the lock file and of the database, whose user_version it is. Stores of
 * another format are refused; 1 and 2 were used before the first release.
 */
#define STORE_FORMAT 3

/* What the opener wants and where it is. */
struct lockfile_terms {
	const char *database;
	enum lock_mode mode; /* asked for */
	bool create;	     /* make the lock file if there is neither it nor the database */
	bool read_only;	     /* a lock that only keeps writers out will do, where we cannot write */
	bool shared_group;
	bool alone;	  /* do without the queue of this machine */
	int64_t takeover; /* asked for, milliseconds; 0: as recorded, else the default */
	struct filesystem_traits traits;
};

struct lockfile {
	char *path; /* DATABASE.lock */
	int descriptor;
	enum lock_mode mode; /* as recorded */
	char nonce[33];
	int64_t takeover; /* milliseconds of silence after which a holder is dead; 0: mode fcntl */
	bool shared_group;
	enum cache cache; /* what to let go of before files of the store are read */
	int outlived;	  /* as in struct filesystem_traits */
	bool made;	  /* the database was finished once; see lockfile_read */
	bool read_only;	  /* the filesystem or the file cannot be written */
	/* What the descriptor is open on, and in which directory that was found. */
	struct stat itself, directory;
};

/* STATUS_NO: there is neither lock file nor database, and create was not asked for. */
enum status lockfile_open(struct lockfile *file, const struct lockfile_terms *terms,
	int64_t deadline, struct error *err);
void lockfile_close(struct lockfile *file);

/*
 * Close the descriptor. That gives back any lock of the kernel and lets go of a filesystem that was
 * unmounted. The rest stays; the file must be opened again.
 */
void lockfile_drop(struct lockfile *file);

/* Whether this is the file that was opened. */
bool lockfile_is(const struct lockfile *file, const struct stat *st);

/*
 * For the doctor and for conversions: the record of the lock file path, whatever its mode is.
 * STATUS_NO: there is none.
 */
enum status lockfile_inspect(
	struct lockfile *file, const char *path, bool shared_group, struct error *err);
/*
 * Make a synced lock file of a finished store with a new nonce; it replaces an old one. takeover:
 * mode link only; 0: the default.
 */
enum status lockfile_write(const char *path, enum lock_mode mode, int64_t takeover,
	bool shared_group, struct error *err);

/*
 * Check that the path still names the file that was opened: two inodes under one path are two
 * locks. STATUS_DAMAGED: the directory is the one in which the file was opened, but the file was
 * deleted or replaced, perhaps by a copy. STATUS_TEMPORARY, and the file is dropped: the directory
 * is another one or cannot be read, because it was moved or its filesystem was unmounted.
 */
enum status lockfile_verify(struct lockfile *file, struct error *err);
/* Why there is nothing to open under the path of a file that is dropped already. */
enum status lockfile_gone(const struct lockfile *file, struct error *err);

/*
 * Under the lock: read what the open file records, or write that the database was finished. A lock
 * file that says so without a database means that the database was deleted.
 */
enum status lockfile_read(struct lockfile *file, struct error *err);
enum status lockfile_write_made(struct lockfile *file, struct error *err);

/*
 * Under the lock, before lockfile_write_made: remove what processes left that were killed while
 * they made a lock file: path, ending, and six characters. One that is still at work finds that the
 * lock file exists.
 */
void lockfile_tidy(const char *path, const char *ending);
#define LOCKFILE_BEGUN ".new-" /* the ending where a store is made */

/* what, the lock file or the database, does not have STORE_FORMAT: STATUS_DAMAGED. */
enum status lockfile_refuse_format(const char *what, unsigned format, struct error *err);

/* "cannot ACTION lock file PATH: REASON; CURE"; returns the status of the errno. */
enum status lockfile_failed(
	struct error *err, const char *action, const struct lockfile *file, int number);

#endif
