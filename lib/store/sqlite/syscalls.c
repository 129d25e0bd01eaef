/* SPDX-License-Identifier: MIT */
#include "store/sqlite/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "store/lock/lockfile.h"

/* How many times in a row a signal may interrupt a call. */
#define INTERRUPTIONS 100
#define JOURNAL	      "-journal"

static _Thread_local struct {
	int failed;
	int lock_failed;
	enum cache cache;
} seen;

/* The functions that SQLite used before. */
static struct {
	int (*open)(const char *path, int flags, int mode);
	int (*truncate)(int descriptor, off_t size);
	int (*control)(int descriptor, int command, ...);
	ssize_t (*read)(int descriptor, void *bytes, size_t length, off_t offset);
	ssize_t (*write)(int descriptor, const void *bytes, size_t length, off_t offset);
} next;

void syscalls_forget(enum cache cache)
{
	seen.cache = cache;
	seen.failed = seen.lock_failed = 0;
}

int syscalls_failed(void)
{
	return seen.failed;
}

int syscalls_lock_failed(void)
{
	return seen.lock_failed;
}

/* Repeat the call while a signal interrupts it, but not for ever. */
#define RETRIED(call)                                                                              \
	({                                                                                         \
		__typeof__(call) answer;                                                           \
		int left = INTERRUPTIONS;                                                          \
		do                                                                                 \
			answer = (call);                                                           \
		while (answer < 0 && errno == EINTR && --left > 0);                                \
		answer;                                                                            \
	})

/*
 * Keep the errno of a call that has failed. If SQLite cannot open a file for writing, it opens it
 * for reading, and later calls fail with EBADF or ENOENT: keep the first errno. SQLite gets another
 * errno where it would draw a wrong conclusion: try again (EINTR), or the filesystem is damaged.
 */
static void failed(void)
{
	if (!seen.failed || (errno != EBADF && errno != ENOENT))
		seen.failed = errno;
	if (errno == EINTR || errno == EIO || errno == ENXIO || errno == ERANGE)
		errno = ECANCELED;
}

/*
 * Make a journal, but only if its database is there: if the filesystem was unmounted after the
 * database was opened, path leads into the empty mount point.
 */
static int make_journal(const char *path, int flags, int mode)
{
	const char *name = strrchr(path, '/') + 1;
	char *directory = file_directory_of(path);
	char *database = xstrndup(name, strlen(name) - strlen(JOURNAL));
	struct stat st;
	int descriptor = -1;
	int parent = RETRIED(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (parent >= 0 && fstatat(parent, database, &st, AT_SYMLINK_NOFOLLOW) == 0)
		descriptor = RETRIED(openat(parent, name, flags, mode));
	int number = errno;
	if (parent >= 0)
		close(parent);
	free(directory);
	free(database);
	errno = number;
	return descriptor;
}

/* As cache_open_at, but with O_CREAT. */
static int open_unlent(const char *path, int flags, int mode)
{
	bool lent = seen.cache == CACHE_LENT;
	int descriptor = lent ? RETRIED(next.open(path, flags | O_DIRECT, mode)) : -1;
	if (descriptor >= 0)
		(void)next.control(descriptor, F_SETFL, flags & ~O_DIRECT);
	else if (!lent || errno == EINVAL)
		descriptor = RETRIED(next.open(path, flags, mode));
	return descriptor;
}

static int open_file(const char *path, int flags, int mode)
{
	size_t length = strlen(path);
	bool journal = (flags & O_CREAT) && *path == '/' && length > strlen(JOURNAL) &&
		       !strcmp(path + length - strlen(JOURNAL), JOURNAL);
	int descriptor = open_unlent(path, journal ? flags & ~O_CREAT : flags, mode);
	if (descriptor < 0 && journal && errno == ENOENT)
		descriptor = make_journal(path, flags, mode);
	if (descriptor < 0)
		failed();
	return descriptor;
}

/*
 * Look whether a file exists; ENOENT is not kept as an error. SQLite treats any error as "missing".
 * But it must not skip a journal whose presence is not known: it would read what a killed writer
 * left. So after an error we answer that the file exists, and opening it then reports the error. A
 * write-ahead log, for which SQLite looks, too, never exists.
 */
static int look_at_path(const char *path, struct stat *st)
{
	size_t length = strlen(path);
	int result = RETRIED(file_stat(AT_FDCWD, path, 0, st));
	if (result == 0 || errno == ENOENT || (length > 4 && !strcmp(path + length - 4, "-wal")))
		return result;
	failed();
	*st = (struct stat){.st_mode = S_IFREG | 0600, .st_size = 1};
	return 0;
}

static int look_at_name(const char *path, struct stat *st)
{
	return RETRIED(file_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st));
}

static int look_at(int descriptor, struct stat *st)
{
	int result = RETRIED(file_fstat(descriptor, st));
	if (result < 0)
		failed();
	return result;
}

static int set_size(int descriptor, off_t size)
{
	int result = RETRIED(next.truncate(descriptor, size));
	if (result < 0)
		failed();
	return result;
}

static ssize_t read_at(int descriptor, void *bytes, size_t length, off_t offset)
{
	ssize_t n = RETRIED(next.read(descriptor, bytes, length, offset));
	if (n < 0)
		failed();
	return n;
}

static ssize_t write_at(int descriptor, const void *bytes, size_t length, off_t offset)
{
	ssize_t n = RETRIED(next.write(descriptor, bytes, length, offset));
	if (n < 0)
		failed();
	return n;
}

static int control(int descriptor, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command != F_SETLK)
		return next.control(descriptor, command, argument);
	int number = lockfile_ask(descriptor, command, argument);
	if (number == 0)
		return 0;
	seen.lock_failed = number;
	if (number != EAGAIN)
		seen.failed = number;
	/* SQLite takes these for "busy", too, but waiting does not help. */
	errno = number == ENOLCK || number == EACCES || number == EINTR ? EIO : number;
	return -1;
}

/* Replace the system call name, if this SQLite has one of that name. */
static void replace(sqlite3_vfs *vfs, const char *name, void *ours, void *theirs)
{
	sqlite3_syscall_ptr old = vfs->xGetSystemCall(vfs, name);
	if (!old)
		return;
	if (theirs)
		*(sqlite3_syscall_ptr *)theirs = old;
	(void)vfs->xSetSystemCall(vfs, name, *(sqlite3_syscall_ptr *)ours);
}

#define INSTEAD(name, function, theirs)                                                            \
	replace(vfs, name, &(__typeof__(&function)){function}, theirs)
#define REPLACE(name, function, member) INSTEAD(name, function, &next.member)

static void install(void)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	if (!vfs || vfs->iVersion < 3)
		return;
	REPLACE("open", open_file, open);
	INSTEAD("stat", look_at_path, NULL);
	INSTEAD("lstat", look_at_name, NULL);
	INSTEAD("fstat", look_at, NULL);
	REPLACE("ftruncate", set_size, truncate);
	REPLACE("fcntl", control, control);
	REPLACE("pread", read_at, read);
	REPLACE("pread64", read_at, read);
	REPLACE("pwrite", write_at, write);
	REPLACE("pwrite64", write_at, write);
}

void syscalls_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, install);
}
