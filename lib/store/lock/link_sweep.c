/* SPDX-License-Identifier: MIT */
#include "store/lock/link_sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/lock/link_name.h"

static int64_t milliseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

/*
 * Whether the directory contains names, and all these processes have ended. An empty one may be
 * about to get its name.
 */
static bool is_abandoned(int directory, const char *name)
{
	bool found = false, all = true;
	int descriptor = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *entries = descriptor >= 0 ? fdopendir(descriptor) : NULL;
	if (!entries) {
		if (descriptor >= 0)
			close(descriptor);
		return false;
	}
	for (struct dirent *entry; (entry = readdir(entries));) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		found = true;
		all = all && link_name_classify(entry->d_name) == HOLDER_GONE;
	}
	closedir(entries);
	return found && all;
}

/*
 * Move the directory aside before removing it. If we unlinked the name in it first, its owner could
 * move the empty directory to HELD and believe that it holds the lock.
 */
static void remove_aside(int directory, const char *base, const char *name)
{
	char fresh[LINK_NAME_MAX], aside[NAME_MAX + 1];
	if (!link_name_make(fresh) ||
		snprintf(aside, sizeof(aside), "%s.%.*s", base, LINK_NONCE, fresh) > NAME_MAX)
		return;
	if (renameat(directory, name, directory, aside) == 0)
		(void)file_remove_tree_at(directory, aside, NULL);
}

/* Whether name is "BASE.", prefix, and count characters of the set; no other names are removed. */
static bool is_ours(
	const char *name, const char *base, const char *prefix, const char *set, size_t count)
{
	const char *parts[] = {base, ".", prefix};
	for (size_t i = 0; i < 3; i++) {
		if (strncmp(name, parts[i], strlen(parts[i])) != 0)
			return false;
		name += strlen(parts[i]);
	}
	return strlen(name) == count && strspn(name, set) == count;
}

void link_sweep(const char *lock, const char *own, int64_t limit)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	const char *base = strrchr(lock, '/') ? strrchr(lock, '/') + 1 : lock;
	char *path = file_directory_of(lock);
	DIR *entries = opendir(path);
	struct stat st;
	free(path);
	if (!entries)
		return;
	/* The time of the last change here, by the filesystem's clock; it may be long ago. */
	int directory = dirfd(entries);
	int64_t now = fstat(directory, &st) == 0 ? milliseconds(&st.st_mtim) : 0;
	for (struct dirent *entry; (entry = readdir(entries));) {
		const char *name = entry->d_name;
		bool whole = is_ours(name, base, "", "0123456789abcdef", LINK_NONCE);
		if ((!whole && !is_ours(name, base, "new-", letters, 6)) ||
			fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bool old = now - milliseconds(&st.st_mtim) > limit;
		if (whole) {
			if (S_ISDIR(st.st_mode) &&
				strncmp(name + strlen(base) + 1, own, LINK_NONCE) != 0 &&
				(old || is_abandoned(directory, name)))
				remove_aside(directory, base, name);
		} else if (old) {
			(void)file_remove_tree_at(directory, name, NULL);
		}
	}
	closedir(entries);
}

bool link_workspace_is(const char *name)
{
	return !strncmp(name, LINK_WORKSPACE, strlen(LINK_WORKSPACE));
}

/*
 * Whether only ".nfs" names are left. An NFS client gives them to files that were removed while a
 * process of this machine has them open; they vanish when it closes them. The names are not used.
 */
static bool has_only_open_files(int held, const char *name)
{
	int descriptor = openat(held, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *entries = descriptor >= 0 ? fdopendir(descriptor) : NULL;
	bool all = entries;
	for (struct dirent *entry; all && (entry = readdir(entries));)
		all = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		      !strncmp(entry->d_name, ".nfs", 4);
	if (entries)
		closedir(entries);
	else if (descriptor >= 0)
		close(descriptor);
	return all;
}

/*
 * Move a workspace out of HELD, so that its maker does not find it. link_sweep removes it later.
 */
static int move_out(int held, const char *path, const char *name)
{
	char fresh[LINK_NAME_MAX], aside[PATH_MAX];
	static const char end[] = ".held";
	size_t length = strlen(path) - strlen(end);
	if (!link_name_make(fresh) || snprintf(aside, sizeof(aside), "%.*s.%.*s", (int)length, path,
					      LINK_NONCE, fresh) >= (int)sizeof(aside))
		return EIO;
	return renameat(held, name, AT_FDCWD, aside) == 0 || errno == ENOENT ? 0 : errno;
}

static int remove_workspace(int held, const char *path, const char *name)
{
	if (file_remove_tree_at(held, name, NULL) == STATUS_OK)
		return 0;
	/* Its maker may make a file in it at the same time, but only a few. */
	for (int i = 0; i < 3; i++)
		if (file_remove_tree_at(held, name, NULL) == STATUS_OK)
			return 0;
	return has_only_open_files(held, name) ? move_out(held, path, name) : EBUSY;
}

int link_workspaces_remove(const char *held, const char *own)
{
	int number = 0;
	DIR *entries = opendir(held);
	if (!entries)
		return errno == ENOENT ? 0 : errno;
	for (struct dirent *entry; !number && (entry = readdir(entries));)
		if (link_workspace_is(entry->d_name) && strcmp(entry->d_name, own) != 0)
			number = remove_workspace(dirfd(entries), held, entry->d_name);
	closedir(entries);
	return number;
}
