/* SPDX-License-Identifier: MIT */
/* Before libc: see calls.h. */
#include "calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

enum trait { READS = 0, WRITES = 1, LOCKS = 2 };

enum verdict { GO, FAIL, HALF, LATE, AFTER };

static struct plan *plan;

/* The function that we stand before. */
#define next(name)                                                                                 \
	({                                                                                         \
		static __typeof__(&name) real;                                                     \
		if (!real)                                                                         \
			real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                         \
		real;                                                                              \
	})

void calls_arm(struct plan *wanted)
{
	plan = wanted;
}

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
	if (loaded != MAP_FAILED && loaded->armed)
		plan = loaded;
}

/* A path that begins where the process is. */
static const char *absolute(const char *path)
{
	/* A call may have two. */
	static _Thread_local char paths[2][1200];
	static _Thread_local int which;
	char here[512];
	int kept = errno;
	if (!plan || *path == '/' || !getcwd(here, sizeof(here)))
		return path;
	errno = kept;
	while (!strncmp(path, "./", 2))
		path += 2;
	which ^= 1;
	snprintf(paths[which], sizeof(paths[0]), "%s/%s", here, path);
	return paths[which];
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
	/* A call may have two. */
	static _Thread_local char paths[2][800];
	static _Thread_local int which;
	if (!plan || *name == '/' || directory == AT_FDCWD)
		return name;
	int kept = errno;
	char *path = paths[which ^= 1];
	snprintf(path, sizeof(paths[0]), "%s/%s", path_of(directory), name);
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

#define CALL(verdict, expression) ((verdict) == FAIL ? -1 : finish((verdict), (expression)))

/* ---- What was changed ---- */

static void record(struct change change, const void *bytes, const char *first, const char *second)
{
	size_t size = (sizeof(change) + change.length + 15) & ~(size_t)15;
	if (!plan || !plan->record || plan->recorded + size > CALLS_RECORDED)
		return;
	if (first)
		snprintf(change.name[0], sizeof(change.name[0]), "%s", first);
	if (second)
		snprintf(change.name[1], sizeof(change.name[1]), "%s", second);
	memcpy(plan->changes + plan->recorded, &change, sizeof(change));
	if (change.length)
		memcpy(plan->changes + plan->recorded + sizeof(change), bytes, change.length);
	plan->recorded += size;
}

static void record_descriptor(enum change_kind kind, int descriptor, int64_t offset,
	const void *bytes, int64_t length, const char *name)
{
	struct stat st;
	int kept = errno;
	if (plan && plan->record && below(path_of(descriptor)) && next(fstat)(descriptor, &st) == 0)
		record((struct change){.kind = kind,
			       .inode = st.st_ino,
			       .offset = (uint64_t)offset,
			       .length = (uint64_t)length},
			bytes, name, NULL);
	errno = kept;
}

static void record_names(enum change_kind kind, const char *from, const char *to)
{
	struct stat st = {0};
	int kept = errno;
	if (plan && plan->record && below(from)) {
		if (to)
			(void)next(stat)(to, &st);
		record((struct change){.kind = kind, .inode = st.st_ino}, NULL, below(from),
			to ? below(to) : NULL);
	}
	errno = kept;
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
	bool made = (flags & O_CREAT) && next(faccessat)(AT_FDCWD, path, F_OK, 0) < 0;
	int descriptor = next(openat)(directory, given, flags, mode);
	if (descriptor >= 0 && made)
		record_descriptor(CHANGE_CREATE, descriptor, 0, NULL, 0, below(path));
	return answer_open(verdict, descriptor);
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
	if (verdict == FAIL)
		return -1;
	int descriptor = next(mkostemp)(path, flags);
	if (descriptor >= 0)
		record_descriptor(CHANGE_CREATE, descriptor, 0, NULL, 0, below(path));
	return answer_open(verdict, descriptor);
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

DIR *fdopendir(int descriptor)
{
	enum verdict verdict = ask_of("opendir", descriptor, READS);
	DIR *result = verdict == FAIL ? NULL : next(fdopendir)(descriptor);
	(void)finish(verdict, 0);
	return result;
}

struct dirent *readdir(DIR *entries)
{
	enum verdict verdict = ask_of("readdir", dirfd(entries), READS);
	struct dirent *result = verdict == FAIL ? NULL : next(readdir)(entries);
	(void)finish(verdict, 0);
	return result;
}

DIR *opendir(const char *path)
{
	enum verdict verdict = ask("opendir", path, READS);
	DIR *result = verdict == FAIL ? NULL : next(opendir)(path);
	(void)finish(verdict, 0);
	return result;
}

/* ---- Bytes ---- */

#define SOME(verdict, length) ((verdict) == HALF ? (length) / 2 : (length))

ssize_t read(int descriptor, void *bytes, size_t length)
{
	enum verdict verdict = ask_of("read", descriptor, READS);
	return CALL(verdict, next(read)(descriptor, bytes, SOME(verdict, length)));
}

static ssize_t read_at(int descriptor, void *bytes, size_t length, off_t offset)
{
	enum verdict verdict = ask_of("pread", descriptor, READS);
	return CALL(verdict, next(pread)(descriptor, bytes, SOME(verdict, length), offset));
}

ssize_t pread(int descriptor, void *bytes, size_t length, off_t offset)
{
	return read_at(descriptor, bytes, length, offset);
}

ssize_t pread64(int descriptor, void *bytes, size_t length, off64_t offset)
{
	return read_at(descriptor, bytes, length, offset);
}

ssize_t write(int descriptor, const void *bytes, size_t length)
{
	enum verdict verdict = ask_of("write", descriptor, WRITES);
	if (verdict == FAIL)
		return -1;
	off_t offset = plan && plan->record ? lseek(descriptor, 0, SEEK_CUR) : 0;
	ssize_t n = next(write)(descriptor, bytes, SOME(verdict, length));
	if (n > 0)
		record_descriptor(CHANGE_WRITE, descriptor, offset, bytes, n, NULL);
	return finish(verdict, n);
}

static ssize_t write_at(int descriptor, const void *bytes, size_t length, off_t offset)
{
	enum verdict verdict = ask_of("pwrite", descriptor, WRITES);
	if (verdict == FAIL)
		return -1;
	ssize_t n = next(pwrite)(descriptor, bytes, SOME(verdict, length), offset);
	if (n > 0)
		record_descriptor(CHANGE_WRITE, descriptor, offset, bytes, n, NULL);
	return finish(verdict, n);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset)
{
	return write_at(descriptor, bytes, length, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset)
{
	return write_at(descriptor, bytes, length, offset);
}

static int set_size(int descriptor, off_t size)
{
	enum verdict verdict = ask_of("ftruncate", descriptor, WRITES);
	if (verdict == FAIL)
		return -1;
	int result = next(ftruncate)(descriptor, size);
	if (result == 0)
		record_descriptor(CHANGE_SIZE, descriptor, size, NULL, 0, NULL);
	return (int)finish(verdict, result);
}

int ftruncate(int descriptor, off_t size)
{
	return set_size(descriptor, size);
}

int ftruncate64(int descriptor, off64_t size)
{
	return set_size(descriptor, size);
}

int posix_fallocate(int descriptor, off_t offset, off_t length)
{
	enum verdict verdict = ask_of("fallocate", descriptor, WRITES);
	return verdict == FAIL ? plan->number : next(posix_fallocate)(descriptor, offset, length);
}

ssize_t copy_file_range(
	int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags)
{
	enum verdict verdict = ask_of("copy", to, WRITES);
	return CALL(verdict,
		next(copy_file_range)(from, from_at, to, to_at, SOME(verdict, length), flags));
}

int sync_file_range(int descriptor, off64_t offset, off64_t length, unsigned flags)
{
	enum verdict verdict = ask_of("syncrange", descriptor, WRITES);
	return (int)CALL(verdict, next(sync_file_range)(descriptor, offset, length, flags));
}

/* Only what copies one file into another: FICLONE. */
int ioctl(int descriptor, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	enum verdict verdict = request == FICLONE ? ask_of("clone", descriptor, WRITES) : GO;
	return (int)CALL(verdict, next(ioctl)(descriptor, request, argument));
}

static int sync_any(const char *name, int (*real)(int), int descriptor)
{
	enum verdict verdict = ask_of(name, descriptor, WRITES);
	if (verdict == FAIL)
		return -1;
	int result = real(descriptor);
	if (result == 0)
		record_descriptor(CHANGE_SYNC, descriptor, 0, NULL, 0, NULL);
	return (int)finish(verdict, result);
}

int fsync(int descriptor)
{
	return sync_any("fsync", next(fsync), descriptor);
}

int fdatasync(int descriptor)
{
	return sync_any("fdatasync", next(fdatasync), descriptor);
}

void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
	enum verdict verdict = descriptor < 0 ? GO : ask_of("mmap", descriptor, READS);
	if (verdict == FAIL)
		return MAP_FAILED;
	void *result = next(mmap)(address, length, protection, flags, descriptor, offset);
	(void)finish(verdict, 0);
	return result;
}

/* ---- Names ---- */

#define NAMES(name, path, kind, from, to, expression)                                              \
	enum verdict verdict = ask(name, path, WRITES);                                            \
	if (verdict == FAIL)                                                                       \
		return -1;                                                                         \
	int result = (expression);                                                                 \
	if (result == 0)                                                                           \
		record_names(kind, from, to);                                                      \
	return (int)finish(verdict, result)

int link(const char *from, const char *to)
{
	NAMES("link", to, CHANGE_NAME, to, to, next(link)(from, to));
}

int rename(const char *from, const char *to)
{
	NAMES("rename", from, CHANGE_RENAME, from, to, next(rename)(from, to));
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
	const char *path = path_at(to_at, to);
	NAMES("link", path, CHANGE_NAME, path, path, next(linkat)(from_at, from, to_at, to, flags));
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	const char *from_path = path_at(from_at, from), *to_path = path_at(to_at, to);
	NAMES("rename", from_path, CHANGE_RENAME, from_path, to_path,
		next(renameat)(from_at, from, to_at, to));
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	const char *from_path = path_at(from_at, from), *to_path = path_at(to_at, to);
	NAMES("rename", from_path, CHANGE_RENAME, from_path, to_path,
		next(renameat2)(from_at, from, to_at, to, flags));
}

int unlink(const char *path)
{
	NAMES("unlink", path, CHANGE_UNNAME, path, NULL, next(unlink)(path));
}

int unlinkat(int directory, const char *name, int flags)
{
	const char *path = path_at(directory, name);
	NAMES("unlink", path, CHANGE_UNNAME, path, NULL, next(unlinkat)(directory, name, flags));
}

int mkdir(const char *path, mode_t mode)
{
	enum verdict verdict = ask("mkdir", path, WRITES);
	return (int)CALL(verdict, next(mkdir)(path, mode));
}

int mkdirat(int directory, const char *path, mode_t mode)
{
	enum verdict verdict = ask("mkdir", path_at(directory, path), WRITES);
	return (int)CALL(verdict, next(mkdirat)(directory, path, mode));
}

int symlinkat(const char *target, int directory, const char *path)
{
	enum verdict verdict = ask("symlink", path_at(directory, path), WRITES);
	return (int)CALL(verdict, next(symlinkat)(target, directory, path));
}

int mkfifoat(int directory, const char *path, mode_t mode)
{
	enum verdict verdict = ask("mkfifo", path_at(directory, path), WRITES);
	return (int)CALL(verdict, next(mkfifoat)(directory, path, mode));
}

char *mkdtemp(char *path)
{
	enum verdict verdict = ask("mkdir", path, WRITES);
	char *result = verdict == FAIL ? NULL : next(mkdtemp)(path);
	(void)finish(verdict, 0);
	return result;
}

int rmdir(const char *path)
{
	enum verdict verdict = ask("rmdir", path, WRITES);
	return (int)CALL(verdict, next(rmdir)(path));
}

/* ---- Attributes ---- */

#define OF_PATH(called, name, type)                                                                \
	int called(const char *path, struct type *st)                                              \
	{                                                                                          \
		enum verdict verdict = ask(name, path, READS);                                     \
		return (int)CALL(verdict, next(called)(path, st));                                 \
	}
#define OF_DESCRIPTOR(called, name, type)                                                          \
	int called(int descriptor, struct type *st)                                                \
	{                                                                                          \
		enum verdict verdict = ask_of(name, descriptor, READS);                            \
		return (int)CALL(verdict, next(called)(descriptor, st));                           \
	}
OF_PATH(stat, "stat", stat)
OF_PATH(stat64, "stat", stat64)
OF_PATH(lstat, "lstat", stat)
OF_PATH(lstat64, "lstat", stat64)
OF_PATH(statfs, "statfs", statfs)
OF_DESCRIPTOR(fstat, "fstat", stat)
OF_DESCRIPTOR(fstat64, "fstat", stat64)
OF_DESCRIPTOR(fstatfs, "statfs", statfs)

int fstatat(int directory, const char *path, struct stat *st, int flags)
{
	if (!*path && (flags & AT_EMPTY_PATH))
		return fstat(directory, st);
	enum verdict verdict = ask("stat", path_at(directory, path), READS);
	return (int)CALL(verdict, next(fstatat)(directory, path, st, flags));
}

ssize_t readlink(const char *path, char *target, size_t size)
{
	enum verdict verdict = ask("readlink", path, READS);
	return CALL(verdict, next(readlink)(path, target, size));
}

ssize_t readlinkat(int directory, const char *path, char *target, size_t size)
{
	enum verdict verdict = ask("readlink", path_at(directory, path), READS);
	return CALL(verdict, next(readlinkat)(directory, path, target, size));
}

int utimensat(int directory, const char *path, const struct timespec times[2], int flags)
{
	enum verdict verdict = ask("utimes", path_at(directory, path), WRITES);
	return (int)CALL(verdict, next(utimensat)(directory, path, times, flags));
}

int futimens(int descriptor, const struct timespec times[2])
{
	enum verdict verdict = ask_of("utimes", descriptor, WRITES);
	return (int)CALL(verdict, next(futimens)(descriptor, times));
}

int faccessat(int directory, const char *path, int mode, int flags)
{
	enum verdict verdict = ask("access", path_at(directory, path), READS);
	return (int)CALL(verdict, next(faccessat)(directory, path, mode, flags));
}

int access(const char *path, int mode)
{
	enum verdict verdict = ask("access", path, READS);
	return (int)CALL(verdict, next(access)(path, mode));
}

char *realpath(const char *path, char *resolved)
{
	enum verdict verdict = ask("realpath", path, READS);
	char *result = verdict == FAIL ? NULL : next(realpath)(path, resolved);
	(void)finish(verdict, 0);
	return result;
}

int chmod(const char *path, mode_t mode)
{
	enum verdict verdict = ask("chmod", path, WRITES);
	return (int)CALL(verdict, next(chmod)(path, mode));
}

int fchmod(int descriptor, mode_t mode)
{
	enum verdict verdict = ask_of("chmod", descriptor, WRITES);
	return (int)CALL(verdict, next(fchmod)(descriptor, mode));
}

int fchown(int descriptor, uid_t user, gid_t group)
{
	enum verdict verdict = ask_of("chown", descriptor, WRITES);
	return (int)CALL(verdict, next(fchown)(descriptor, user, group));
}

/* ---- Locks ---- */

int flock(int descriptor, int operation)
{
	enum verdict verdict = ask_of(operation & LOCK_UN ? "unlock" : "lock", descriptor, LOCKS);
	return (int)CALL(verdict, next(flock)(descriptor, operation));
}

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
