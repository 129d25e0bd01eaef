/* SPDX-License-Identifier: MIT */
/*
 * without.so, to be preloaded into a program: takes out a safeguard of the store, so that a test
 * can show that its loss is found. WITHOUT in the environment says which:
 *
 *   lock   the lock between machines: open-file-description locks are given to all that ask
 *   locks  these, and SQLite's own locks
 *   answer the answer to each rename of a token: it is made, and said to have failed
 *   drop   nothing that is cached is let go of: posix_fadvise, and the fallocate of store/cache.h
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The function that we stand before. */
#define next(name)                                                                                 \
	({                                                                                         \
		static __typeof__(&name) real;                                                     \
		if (!real)                                                                         \
			real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                         \
		real;                                                                              \
	})

static bool is_without(const char *what)
{
	const char *without = getenv("WITHOUT");
	return without && !strcmp(without, what);
}

static int control(int descriptor, int command, void *argument)
{
	bool of_file = command == F_OFD_SETLK || command == F_OFD_SETLKW;
	bool of_process = command == F_SETLK || command == F_SETLKW;
	if ((of_file && is_without("lock")) || ((of_file || of_process) && is_without("locks")))
		return 0;
	return next(fcntl)(descriptor, command, argument);
}

#define CONTROL                                                                                    \
	va_list arguments;                                                                         \
	va_start(arguments, command);                                                              \
	void *argument = va_arg(arguments, void *);                                                \
	va_end(arguments);                                                                         \
	return control(descriptor, command, argument)

int fcntl(int descriptor, int command, ...)
{
	CONTROL;
}

int fcntl64(int descriptor, int command, ...)
{
	CONTROL;
}

int posix_fadvise(int descriptor, off_t offset, off_t length, int advice)
{
	if (is_without("drop"))
		return 0;
	return next(posix_fadvise)(descriptor, offset, length, advice);
}

int fallocate(int descriptor, int mode, off_t offset, off_t length)
{
	if (is_without("drop") && mode == FALLOC_FL_KEEP_SIZE && length == 1)
		return 0;
	return next(fallocate)(descriptor, mode, offset, length);
}

int rename(const char *from, const char *to)
{
	int result = next(rename)(from, to);
	if (result < 0 || !is_without("answer") || !strstr(from, ".lock/"))
		return result;
	errno = ENOENT;
	return -1;
}
