/* SPDX-License-Identifier: MIT */
/* Making a new database: under a temporary name; when it is complete, it gets its own name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/failure.h"
#include "store/sqlite/session.h"

#define TEXT_OF(number)	 #number
#define VALUE_OF(number) TEXT_OF(number)

static const char on_make[] =
	"PRAGMA journal_mode=MEMORY; PRAGMA synchronous=FULL; BEGIN;"
	"PRAGMA application_id=" VALUE_OF(
		DATABASE_APPLICATION) ";"
				      "CREATE TABLE meta(nonce TEXT NOT NULL, revision INTEGER NOT NULL,"
				      " floor INTEGER NOT NULL);"
				      "CREATE TABLE keys(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL,"
				      " revision INTEGER NOT NULL) WITHOUT ROWID;"
				      "CREATE INDEX keys_revision ON keys(revision);"
				      "CREATE TABLE gone(key BLOB NOT NULL, revision INTEGER NOT NULL,"
				      " PRIMARY KEY(revision, key)) WITHOUT ROWID;";

/* Make the temporary file. temporary: its path, in directory; a template in it is filled in. */
static int open_temporary(const struct sqlite_store *store, int directory, char *temporary)
{
	char *name = strrchr(temporary, '/') + 1;
	/*
	 * If we can lose the lock, another process may be making the database, too: use a name that
	 * no other process uses. If we are killed, link_sweep removes the file.
	 */
	if (lock_can_be_lost(&store->lock))
		return file_make_temporary(directory, name);
	/* We hold the lock, so an existing file was left by a process that was killed. */
	(void)unlinkat(directory, name, 0);
	return openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static enum status make_failed(const struct sqlite_store *store, int number, struct error *err)
{
	return error_cured(err, number, store_cure(number), "make store %s", store->base.where);
}

/* Make a complete, synced database under a temporary name in directory. */
static enum status make_temporary(
	struct sqlite_store *store, int directory, char *temporary, struct error *err)
{
	struct session session = {.store = store};
	int descriptor = open_temporary(store, directory, temporary);
	if (descriptor < 0 || (store->parameters.shared_group && fchmod(descriptor, 0660) < 0)) {
		int number = errno;
		if (descriptor >= 0)
			close(descriptor);
		return make_failed(store, number, err);
	}
	close(descriptor);
	int code = session_open(&session, temporary, SQLITE_OPEN_READWRITE);
	enum status status = code == SQLITE_OK ? session_execute(&session, on_make, "make", err)
					       : session_failed(&session, "make", code, err);
	if (status == STATUS_OK) {
		char insert[128];
		snprintf(insert, sizeof(insert),
			"PRAGMA user_version=%d; INSERT INTO meta VALUES('%s', 0, 0); COMMIT",
			STORE_FORMAT, store->lock.file.nonce);
		status = session_execute(&session, insert, "make", err);
	}
	session_close(&session);
	return status;
}

/* Give the new database its name. */
static int give_name(const struct sqlite_store *store, const char *temporary)
{
	if (!lock_can_be_lost(&store->lock))
		return rename(temporary, store->base.where);
	/* link does not replace the database of a process that has taken over our lock. */
	int result = link(temporary, store->base.where);
	if (result == 0)
		unlink(temporary);
	return result;
}

/*
 * STATUS_TEMPORARY: our lock file is not in directory, because something was mounted or unmounted
 * there. The lock file must not be on one filesystem and the database on another: the store would
 * be lost.
 */
static enum status check_lock_is_in(
	const struct sqlite_store *store, int directory, struct error *err)
{
	const struct lockfile *file = &store->lock.file;
	const char *name = strrchr(file->path, '/') + 1;
	struct stat there;
	int number = fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
	if (number && number != ENOENT)
		return make_failed(store, number, err);
	if (number || !lockfile_is(file, &there))
		return error_set(err, STATUS_TEMPORARY,
			"the filesystem of store %s went away while it was made: try again",
			store->base.where);
	return STATUS_OK;
}

static enum status make_whole(struct sqlite_store *store, struct error *err)
{
	/* Use the directory's descriptor: if it is unmounted now, nothing is made on its mount
	 * point. */
	int directory = open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return make_failed(store, errno, err);
	char *temporary = xprintf(lock_can_be_lost(&store->lock) ? "%s.lock.new-XXXXXX" : "%s.new",
		store->base.where);
	enum status status = make_temporary(store, directory, temporary, err);
	if (status == STATUS_OK && !lock_confirm(&store->lock, true))
		status = database_lost(store, false, err);
	if (status == STATUS_OK)
		status = check_lock_is_in(store, directory, err);
	if (status == STATUS_OK && give_name(store, temporary) < 0)
		status = make_failed(store, errno, err);
	if (status == STATUS_OK)
		status = file_sync_directory(store->directory, err);
	else
		(void)unlinkat(directory, strrchr(temporary, '/') + 1, 0);
	close(directory);
	free(temporary);
	return status;
}

/* Whether there is a database. An error does not mean that there is none. */
static enum status is_there(const struct sqlite_store *store, bool *there, struct error *err)
{
	struct stat st;
	*there = cache_stat(store->lock.file.cache, store->base.where, &st) == 0;
	int number = errno;
	if (*there || number == ENOENT)
		return STATUS_OK;
	return error_cured(err, number, store_cure(number), "look at store %s", store->base.where);
}

enum status database_make(
	struct sqlite_store *store, bool create, int64_t deadline, struct error *err)
{
	bool there;
	enum status status = STATUS_OK;
	if (store->lock.file.made)
		return STATUS_OK;
	if (!create) {
		status = is_there(store, &there, err);
		return status != STATUS_OK || there
			       ? status
			       : error_set(err, STATUS_NO, "store %s does not exist",
					 store->base.where);
	}
	status = database_lock(store, deadline, err);
	if (status != STATUS_OK)
		return status;
	status = lockfile_read(&store->lock.file, err);
	if (status == STATUS_OK && !store->lock.file.made) {
		status = is_there(store, &there, err);
		/* It may only seem missing, because the filesystem was unmounted. */
		if (status == STATUS_OK && !there)
			status = lockfile_verify(&store->lock.file, err);
		if (status == STATUS_OK && !there)
			status = make_whole(store, err);
		if (status == STATUS_OK)
			lockfile_tidy(store->lock.file.path, LOCKFILE_BEGUN);
		if (status == STATUS_OK)
			status = lockfile_write_made(&store->lock.file, err);
	}
	if (!lock_release(&store->lock) && status == STATUS_OK)
		status = database_lost(store, false, err);
	return status;
}
