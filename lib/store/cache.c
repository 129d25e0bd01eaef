/* SPDX-License-Identifier: MIT */
#include "store/cache.h"

#include <fcntl.h>
#include <unistd.h>

enum cache cache_kind(const struct filesystem_verdict *verdict)
{
	if (verdict->reach == FILESYSTEM_LOCAL)
		return CACHE_OURS;
	return verdict->client ? CACHE_CLIENT : CACHE_KERNEL;
}

void cache_drop(enum cache cache, int descriptor)
{
	if (cache == CACHE_OURS)
		return;
	/* The client first: else the kernel could read what that still has. */
	if (cache == CACHE_CLIENT)
		(void)fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, 1);
	(void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
}

int cache_open(enum cache cache, const char *path)
{
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, descriptor = -1;
	if (cache == CACHE_CLIENT)
		descriptor = open(path, O_RDWR | flags);
	if (descriptor < 0)
		descriptor = open(path, O_RDONLY | flags);
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
