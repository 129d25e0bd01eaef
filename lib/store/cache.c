/* SPDX-License-Identifier: MIT */
#include "store/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

enum cache cache_kind(const struct filesystem_traits *traits)
{
	if (traits->reach == FILESYSTEM_LOCAL)
		return CACHE_OURS;
	if (traits->client)
		return CACHE_CLIENT;
	return traits->lends ? CACHE_LENT : CACHE_KERNEL;
}

/*
 * After a call that failed with errno: if there was no such file, make the client ask the server
 * for names. True: try again. Keeps errno.
 */
static bool ask_anew(enum cache cache, int outer, const char *path)
{
	int number = errno;
	char *directory = cache == CACHE_OURS || number != ENOENT ? NULL : file_directory_of(path);
	bool asked = directory && file_ask_for_names(outer, directory) == 0;
	free(directory);
	errno = number;
	return asked;
}

int cache_stat(enum cache cache, const char *path, struct stat *st)
{
	struct statx asked;
	const int flags = AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC;
	if (cache == CACHE_CLIENT)
		(void)statx(AT_FDCWD, path, flags, STATX_BASIC_STATS, &asked);
	int result = file_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st);
	if (result < 0 && ask_anew(cache, AT_FDCWD, path))
		result = file_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st);
	return result;
}

static int open_unlent(enum cache cache, int directory, const char *path, int flags)
{
	/*
	 * A server lends no directories. NFS refuses O_DIRECT for one, but only after opening it.
	 */
	if (cache == CACHE_LENT && !(flags & O_DIRECTORY)) {
		int descriptor = openat(directory, path, flags | O_DIRECT);
		if (descriptor >= 0)
			(void)fcntl(descriptor, F_SETFL, flags & ~O_DIRECT);
		if (descriptor >= 0 || errno != EINVAL)
			return descriptor;
	}
	return openat(directory, path, flags);
}

int cache_open_at(enum cache cache, int directory, const char *path, int flags)
{
	int descriptor = open_unlent(cache, directory, path, flags);
	if (descriptor < 0 && ask_anew(cache, directory, path))
		descriptor = open_unlent(cache, directory, path, flags);
	return descriptor;
}

void cache_drop(enum cache cache, int descriptor)
{
	if (cache == CACHE_OURS)
		return;
	/* The client first: the kernel could otherwise read old content from it again. */
	if (cache == CACHE_CLIENT)
		(void)fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, 1);
	(void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
}

int cache_open(enum cache cache, const char *path)
{
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, descriptor = -1;
	if (cache == CACHE_CLIENT)
		descriptor = cache_open_at(cache, AT_FDCWD, path, O_RDWR | flags);
	if (descriptor < 0)
		descriptor = cache_open_at(cache, AT_FDCWD, path, O_RDONLY | flags);
	if (descriptor >= 0)
		cache_drop(cache, descriptor);
	return descriptor;
}

void cache_drop_path(enum cache cache, const char *path)
{
	int descriptor = cache == CACHE_OURS ? -1 : cache_open(cache, path);
	if (descriptor >= 0)
		close(descriptor);
}
