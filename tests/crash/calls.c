/* SPDX-License-Identifier: MIT */
/*
 * Faults at the calls of libc: calls.so, to be preloaded into a program with FAULTS=FILE in its
 * environment, where FILE holds the plan of tests/crash/crash. It stands before libc, counts the
 * calls that concern files of a directory, and at the N-th does what the plan says. Both processes
 * share the memory of the plan, so that the one which planned sees how far a killed one came.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define CALLS_LOGGED 4096

enum call_act {
	ACT_COUNT,	 /* nothing but counting */
	ACT_FAIL,	 /* fail with an errno, and do not do it */
	ACT_FAIL_ALWAYS, /* the same, and every later call of the same name on the same file */
	ACT_HALF,	 /* read or write half as much as asked */
	ACT_HALF_FAIL,	 /* the same, and every later one fails */
	ACT_LATE,	 /* do it, then fail: an answer that was lost */
	ACT_LATE_GONE,	 /* the same, and every later call on any file fails */
	ACT_BEFORE,	 /* a signal to ourselves before it */
	ACT_AFTER,	 /* and after it */
};

/* One call as it came. */
struct call {
	char name[16];
	char file[80]; /* the end of the path */
	bool writes;   /* opens for writing, makes, changes */
	bool locks;
};

/* As in tests/crash/crash. */
static struct plan {
	char directory[256]; /* what concerns files in it is counted, */
	char page[128];	     /* and what concerns files whose names begin so; may be empty */
	struct call only;    /* its name and file, where not empty: nothing else is counted */
	enum call_act act;
	unsigned at; /* 1: the first; 0: none */
	int number;  /* errno, or signal */

	/* The result. */
	_Atomic unsigned count;
	_Atomic unsigned hits;
	int open; /* files that it has not closed at its end */
	struct call hit;
	struct call log[CALLS_LOGGED];
} * plan;

enum trait { READS = 0, WRITES = 1, LOCKS = 2 };

enum verdict { GO, FAIL, HALF, LATE, AFTER };

/* The function that we stand before. */
#define next(name)                                                                                 \
	({                                                                                         \
		static __typeof__(&name) real;                                                     \
		if (!real)                                                                         \
			real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                         \
		real;                                                                              \
	})

__attribute__((constructor)) static void load(void)
{
	const char *path = getenv("FAULTS");
	if (!path)
		return;
	int descriptor = next(open)(path, O_RDWR | O_CLOEXEC);
	if (descriptor < 0)
		return;
	struct plan *loaded =
		mmap(NULL, sizeof(*loaded), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	next(close)(descriptor);
	if (loaded != MAP_FAILED)
		plan = loaded;
}

/* A path that begins where the process is. */
static const char *absolute(const char *path)
{
	static _Thread_local char whole[1200];
	char here[512];
	int kept = errno;
	if (!plan || *path == '/' || !getcwd(here, sizeof(here)))
		return path;
	errno = kept;
	while (!strncmp(path, "./", 2))
		path += 2;
	snprintf(whole, sizeof(whole), "%s/%s", here, path);
	return whole;
}

/* The path within the directory, or of the page what is behind the last slash; else NULL. */
static const char *below(const char *path)
{
	path = absolute(path);
	size_t length = plan ? strlen(plan->directory) : 0;
	if (length && !strncmp(path, plan->directory, length)) {
		if (path[length] == '/')
			return path + length + 1;
		if (!path[length])
			return ".";
	}
	length = plan ? strlen(plan->page) : 0;
	if (length && !strncmp(path, plan->page, length))
		return strrchr(path, '/') + 1;
	return NULL;
}

static enum verdict ask(const char *name, const char *path, enum trait traits)
{
	const char *file = below(path);
	if (!file)
		return GO;
	if (plan->act == ACT_LATE_GONE && plan->hits) {
		errno = plan->number;
		return FAIL;
	}
	struct call call = {.writes = traits & WRITES, .locks = traits & LOCKS};
	snprintf(call.name, sizeof(call.name), "%s", name);
	snprintf(call.file, sizeof(call.file), "%s", file);
	if ((*plan->only.name && strcmp(plan->only.name, call.name) != 0) ||
		(*plan->only.file && strcmp(plan->only.file, call.file) != 0))
		return GO;
	unsigned number = ++plan->count;
	if (number <= CALLS_LOGGED)
		plan->log[number - 1] = call;
	bool lasting = plan->act == ACT_FAIL_ALWAYS || plan->act == ACT_HALF_FAIL;
	bool again = lasting && plan->hits && !strcmp(plan->hit.name, call.name) &&
		     !strcmp(plan->hit.file, call.file);
	if (number != plan->at && !again)
		return GO;
	plan->hit = call;
	plan->hits++;
	errno = plan->number;
	switch (plan->act) {
	case ACT_COUNT: return GO;
	case ACT_HALF_FAIL:
		if (again)
			return FAIL;
		return HALF;
	case ACT_HALF: return HALF;
	case ACT_LATE:
	case ACT_LATE_GONE: return LATE;
	case ACT_BEFORE: kill(getpid(), plan->number); return GO;
	case ACT_AFTER: return AFTER;
	default: return FAIL;
	}
}

static const char *path_of(int descriptor)
{
	static _Thread_local char path[512];
	char link[40];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
	ssize_t length = next(readlink)(link, path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	return path;
}

static const char *path_at(int directory, const char *name)
{
	static _Thread_local char path[800];
	if (!plan || *name == '/' || directory == AT_FDCWD)
		return name;
	int kept = errno;
	snprintf(path, sizeof(path), "%s/%s", path_of(directory), name);
	errno = kept;
	return path;
}

static enum verdict ask_of(const char *name, int descriptor, enum trait traits)
{
	if (!plan)
		return GO;
	int kept = errno;
	const char *path = path_of(descriptor);
	errno = kept;
	/* Pipes and the like have no path, and no disk that fails. */
	return *path == '/' ? ask(name, path, traits) : GO;
}

/* What is left to do when the call was made. */
static int64_t finish(enum verdict verdict, int64_t result)
{
	int kept = errno;
	if (verdict == AFTER)
		kill(getpid(), plan->number);
	errno = kept;
	if (verdict == LATE && result >= 0) {
		errno = plan->number;
		return -1;
	}
	return result;
}

__attribute__((destructor)) static void look_back(void)
{
	int open = 0;
	for (int descriptor = 3; plan && descriptor < 256; descriptor++) {
		const char *path = path_of(descriptor);
		open += *path == '/' && below(path) != NULL;
	}
	if (plan)
		plan->open = open;
}

#define CALL(verdict, expression) ((verdict) == FAIL ? -1 : finish((verdict), (expression)))

/* A function of libc, the question whether it has a fault, and what it is called with then. */
#define FUNCTION(type, name, parameters, question, arguments)                                      \
	type name parameters                                                                       \
	{                                                                                          \
		enum verdict verdict = question;                                                   \
		return (type)CALL(verdict, next(name) arguments);                                  \
	}
/* The same where the answer is a pointer. */
#define POINTER(type, name, parameters, question, arguments, failed)                               \
	type name parameters                                                                       \
	{                                                                                          \
		enum verdict verdict = question;                                                   \
		type result = verdict == FAIL ? (failed) : next(name) arguments;                   \
		(void)finish(verdict, 0);                                                          \
		return result;                                                                     \
	}

/* ---- Opening and closing ---- */

/* Where the answer was lost, so is the descriptor. */
static int answer_open(enum verdict verdict, int descriptor)
{
	int result = (int)finish(verdict, descriptor);
	if (result < 0 && descriptor >= 0) {
		int kept = errno;
		next(close)(descriptor);
		errno = kept;
	}
	return result;
}

static int open_any(const char *name, int directory, const char *given, int flags, mode_t mode)
{
	const char *path = path_at(directory, given);
	if (!plan || !below(path))
		return next(openat)(directory, given, flags, mode);
	bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
	enum verdict verdict = ask(name, path, writes ? WRITES : READS);
	if (verdict == FAIL)
		return -1;
	return answer_open(verdict, next(openat)(directory, given, flags, mode));
}

#define OPEN(name, directory)                                                                      \
	va_list arguments;                                                                         \
	va_start(arguments, flags);                                                                \
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;               \
	va_end(arguments);                                                                         \
	return open_any(name, directory, path, flags, mode)

int open(const char *path, int flags, ...)
{
	OPEN("open", AT_FDCWD);
}

int open64(const char *path, int flags, ...)
{
	OPEN("open", AT_FDCWD);
}

int openat(int directory, const char *path, int flags, ...)
{
	OPEN("open", directory);
}

int openat64(int directory, const char *path, int flags, ...)
{
	OPEN("open", directory);
}

int mkostemp(char *path, int flags)
{
	enum verdict verdict = ask("mkostemp", path, WRITES);
	return verdict == FAIL ? -1 : answer_open(verdict, next(mkostemp)(path, flags));
}

int close(int descriptor)
{
	enum verdict verdict = ask_of("close", descriptor, READS);
	/* Linux has closed it, whatever it answers. */
	int result = next(close)(descriptor);
	if (verdict == FAIL)
		errno = plan->number;
	return (int)CALL(verdict, result);
}

POINTER(DIR *, opendir, (const char *path), ask("opendir", path, READS), (path), NULL)
POINTER(DIR *, fdopendir, (int fd), ask_of("opendir", fd, READS), (fd), NULL)
POINTER(struct dirent *, readdir, (DIR * entries), ask_of("readdir", dirfd(entries), READS),
	(entries), NULL)

/* ---- Bytes ---- */

#define SOME(length) (verdict == HALF ? (length) / 2 : (length))

FUNCTION(ssize_t, read, (int fd, void *bytes, size_t length), ask_of("read", fd, READS),
	(fd, bytes, SOME(length)))
FUNCTION(ssize_t, pread, (int fd, void *bytes, size_t length, off_t offset),
	ask_of("pread", fd, READS), (fd, bytes, SOME(length), offset))
FUNCTION(ssize_t, pread64, (int fd, void *bytes, size_t length, off64_t offset),
	ask_of("pread", fd, READS), (fd, bytes, SOME(length), offset))
FUNCTION(ssize_t, write, (int fd, const void *bytes, size_t length), ask_of("write", fd, WRITES),
	(fd, bytes, SOME(length)))
FUNCTION(ssize_t, pwrite, (int fd, const void *bytes, size_t length, off_t offset),
	ask_of("pwrite", fd, WRITES), (fd, bytes, SOME(length), offset))
FUNCTION(ssize_t, pwrite64, (int fd, const void *bytes, size_t length, off64_t offset),
	ask_of("pwrite", fd, WRITES), (fd, bytes, SOME(length), offset))
FUNCTION(ssize_t, copy_file_range,
	(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags),
	ask_of("copy", to, WRITES), (from, from_at, to, to_at, SOME(length), flags))
FUNCTION(int, ftruncate, (int fd, off_t size), ask_of("ftruncate", fd, WRITES), (fd, size))
FUNCTION(int, ftruncate64, (int fd, off64_t size), ask_of("ftruncate", fd, WRITES), (fd, size))
FUNCTION(int, fsync, (int fd), ask_of("fsync", fd, WRITES), (fd))
FUNCTION(int, fdatasync, (int fd), ask_of("fdatasync", fd, WRITES), (fd))
FUNCTION(int, sync_file_range, (int fd, off64_t offset, off64_t length, unsigned flags),
	ask_of("syncrange", fd, WRITES), (fd, offset, length, flags))
POINTER(void *, mmap,
	(void *address, size_t length, int protection, int flags, int fd, off_t offset),
	fd < 0 ? GO : ask_of("mmap", fd, READS), (address, length, protection, flags, fd, offset),
	MAP_FAILED)

int posix_fallocate(int fd, off_t offset, off_t length)
{
	enum verdict verdict = ask_of("fallocate", fd, WRITES);
	return verdict == FAIL ? plan->number : next(posix_fallocate)(fd, offset, length);
}

/* Only what copies one file into another: FICLONE. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	enum verdict verdict = request == FICLONE ? ask_of("clone", fd, WRITES) : GO;
	return (int)CALL(verdict, next(ioctl)(fd, request, argument));
}

/* ---- Names ---- */

#define CHANGES(name, parameters, call, path, arguments)                                           \
	FUNCTION(int, name, parameters, ask(call, path, WRITES), arguments)

CHANGES(link, (const char *from, const char *to), "link", to, (from, to))
CHANGES(linkat, (int from_at, const char *from, int to_at, const char *to, int flags), "link",
	path_at(to_at, to), (from_at, from, to_at, to, flags))
CHANGES(rename, (const char *from, const char *to), "rename", from, (from, to))
CHANGES(renameat, (int from_at, const char *from, int to_at, const char *to), "rename",
	path_at(from_at, from), (from_at, from, to_at, to))
CHANGES(renameat2, (int from_at, const char *from, int to_at, const char *to, unsigned flags),
	"rename", path_at(from_at, from), (from_at, from, to_at, to, flags))
CHANGES(unlink, (const char *path), "unlink", path, (path))
CHANGES(unlinkat, (int at, const char *name, int flags), "unlink", path_at(at, name),
	(at, name, flags))
CHANGES(mkdir, (const char *path, mode_t mode), "mkdir", path, (path, mode))
CHANGES(mkdirat, (int at, const char *path, mode_t mode), "mkdir", path_at(at, path),
	(at, path, mode))
CHANGES(rmdir, (const char *path), "rmdir", path, (path))
CHANGES(symlinkat, (const char *target, int at, const char *path), "symlink", path_at(at, path),
	(target, at, path))
CHANGES(mkfifoat, (int at, const char *path, mode_t mode), "mkfifo", path_at(at, path),
	(at, path, mode))
POINTER(char *, mkdtemp, (char *path), ask("mkdir", path, WRITES), (path), NULL)

/* ---- Attributes ---- */

#define OF_PATH(called, name, type)                                                                \
	FUNCTION(int, called, (const char *path, struct type *st), ask(name, path, READS),         \
		(path, st))
#define OF_DESCRIPTOR(called, name, type)                                                          \
	FUNCTION(int, called, (int fd, struct type *st), ask_of(name, fd, READS), (fd, st))
OF_PATH(stat, "stat", stat)
OF_PATH(stat64, "stat", stat64)
OF_PATH(lstat, "lstat", stat)
OF_PATH(lstat64, "lstat", stat64)
OF_PATH(statfs, "statfs", statfs)
OF_DESCRIPTOR(fstat, "fstat", stat)
OF_DESCRIPTOR(fstat64, "fstat", stat64)
OF_DESCRIPTOR(fstatfs, "statfs", statfs)
FUNCTION(int, fstatat, (int at, const char *path, struct stat *st, int flags),
	!*path && (flags & AT_EMPTY_PATH) ? ask_of("fstat", at, READS)
					  : ask("stat", path_at(at, path), READS),
	(at, path, st, flags))

FUNCTION(ssize_t, readlink, (const char *path, char *target, size_t size),
	ask("readlink", path, READS), (path, target, size))
FUNCTION(ssize_t, readlinkat, (int at, const char *path, char *target, size_t size),
	ask("readlink", path_at(at, path), READS), (at, path, target, size))
FUNCTION(int, access, (const char *path, int mode), ask("access", path, READS), (path, mode))
FUNCTION(int, faccessat, (int at, const char *path, int mode, int flags),
	ask("access", path_at(at, path), READS), (at, path, mode, flags))
POINTER(char *, realpath, (const char *path, char *resolved), ask("realpath", path, READS),
	(path, resolved), NULL)

CHANGES(utimensat, (int at, const char *path, const struct timespec times[2], int flags), "utimes",
	path_at(at, path), (at, path, times, flags))
FUNCTION(int, futimens, (int fd, const struct timespec times[2]), ask_of("utimes", fd, WRITES),
	(fd, times))
CHANGES(chmod, (const char *path, mode_t mode), "chmod", path, (path, mode))
FUNCTION(int, fchmod, (int fd, mode_t mode), ask_of("chmod", fd, WRITES), (fd, mode))
FUNCTION(int, fchown, (int fd, uid_t user, gid_t group), ask_of("chown", fd, WRITES),
	(fd, user, group))

/* ---- Locks ---- */

FUNCTION(int, flock, (int fd, int operation),
	ask_of(operation &LOCK_UN ? "unlock" : "lock", fd, LOCKS), (fd, operation))

static int control(int descriptor, int command, void *argument)
{
	bool locks = command == F_SETLK || command == F_SETLKW || command == F_GETLK ||
		     command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK;
	const struct flock *lock = argument;
	enum verdict verdict =
		locks ? ask_of(command == F_GETLK || command == F_OFD_GETLK ? "getlock"
				: lock->l_type == F_UNLCK		    ? "unlock"
									    : "lock",
				descriptor, LOCKS)
		      : GO;
	return (int)CALL(verdict, next(fcntl)(descriptor, command, argument));
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
