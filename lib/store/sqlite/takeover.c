/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/cache.h"
#include "store/failure.h"
#include "store/lock/link_sweep.h"
#include "store/sqlite/journal.h"
#include "store/sqlite/session.h"
#include "store/sqlite/takeover_step.h"

#define CHUNK	   ((size_t)256 << 10)
#define SYNC_EVERY (4 << 20) /* bytes of a copy */
#define BLANK	   512	     /* bytes; SQLite does not play back a journal of zeros */
/*
 * Milliseconds for which we keep the lock afterwards, so that no process opens the old database: a
 * filesystem in user space may remember for a second which file has the name.
 */
#define REMEMBERED 1500

/* Files of the workspace. */
enum { ROOT, DATABASE, JOURNAL, BLANK_JOURNAL, OLD, FILES };
static const char *const names[FILES] = {"", "/d", "/d-journal", "/j", "/old"};

struct takeover {
	struct sqlite_store *store;
	struct error *err;
	enum status status; /* of the first failure */
	char held[PATH_MAX], name[LINK_NAME_MAX];
	char path[FILES][PATH_MAX];
	uint64_t journal, database; /* hashes of the copies; 0: there is no such file */
};

static enum takeover_answer failed(
	struct takeover *takeover, const char *action, const char *path, int number)
{
	if (takeover->status != STATUS_OK)
		return TAKEOVER_NO;
	error_cured(takeover->err, number, store_cure(number), "%s %s", action, path);
	takeover->status = error_prefix(takeover->err,
		"its lock was taken over from a process that is dead or does not "
		"answer, but its files cannot be replaced to keep that process out");
	return TAKEOVER_NO;
}

static enum takeover_answer make(struct takeover *takeover)
{
	char nonce[LINK_NAME_MAX];
	if (!link_name_make(nonce))
		return failed(takeover, "make", "a name", EIO);
	snprintf(takeover->name, sizeof(takeover->name), LINK_WORKSPACE "%.*s", LINK_NONCE, nonce);
	for (int i = 0; i < FILES; i++)
		if (snprintf(takeover->path[i], PATH_MAX, "%s/%s%s", takeover->held, takeover->name,
			    names[i]) >= PATH_MAX)
			return failed(takeover, "make", takeover->held, ENAMETOOLONG);
	const char *root = takeover->path[ROOT];
	if (mkdir(root, 0700) < 0 ||
		(takeover->store->parameters.shared_group && access_share_directory(root) < 0))
		return failed(takeover, "make", root, errno);
	return TAKEOVER_YES;
}

/*
 * If an NFS client renames a file over one that is open on its machine, it first renames the open
 * one to another name. If the machine dies in between, no file has the database's name: link the
 * old database, which is also in that machine's workspace (OLD), to the name again. Returns 0; or
 * an errno, and then the workspace must stay.
 */
static int put_back(const struct takeover *takeover)
{
	struct stat st;
	const char *database = takeover->store->base.where;
	int number = 0;
	if (lstat(database, &st) == 0)
		return 0;
	DIR *entries = errno == ENOENT ? opendir(takeover->held) : NULL;
	if (!entries)
		return errno;
	for (struct dirent *entry; !number && (entry = readdir(entries));) {
		char old[PATH_MAX];
		if (link_workspace_is(entry->d_name) &&
			snprintf(old, sizeof(old), "%s/%s%s", takeover->held, entry->d_name,
				names[OLD]) < (int)sizeof(old) &&
			link(old, database) < 0 && errno != ENOENT && errno != EEXIST)
			number = errno;
	}
	closedir(entries);
	return number;
}

/* Check that HELD contains only our name and our workspace. */
static enum takeover_answer be_alone(struct takeover *takeover)
{
	enum takeover_answer answer = TAKEOVER_YES;
	DIR *entries = opendir(takeover->held);
	if (!entries)
		return failed(takeover, "look into", takeover->held, errno);
	for (struct dirent *entry; (entry = readdir(entries));) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") && strcmp(name, "..") && strncmp(name, ".nfs", 4) &&
			strcmp(name, takeover->name) &&
			strcmp(name, takeover->store->lock.link.name)) {
			answer = failed(takeover, "keep others out of", takeover->held, EBUSY);
			break;
		}
	}
	closedir(entries);
	return answer;
}

static enum takeover_answer clear(struct takeover *takeover)
{
	int number = put_back(takeover);
	if (number)
		return failed(takeover, "put back", takeover->store->base.where, number);
	number = link_workspaces_remove(takeover->held, takeover->name);
	return number ? failed(takeover, "clear", takeover->held, number) : be_alone(takeover);
}

/*
 * Make a file with the owner, group and mode of the file that it will replace. Only root can keep
 * the owner; in a store of a group it is enough to keep the group, which gives the others access.
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

/* Write n bytes of a copy. Sync it in parts, because the lock is not renewed during a sync. */
static int write_part(int to, const char *bytes, size_t n, off_t at)
{
	if (file_write_all(to, bytes, n) < 0)
		return -1;
	bool full = at / SYNC_EVERY != (at + (off_t)n) / SYNC_EVERY;
	return full ? fdatasync(to) : 0;
}

/* Hash the content of from, and copy it to `to` if that is not -1. Returns 0 or an errno. */
static int pass(struct takeover *takeover, int from, int to, uint64_t *hash)
{
	int number = 0;
	XXH64_state_t *state = xneeded(XXH64_createState());
	char *bytes = xmalloc(CHUNK);
	ssize_t n = -1;
	(void)XXH64_reset(state, 0);
	for (off_t at = 0; !number && n; at += n) {
		n = pread(from, bytes, CHUNK, at);
		if (n < 0 || (to >= 0 && n > 0 && write_part(to, bytes, (size_t)n, at) < 0))
			number = errno;
		else if (!lock_confirm(&takeover->store->lock, false))
			number = EBUSY;
		else
			(void)XXH64_update(state, bytes, (size_t)n);
	}
	if (!number) {
		*hash = XXH64_digest(state);
		*hash += !*hash;
	}
	free(bytes);
	XXH64_freeState(state);
	return number;
}

/* Hash the file path (0: it is missing), and copy it if `to` is not NULL. Returns 0 or an errno. */
static int take_in(struct takeover *takeover, const char *path, const char *to, uint64_t *hash)
{
	struct stat st;
	int copy = -1, number = 0;
	*hash = 0;
	if (to && unlink(to) < 0 && errno != ENOENT)
		return errno;
	int descriptor = cache_open(takeover->store->lock.file.cache, path);
	if (descriptor < 0)
		return errno == ENOENT ? 0 : errno;
	if (fstat(descriptor, &st) < 0)
		number = errno;
	else if (!S_ISREG(st.st_mode))
		number = EINVAL;
	else if (to && (copy = make_like(takeover, to, &st)) < 0)
		number = errno;
	if (!number)
		number = pass(takeover, descriptor, copy, hash);
	if (copy >= 0 && close(copy) < 0 && !number)
		number = errno;
	close(descriptor);
	return number;
}

static enum takeover_answer copy(
	struct takeover *takeover, const char *path, const char *to, uint64_t *hash)
{
	int number = take_in(takeover, path, to, hash);
	return number ? failed(takeover, "copy", path, number) : TAKEOVER_YES;
}

static enum takeover_answer compare(struct takeover *takeover, const char *path, uint64_t hash)
{
	uint64_t now;
	int number = take_in(takeover, path, NULL, &now);
	if (number)
		return failed(takeover, "read", path, number);
	return now == hash ? TAKEOVER_YES : TAKEOVER_CHANGED;
}

static int sync_file(enum cache cache, const char *path)
{
	int descriptor = cache_open_at(cache, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	int number = descriptor < 0 || fsync(descriptor) < 0 ? errno : 0;
	if (descriptor >= 0)
		close(descriptor);
	return number;
}

/* Make a journal like the one that SQLite leaves after a commit, so that the next process need not
 * make one. */
static int make_blank(const struct takeover *takeover)
{
	static const char zeros[BLANK];
	struct stat st;
	if (stat(takeover->path[DATABASE], &st) < 0)
		return errno;
	int descriptor = make_like(takeover, takeover->path[BLANK_JOURNAL], &st);
	int number = descriptor < 0 || file_write_all(descriptor, zeros, sizeof(zeros)) < 0 ||
				     fsync(descriptor) < 0
			     ? errno
			     : 0;
	if (descriptor >= 0)
		close(descriptor);
	return number;
}

static enum takeover_answer recover(struct takeover *takeover)
{
	struct sqlite_store *store = takeover->store;
	enum status status = journal_check(
		store->lock.file.cache, store->journal, store->lock.file.nonce, takeover->err);
	if (status == STATUS_OK)
		status = database_recover(store, takeover->path[DATABASE], takeover->err);
	if (status != STATUS_OK) {
		takeover->status = status;
		return TAKEOVER_NO;
	}
	int number = sync_file(store->lock.file.cache, takeover->path[DATABASE]);
	if (number)
		return failed(takeover, "sync", takeover->path[DATABASE], number);
	number = make_blank(takeover);
	if (number)
		return failed(takeover, "make", takeover->path[BLANK_JOURNAL], number);
	/* put_back may need the old database. */
	if (link(store->base.where, takeover->path[OLD]) < 0)
		return failed(takeover, "link", store->base.where, errno);
	return TAKEOVER_YES;
}

static enum takeover_answer place(struct takeover *takeover, const char *from, const char *to)
{
	if (rename(from, to) < 0)
		return failed(takeover, "replace", to, errno);
	enum status status = file_sync_directory(takeover->store->directory, takeover->err);
	if (status == STATUS_OK)
		return TAKEOVER_YES;
	takeover->status = status;
	return TAKEOVER_NO;
}

static enum takeover_answer carry_out(struct takeover *takeover, enum takeover_action action)
{
	struct sqlite_store *store = takeover->store;
	const char *database = store->base.where;
	switch (action) {
	case TAKEOVER_MAKE: return make(takeover);
	case TAKEOVER_PROVE: return lock_confirm(&store->lock, true) ? TAKEOVER_YES : TAKEOVER_NO;
	case TAKEOVER_CLEAR: return clear(takeover);
	case TAKEOVER_COPY_JOURNAL:
		return copy(takeover, store->journal, takeover->path[JOURNAL], &takeover->journal);
	case TAKEOVER_COPY_DATABASE: {
		enum takeover_answer answer =
			copy(takeover, database, takeover->path[DATABASE], &takeover->database);
		return answer == TAKEOVER_YES && !takeover->database ? TAKEOVER_NOTHING : answer;
	}
	case TAKEOVER_COMPARE_JOURNAL: return compare(takeover, store->journal, takeover->journal);
	case TAKEOVER_COMPARE_DATABASE: return compare(takeover, database, takeover->database);
	case TAKEOVER_RECOVER: return recover(takeover);
	case TAKEOVER_PLACE_DATABASE: return place(takeover, takeover->path[DATABASE], database);
	case TAKEOVER_PLACE_JOURNAL:
		return place(takeover, takeover->path[BLANK_JOURNAL], store->journal);
	case TAKEOVER_UNMAKE:
		/* If this fails, link_sweep removes it later. */
		(void)file_remove_tree(takeover->path[ROOT], NULL);
		return TAKEOVER_YES;
	default: return TAKEOVER_NO;
	}
}

static void rest(struct sqlite_store *store)
{
	int64_t until = clock_after(REMEMBERED);
	while (store->lock.file.cache == CACHE_CLIENT && clock_now() < until &&
		lock_confirm(&store->lock, false))
		poll(NULL, 0, 100);
}

enum status takeover_run(struct sqlite_store *store, struct error *err)
{
	struct takeover_step step = {0};
	struct takeover takeover = {.store = store, .err = err};
	if (snprintf(takeover.held, PATH_MAX, "%s.held", store->lock.file.path) >= PATH_MAX)
		return error_set(err, STATUS_USAGE, "its path is too long");
	while (step.action < TAKEOVER_DONE)
		(void)takeover_next(&step, carry_out(&takeover, step.action));
	if (step.action == TAKEOVER_DONE)
		rest(store);
	if (store->lock.link.lost)
		return lock_lost(&store->lock, "nothing was changed: try again", err);
	if (step.action == TAKEOVER_DONE) {
		store->lock.link.overtook = false;
		return STATUS_OK;
	}
	if (takeover.status == STATUS_OK)
		return error_set(err, STATUS_TEMPORARY,
			"its lock was taken over from a process that goes on writing: try again");
	return takeover.status;
}
