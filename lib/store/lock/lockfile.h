/* SPDX-License-Identifier: MIT */
/*
 * The lock file DATABASE.lock. It records the mode in which machines exclude each other, and a
 * nonce that is also in the database, so that a database with the lock file of another one is
 * refused. It is made before the database, and gets its name when it is complete; later only its
 * last line is rewritten.
 *
 * A struct lockfile owns path and descriptor (close-on-exec): call lockfile_close, also after an
 * error. Closed, it has descriptor -1 and is zero otherwise.
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

/* The takeover time, in milliseconds. */
#define TAKEOVER_DEFAULT 5000
#define TAKEOVER_LEAST	 2000
#define TAKEOVER_MOST	 3600000

/*
 * The format of a store: of its lock file and of its database (user_version). Stores of another
 * format are refused; 1 and 2 were used before the first release.
 */
#define STORE_FORMAT 3

/* How to open a lock file. */
struct lockfile_terms {
	const char *database;
	enum lock_mode mode; /* the URL's lock= */
	bool create;	     /* make the lock file if there is neither it nor the database */
	bool read_only;	     /* if we cannot write, a lock that keeps only writers out is enough */
	bool shared_group;
	bool alone;	  /* do not use the ticket queue of this machine */
	int64_t takeover; /* the URL's takeover=, ms; 0: as recorded, else the default */
	struct filesystem_traits traits;
};

struct lockfile {
	char *path; /* DATABASE.lock */
	int descriptor;
	enum lock_mode mode; /* as recorded */
	char nonce[33];
	int64_t takeover; /* ms of silence after which a holder counts as dead; 0: mode fcntl */
	bool shared_group;
	enum cache cache; /* what to drop before files of the store are read (cache.h) */
	int outlived;	  /* as in struct filesystem_traits */
	bool made;	  /* the database was once complete (lockfile_write_made) */
	bool read_only;	  /* the filesystem or the file cannot be written */
	/* The open file, and the directory in which it was. */
	struct stat itself, directory;
};

/* STATUS_NO: there is neither lock file nor database, and terms->create is false. */
enum status lockfile_open(struct lockfile *file, const struct lockfile_terms *terms,
	int64_t deadline, struct error *err);
void lockfile_close(struct lockfile *file);

/*
 * Close the descriptor, and keep the rest; the file must be opened again. This releases its locks,
 * and lets an old mount of the filesystem go away.
 */
void lockfile_drop(struct lockfile *file);

/* Whether this is the file that was opened. */
bool lockfile_is(const struct lockfile *file, const struct stat *st);

/*
 * Open the lock file at path, of any lock mode, and read what it records; for the doctor.
 * STATUS_NO: there is none.
 */
enum status lockfile_inspect(
	struct lockfile *file, const char *path, bool shared_group, struct error *err);

/*
 * Check that the path still names the file that was opened: two inodes under one path are two
 * locks. If the file was not changed for a day, also set its and the database's times to now.
 * STATUS_DAMAGED: the directory is the one in which the file was opened, but the file was
 * deleted or replaced, perhaps by a copy. STATUS_TEMPORARY, and the file is dropped: the directory
 * is another one or cannot be read, because it was moved or its filesystem was unmounted.
 */
enum status lockfile_verify(struct lockfile *file, struct error *err);
/* For a file that was dropped and cannot be opened again: set err to the reason. */
enum status lockfile_gone(const struct lockfile *file, struct error *err);

/* Under the lock: read again what the open lock file records. */
enum status lockfile_read(struct lockfile *file, struct error *err);
/* Under the lock: record that the database is complete. If it is missing later, it was deleted. */
enum status lockfile_write_made(struct lockfile *file, struct error *err);

/*
 * Remove the temporary files of processes that were killed while they made a lock file: their names
 * are path, ending and six characters. Call it under the lock: if a process that is still making a
 * lock file loses its temporary file, it finds that the lock file exists already.
 */
void lockfile_tidy(const char *path, const char *ending);
#define LOCKFILE_BEGUN ".new-" /* the ending of a lock file that is being made for a new store */

/* Returns STATUS_DAMAGED: `what`, the lock file or the database, has this format, not ours. */
enum status lockfile_refuse_format(const char *what, unsigned format, struct error *err);

/* "cannot ACTION lock file PATH: REASON; CURE"; returns the status of the errno. */
enum status lockfile_failed(
	struct error *err, const char *action, const struct lockfile *file, int number);

#endif
