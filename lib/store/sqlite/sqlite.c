/* SPDX-License-Identifier: MIT */
#include "store/sqlite/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mounts.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/beats/beats.h"
#include "store/failure.h"
#include "store/sqlite/syscalls.h"

/*
 * SQLite allows paths of 512 bytes, "-journal" included; a file name has at most 255 bytes, our
 * suffixes included.
 */
#define PATH_LONGEST 460 /* bytes of the database's path */
#define NAME_LONGEST 190 /* bytes of its last part */

static enum status path_too_long(const char *path, struct error *err)
{
	return error_set(err, STATUS_USAGE,
		"store %s: its path is too long: at most %d bytes, %d of them in the file's name",
		path, PATH_LONGEST, NAME_LONGEST);
}

/*
 * Whether path is a link to a store, whose file has another name since its lock was taken over
 * (takeover.c). Then target is where it leads to. Keeps errno.
 */
static bool target_has_lock(const char *path, char target[PATH_MAX])
{
	char link[PATH_MAX] = "";
	int number = errno;
	char *directory = file_directory_of(path), *lock = NULL;
	bool found = readlink(path, link, sizeof(link) - 1) > 0;
	if (found) {
		found = snprintf(target, PATH_MAX, "%s%s%s", *link == '/' ? "" : directory,
				*link == '/' ? "" : "/", link) < PATH_MAX;
		lock = xprintf("%s.lock", target);
		found = found && access(lock, F_OK) == 0;
	}
	free(directory);
	free(lock);
	errno = number;
	return found;
}

/*
 * Find the real path, so that two names of one database have one lock file. The database may be
 * missing; its directory must exist.
 */
static enum status find_path(struct sqlite_store *store, const char *path, struct error *err)
{
	char real[PATH_MAX], target[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return error_set(
			err, STATUS_USAGE, "store %s: this is not the name of a file", path);
	if (strlen(name) > NAME_LONGEST)
		return path_too_long(path, err);
	if (realpath(path, real)) {
		store->base.where = xstrdup(real);
	} else if (errno == ENOENT && target_has_lock(path, target)) {
		return find_path(store, target, err);
	} else if (errno == ENOENT) {
		char *directory = file_directory_of(path);
		if (realpath(directory, real))
			store->base.where = xprintf("%s/%s", strcmp(real, "/") ? real : "", name);
		free(directory);
	}
	if (!store->base.where) {
		int number = errno;
		return error_cured(err, number, store_cure(number), "open store %s: %s", path,
			number == ENOENT ? "its directory" : "its path");
	}
	if (strlen(store->base.where) > PATH_LONGEST)
		return path_too_long(store->base.where, err);
	store->directory = file_directory_of(store->base.where);
	store->beats = xprintf("%s.beats", store->base.where);
	store->base.files = xprintf("%s.queue", store->base.where);
	return STATUS_OK;
}

static enum status check_directory(struct sqlite_store *store, struct error *err)
{
	struct stat st;
	if (stat(store->directory, &st) < 0)
		return error_cured(err, errno, store_cure(errno), "look at %s", store->directory);
	return access_check(store->directory, &st, store->parameters.shared_group, err);
}

/*
 * Before a lock file is made: refuse a path that is not a regular file. find_path has resolved
 * links, so a link that is found here has no target.
 */
static enum status check_place(struct sqlite_store *store, struct error *err)
{
	struct stat st;
	if (lstat(store->base.where, &st) < 0 || S_ISREG(st.st_mode))
		return STATUS_OK;
	if (S_ISLNK(st.st_mode))
		return error_set(err, STATUS_DAMAGED,
			"store %s is a symbolic link whose target does not exist: not used; "
			"mount the filesystem it points to, or name the file itself",
			store->base.where);
	return error_set(err, STATUS_DAMAGED,
		"store %s is not a regular file: not used; choose another --store",
		store->base.where);
}

static void sqlite_close(struct store *base)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	file_watch_release(&store->watch);
	news_release(&store->news);
	lock_close(&store->lock);
	free(store->base.where);
	free(store->base.files);
	free(store->directory);
	free(store->beats);
	free(store);
}

static enum status refuse_missing(const struct sqlite_store *store, struct error *err)
{
	return error_set(err, STATUS_TEMPORARY,
		"store %s does not exist, and its URL says must-exist: is its filesystem mounted? To "
		"make it, leave must-exist out once",
		store->base.where);
}

/* Check the place, and open the lock there; with create, make it if there is none. */
static enum status open_lock(
	struct sqlite_store *store, bool create, int64_t deadline, struct error *err)
{
	struct filesystem filesystem = {0};
	const struct parameters *parameters = &store->parameters;
	enum status status = check_directory(store, err);
	if (status == STATUS_OK)
		status = check_place(store, err);
	if (status == STATUS_OK)
		status = filesystem_inspect(store->directory, &filesystem, err);
	if (status != STATUS_OK)
		return status;
	struct lock_terms terms = {
		.database = store->base.where,
		.create = create,
		.read_only = store->base.flags & STORE_READ_ONLY,
		.shared_group = parameters->shared_group,
		.alone = store->base.flags & STORE_SCRATCH,
		.traits = filesystem_classify(&filesystem),
	};
	terms.of_this_kernel = terms.traits.reach == FILESYSTEM_LOCAL;
	terms.traits.reach = parameters_reach(parameters, terms.traits.reach);
	store->base.local = terms.traits.reach == FILESYSTEM_LOCAL;
	status = lock_open(&store->lock, &terms, deadline, err);
	if (status != STATUS_OK)
		return error_prefix(err, "store %s", store->base.where);
	store->opened = store->lock.opened;
	/* The filesystem may have been unmounted during the open. */
	return mounts_check(err);
}

static enum status sqlite_open(struct store **opened, const struct store_url *url, unsigned flags,
	int64_t deadline, struct error *err)
{
	struct sqlite_store *store = xcalloc(1, sizeof(*store));
	syscalls_install();
	file_watch_init(&store->watch);
	file_watch_init(&store->news.watch);
	lock_init(&store->lock);
	store->base.flags = flags;
	enum status status = parameters_read(url, &store->parameters, err);
	bool create = (flags & STORE_CREATE) && !(flags & STORE_READ_ONLY) &&
		      !store->parameters.must_exist;
	if (status == STATUS_OK)
		status = find_path(store, url->path, err);
	if (status == STATUS_OK)
		status = open_lock(store, create, deadline, err);
	if (status == STATUS_OK)
		status = database_make(store, create, deadline, err);
	if (status == STATUS_NO && store->parameters.must_exist)
		status = refuse_missing(store, err);
	if (status == STATUS_OK)
		*opened = &store->base;
	else
		sqlite_close(&store->base);
	return status;
}

static enum status sqlite_check_private(struct store *base, struct error *err)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	struct stat st;
	const char *path = store->lock.database;
	bool there = stat(path, &st) == 0;
	if (store->parameters.shared_group ||
		(there && S_ISREG(st.st_mode) && (st.st_mode & S_IWGRP)))
		return error_set(err, STATUS_PERMISSION,
			"%s: the group can write this store, and the commands in a queue are run as "
			"you; use a store that only you can write",
			base->where);
	return there ? access_check(path, &st, false, err) : STATUS_OK;
}

const struct store_backend store_sqlite = {
	.scheme = "sqlite",
	/* SQLite has no limit. This one bounds the time for which others wait for the lock. */
	.operations = 1024,
	.open = sqlite_open,
	.close = sqlite_close,
	.txn = session_run,
	.list = range_list,
	.wait = wait_change,
	.news = news_read,
	.await_news = news_await,
	.beats_prepare = beats_prepare,
	.beat = beats_write,
	.beat_read = beats_read,
	.beats_remove = beats_remove,
	.check_private = sqlite_check_private,
	.purge = range_purge,
	.run = session_operate,
};
