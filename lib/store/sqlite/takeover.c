/* SPDX-License-Identifier: MIT */
/*
 * After a token was taken over from a process that may be alive: the database is copied to a file
 * of a new name, which the token then names. The process that was overtaken may go on writing; that
 * goes to the old file, which no process reads any more.
 *
 * It writes in the order of SQLite. If journal and database are the same when they are read again,
 * the copies show both at one moment: they are what a loss of power would have left, and SQLite
 * rolls back in them as after that. A commit that was acknowledged is in them, because its process
 * gave the token back first, so that it could not be overtaken.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "store/cache.h"
#include "store/failure.h"
#include "store/sqlite/journal.h"
#include "store/sqlite/session.h"

#define CHUNK	   ((size_t)256 << 10)
#define SYNC_EVERY (4 << 20) /* bytes of a copy, since the token is not kept during a sync */
#define ROUNDS	   20	     /* how often the files are copied while they change */

enum { DATABASE, JOURNAL, FILES };
static const char *const endings[FILES] = {"", "-journal"};

struct takeover {
	struct sqlite_store *store;
	char file[TOKEN_FILE];
	char *old[FILES], *new[FILES];
};

/*
 * Make a file with the owner, group and mode of the one that it replaces. Only root can keep the
 * owner; in a store of a group it is enough to keep the group, which gives the others access.
 */
static int make_like(const struct takeover *takeover, const char *path, const struct stat *like)
{
	struct stat st;
	int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (descriptor < 0)
		return -1;
	if (fstat(descriptor, &st) == 0 && fchmod(descriptor, like->st_mode & 0777) == 0) {
		bool group = st.st_gid == like->st_gid;
		if ((group && st.st_uid == like->st_uid) ||
			fchown(descriptor, like->st_uid, like->st_gid) == 0 ||
			(takeover->store->parameters.shared_group &&
				(group || fchown(descriptor, (uid_t)-1, like->st_gid) == 0)))
			return descriptor;
	}
	int number = errno;
	close(descriptor);
	errno = number;
	return -1;
}

/* Hash the content of from, and copy it to `to` if that is not -1. Returns 0 or an errno. */
static int pass(struct takeover *takeover, int from, int to, uint64_t *hash)
{
	int number = 0;
	char *bytes = xmalloc(CHUNK);
	ssize_t n = 1;
	for (off_t at = 0; !number && n > 0; at += n) {
		n = pread(from, bytes, CHUNK, at);
		if (n < 0 || (to >= 0 && n > 0 && file_write_all(to, bytes, (size_t)n) < 0) ||
			(to >= 0 && (n <= 0 || at / SYNC_EVERY != (at + n) / SYNC_EVERY) &&
				fdatasync(to) < 0))
			number = errno;
		else if (!lock_keep(&takeover->store->lock))
			number = EBUSY;
		else
			*hash = XXH64(bytes, (size_t)n, *hash);
	}
	free(bytes);
	return number;
}

/* Hash a file (0: it is missing), and with copy also copy it. Returns 0 or an errno. */
static int take_in(struct takeover *takeover, int which, bool copy, uint64_t *hash)
{
	struct stat st;
	int to = -1, number = 0;
	*hash = 0;
	if (copy && unlink(takeover->new[which]) < 0 && errno != ENOENT)
		return errno;
	int from = cache_open(takeover->store->lock.cache, takeover->old[which]);
	if (from < 0)
		return errno == ENOENT ? 0 : errno;
	*hash = 1;
	if (fstat(from, &st) < 0)
		number = errno;
	else if (!S_ISREG(st.st_mode))
		number = EINVAL;
	else if (copy && (to = make_like(takeover, takeover->new[which], &st)) < 0)
		number = errno;
	if (!number)
		number = pass(takeover, from, to, hash);
	if (to >= 0 && close(to) < 0 && !number)
		number = errno;
	close(from);
	return number;
}

/* Copy both files as they are at one moment. Returns 0 or an errno. */
static int copy(struct takeover *takeover)
{
	uint64_t first[FILES], again[FILES];
	for (int round = 0; round < ROUNDS; round++) {
		int number = take_in(takeover, JOURNAL, true, &first[JOURNAL]);
		if (!number)
			number = take_in(takeover, DATABASE, true, &first[DATABASE]);
		if (!number)
			number = take_in(takeover, JOURNAL, false, &again[JOURNAL]);
		if (!number)
			number = take_in(takeover, DATABASE, false, &again[DATABASE]);
		if (!number && !first[DATABASE])
			return takeover->store->lock.made ? ENOENT : 0;
		if (number || !memcmp(first, again, sizeof(first)))
			return number;
	}
	return EBUSY;
}

static int sync_file(const char *path, bool shared_group)
{
	int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int number = descriptor < 0 || (shared_group && fchmod(descriptor, 0660) < 0) ||
				     fsync(descriptor) < 0
			     ? errno
			     : 0;
	if (descriptor >= 0)
		close(descriptor);
	return number;
}

static enum status make_whole(struct takeover *takeover, struct error *err)
{
	struct sqlite_store *store = takeover->store;
	const char *new = takeover->new[DATABASE];
	int number = copy(takeover);
	if (number == ENOENT)
		return error_set(err, STATUS_DAMAGED,
			"its file %s was deleted, and its token in %s is still there: not used; restore "
			"the file",
			takeover->old[DATABASE], store->lock.path);
	if (!number)
		number = sync_file(
			new, store->parameters.shared_group); /* makes one that is not made yet */
	if (number)
		return error_cured(
			err, number, store_cure(number), "copy %s", takeover->old[DATABASE]);
	enum status status = journal_check(store->lock.cache, new, err);
	if (status == STATUS_OK)
		status = database_recover(store, new, err);
	if (status != STATUS_OK)
		return status;
	number = sync_file(new, store->parameters.shared_group);
	return number ? error_cured(err, number, store_cure(number), "sync %s", new)
		      : file_sync_directory(store->directory, err);
}

/*
 * The database files that are there, the new one excepted: the old one, and copies that others did
 * not finish. Listed before the token names the new file, which shows that no process has overtaken
 * us and made a newer one by then, so they can be removed at any later time.
 */
static void list_strays(const struct takeover *takeover, struct file_names *strays)
{
	const struct lock *lock = &takeover->store->lock;
	size_t count = 0;
	int directory = open(takeover->store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0)
		(void)file_read_names(directory, takeover->store->directory, strays, NULL);
	if (directory >= 0)
		close(directory);
	for (size_t i = 0; i < strays->count; i++) {
		char *entry = strays->names[i];
		char file[TOKEN_FILE];
		if (lock_read_name(lock, entry, file) && strcmp(file, takeover->file) != 0)
			strays->names[count++] = entry;
		else
			free(entry);
	}
	strays->count = count;
}

static void remove_all(const struct takeover *takeover, const struct file_names *strays)
{
	for (size_t i = 0; i < strays->count; i++) {
		char *path = xprintf("%s/%s", takeover->store->directory, strays->names[i]);
		(void)unlink(path);
		free(path);
	}
}

enum status takeover_run(struct sqlite_store *store, struct error *err)
{
	struct lock *lock = &store->lock;
	struct takeover takeover = {.store = store};
	struct file_names strays = {0};
	token_draw(takeover.file);
	for (int i = 0; i < FILES; i++) {
		takeover.old[i] = lock_path_of(lock, lock->file, endings[i]);
		takeover.new[i] = lock_path_of(lock, takeover.file, endings[i]);
	}
	enum status status = make_whole(&takeover, err);
	bool made = status == STATUS_OK;
	if (made) {
		list_strays(&takeover, &strays);
		if (lock_settle(lock, takeover.file))
			remove_all(&takeover, &strays);
	}
	if (lock->lost)
		status = lock_lost(lock, "nothing was changed: try again", err);
	for (int i = 0; i < FILES; i++) {
		/* Not once the token may name it, be it late. */
		if (!made)
			(void)unlink(takeover.new[i]);
		free(takeover.old[i]);
		free(takeover.new[i]);
	}
	file_names_release(&strays);
	return status;
}
