/* SPDX-License-Identifier: MIT */
#include "store/link_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/link_name.h"

static int64_t milliseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

/* Remove it if nobody in it may live any more. */
static void sweep_one(int directory, const char *name, bool old)
{
	bool found = false, all = true;
	int descriptor = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *entries = descriptor >= 0 ? fdopendir(descriptor) : NULL;
	if (!entries) {
		if (descriptor >= 0)
			close(descriptor);
		return;
	}
	for (struct dirent *entry; (entry = readdir(entries));) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		found = true;
		if (!old && link_name_look(entry->d_name) != HOLDER_GONE)
			all = false;
		else
			(void)unlinkat(descriptor, entry->d_name, 0);
	}
	/* One that is empty may be about to get its name. */
	if (old || (found && all))
		(void)unlinkat(directory, name, AT_REMOVEDIR);
	closedir(entries);
}

/* Whether it is "BASE." and as many characters as we put there. */
static bool is_ours(const char *name, const char *base, const char *set, size_t count)
{
	size_t length = strlen(base);
	return !strncmp(name, base, length) && name[length] == '.' &&
	       strlen(name + length + 1) == count && strspn(name + length + 1, set) == count;
}

void link_sweep(const char *lock, const char *own, int64_t limit)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	const char *base = strrchr(lock, '/') ? strrchr(lock, '/') + 1 : lock;
	char *path = file_directory_of(lock);
	DIR *entries = path ? opendir(path) : NULL;
	struct stat st;
	free(path);
	if (!entries)
		return;
	/* The clock of the filesystem: that of the last change here, which may be long ago. */
	int directory = dirfd(entries);
	int64_t now = fstat(directory, &st) == 0 ? milliseconds(&st.st_mtim) : 0;
	for (struct dirent *entry; (entry = readdir(entries));) {
		const char *name = entry->d_name;
		bool whole = is_ours(name, base, "0123456789abcdef", LINK_NONCE);
		if ((!whole && !is_ours(name, base, letters, 6)) ||
			fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bool old = now - milliseconds(&st.st_mtim) > limit;
		if (whole && S_ISDIR(st.st_mode) &&
			strncmp(name + strlen(base) + 1, own, LINK_NONCE) != 0)
			sweep_one(directory, name, old);
		else if (!whole && old)
			(void)file_remove_tree_at(directory, name, NULL);
	}
	closedir(entries);
}
