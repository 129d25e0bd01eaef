/* SPDX-License-Identifier: MIT */
/* An NFS client that keeps that there is no such file, until the directory is opened. */
#include "store/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "scratch.h"
#include "unit.h"

/* This file, or directory with all that is in it, is said to be missing; "": none is. */
static char missing[512];

static int opened; /* how often something was */

/* Also learns from an open directory what is in it. */
static bool is_missing(const char *path, bool opens)
{
	size_t length = strlen(missing), above = strlen(path);
	if (!length || !strncmp(path, missing, length))
		return length;
	if (opens && !strncmp(path, missing, above) && missing[above] == '/' &&
		!strchr(missing + above + 1, '/'))
		*missing = '\0';
	return false;
}

/* In the place of libc's. */
int openat(int directory, const char *path, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	int mode = flags & O_CREAT ? va_arg(list, int) : 0;
	va_end(list);
	opened++;
	errno = ENOENT;
	return is_missing(path, flags & O_DIRECTORY)
		       ? -1
		       : (int)syscall(SYS_openat, directory, path, flags, mode);
}

int fstatat(int directory, const char *path, struct stat *st, int flags)
{
	errno = ENOENT;
	return is_missing(path, false) ? -1
				       : (int)syscall(SYS_newfstatat, directory, path, st, flags);
}

static const char *forget(const char *name)
{
	snprintf(missing, sizeof(missing), "%s/%s", scratch, name);
	return name;
}

static char *path_of(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

/* The access mode that it was opened with; -1: it was not. */
static int opened_with(enum cache cache, const char *name)
{
	int descriptor = cache_open(cache, path_of(name));
	if (descriptor < 0)
		return -1;
	int mode = fcntl(descriptor, F_GETFL) & O_ACCMODE;
	close(descriptor);
	return mode;
}

int main(void)
{
	static const enum cache shared[] = {CACHE_KERNEL, CACHE_LENT, CACHE_CLIENT};
	struct stat st;
	scratch_make();
	(void)mkdir(path_of("in"), 0700);
	close(open(path_of("file"), O_CREAT | O_WRONLY, 0600));
	close(open(path_of("in/file"), O_CREAT | O_WRONLY, 0600));

	TEST("a file that was said to be missing is looked for again")
	{
		for (int i = 0; i < 3; i++)
			CHECK_EQ(cache_stat(shared[i], path_of(forget("file")), &st), 0);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(opened_with(shared[i], forget("file")),
				shared[i] == CACHE_CLIENT ? O_RDWR : O_RDONLY);
	}
	TEST("its directory may have been said to be missing, too")
	{
		forget("in");
		CHECK_EQ(cache_stat(CACHE_KERNEL, path_of("in/file"), &st), 0);
		forget("in");
		CHECK_EQ(opened_with(CACHE_LENT, "in/file"), O_RDONLY);
	}
	TEST("one that is missing is missing")
	{
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(cache_stat(shared[i], path_of("none"), &st), -1);
			CHECK_EQ(errno, ENOENT);
			CHECK_EQ(opened_with(shared[i], "none"), -1);
			CHECK_EQ(opened_with(shared[i], "none/in/none"), -1);
			CHECK_EQ(errno, ENOENT);
		}
	}
	TEST("a directory, which is not lent, is opened once")
	{
		opened = 0;
		int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
		int descriptor = cache_open_at(CACHE_LENT, AT_FDCWD, path_of("in"), flags);
		CHECK(descriptor >= 0);
		CHECK_EQ(opened, 1);
		close(descriptor);
	}
	TEST("where no other process writes no process is asked")
	{
		CHECK_EQ(cache_stat(CACHE_OURS, path_of(forget("file")), &st), -1);
		CHECK_EQ(errno, ENOENT);
	}
	*missing = '\0';
	scratch_remove();
	return unit_end();
}
