/* SPDX-License-Identifier: MIT */
#include "store/lock/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/thread.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/failure.h"

#define FIRST_LINE "lock of a preempt-tools store: do not delete, copy or edit"
#define LAST_NEW   "state new \n"
#define LAST_MADE  "state made\n"
/*
 * We lock a byte after the text, because CIFS locks are mandatory: no process can read a locked
 * byte.
 */
#define LOCKED_BYTE 4096
#define PAUSE	    8 /* ms, where there is no thread to wait */
/* How many times in a row a signal may interrupt the request. */
#define INTERRUPTIONS 100

int lockfile_make(const struct lock *lock)
{
	static const char text[] =
		FIRST_LINE "\nformat " VALUE_OF(STORE_FORMAT) "\nmode fcntl\n" LAST_NEW;
	char *path = file_directory_of(lock->path);
	char *temporary = xprintf("%s.new-XXXXXX", strrchr(lock->path, '/') + 1);
	/* Use the directory's descriptor: if it is unmounted now, nothing is made on its mount
	 * point. The content is synced before the name, because a loss of power could otherwise
	 * leave an empty lock file, which is refused. */
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int descriptor = directory < 0 ? -1 : file_make_temporary(directory, temporary);
	int number = descriptor < 0 || (lock->shared_group && fchmod(descriptor, 0660) < 0) ||
				     file_write_all(descriptor, text, strlen(text)) < 0 ||
				     fsync(descriptor) < 0
			     ? errno
			     : 0;
	if (!number)
		number = file_rename_new(
			directory, temporary, directory, strrchr(lock->path, '/') + 1);
	if (number && descriptor >= 0)
		(void)unlinkat(directory, temporary, 0);
	/* Some filesystems cannot sync a directory, and need not. */
	if (!number && fsync(directory) < 0 && errno != EINVAL)
		number = errno;
	if (descriptor >= 0)
		close(descriptor);
	if (directory >= 0)
		close(directory);
	free(temporary);
	free(path);
	return number;
}

/* ---- What it records ---- */

static enum status read_text(const struct lock *lock, char *text, size_t size, struct error *err)
{
	cache_drop(lock->cache, lock->descriptor);
	ssize_t n = pread(lock->descriptor, text, size - 1, 0);
	if (n < 0)
		return lock_failed(err, "read", lock, errno);
	text[n] = '\0';
	return STATUS_OK;
}

enum status lockfile_refuse_format(const char *what, unsigned format, struct error *err)
{
	return error_set(err, STATUS_DAMAGED,
		"%s has format %u and this version uses %d: not used; %s", what, format,
		STORE_FORMAT,
		format > STORE_FORMAT ? "install a newer preempt-tools"
				      : "it was made before the first release, make a new store");
}

enum status lockfile_read(struct lock *lock, struct error *err)
{
	char text[512], mode[16] = "";
	unsigned format = 0;
	enum status status = read_text(lock, text, sizeof(text), err);
	if (status != STATUS_OK)
		return status;
	size_t first = strlen(FIRST_LINE);
	int read = strncmp(text, FIRST_LINE "\n", first + 1)
			   ? 0
			   : sscanf(text + first, "\nformat %9u\nmode %15s\n", &format, mode);
	if (read > 0 && format != STORE_FORMAT)
		return lockfile_refuse_format(lock->path, format, err);
	if (!strcmp(mode, "link"))
		return error_set(err, STATUS_DAMAGED,
			"%s is of a store that version 0.1.0 made with lock=link: not used; let that "
			"version finish what is in it, then move the store away, and a new one is made",
			lock->path);
	if (strcmp(mode, "fcntl") != 0 || !strstr(text, "\nstate "))
		return error_set(err, STATUS_DAMAGED,
			"%s is not the lock file of a store: not used; if you do not need it, delete "
			"it",
			lock->path);
	lock->made = strstr(text, "\n" LAST_MADE) != NULL;
	return STATUS_OK;
}

enum status lockfile_note_made(struct lock *lock, struct error *err)
{
	char text[512];
	enum status status = read_text(lock, text, sizeof(text), err);
	if (status != STATUS_OK)
		return status;
	size_t length = strlen(text), last = strlen(LAST_MADE);
	/* Both lines have the same length. If we are killed before this, the next process that
	 * opens the store writes the line. */
	if (length >= last && !strcmp(text + length - last, LAST_NEW) &&
		(pwrite(lock->descriptor, LAST_MADE, last, (off_t)(length - last)) !=
				(ssize_t)last ||
			fdatasync(lock->descriptor) < 0))
		return lock_failed(err, "write", lock, errno);
	return STATUS_OK;
}

/* ---- The open file ---- */

void lockfile_close(struct lock *lock)
{
	if (lock->descriptor >= 0)
		close(lock->descriptor);
	lock->descriptor = -1;
}

/*
 * Open the directory, and the lock file in it, so that both belong together even if the directory
 * is moved or mounted over. Returns 0, or an errno.
 */
static int open_path(struct lock *lock, bool write)
{
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
	char *directory = file_directory_of(lock->path);
	int outer = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(directory);
	if (outer < 0)
		return errno;
	lock->descriptor = cache_open_at(lock->cache, outer, strrchr(lock->path, '/') + 1,
		(write ? O_RDWR : O_RDONLY) | flags);
	int number = lock->descriptor < 0 || file_fstat(lock->descriptor, &lock->itself) < 0 ||
				     fstat(outer, &lock->directory) < 0
			     ? errno
			     : 0;
	close(outer);
	if (number)
		lockfile_close(lock);
	else
		lock->opened++;
	return number;
}

enum status lockfile_open(struct lock *lock, bool read_only, int *number, struct error *err)
{
	lock->read_only = false;
	*number = open_path(lock, true);
	if (read_only && (*number == EROFS || *number == EACCES || *number == EPERM)) {
		lock->read_only = true;
		*number = open_path(lock, false);
	}
	if (*number == ENOENT)
		return STATUS_NO;
	if (*number == ELOOP || *number == ENXIO)
		return error_set(err, STATUS_DAMAGED,
			"its lock file %s is %s: not used; put the file itself there", lock->path,
			*number == ELOOP ? "a symbolic link" : "not a regular file");
	if (*number)
		return lock_failed(err, "open", lock, *number);
	enum status status = access_check(lock->path, &lock->itself, lock->shared_group, err);
	if (status == STATUS_OK)
		status = lockfile_read(lock, err);
	if (status != STATUS_OK)
		lockfile_close(lock);
	return status;
}

/* ---- The lock ---- */

int lockfile_ask(int descriptor, int command, struct flock *lock)
{
	int number = EINTR;
	for (int i = 0; i < INTERRUPTIONS && number == EINTR; i++)
		number = fcntl(descriptor, command, lock) == 0 ? 0 : errno;
	if (number != EACCES || lock->l_type == F_UNLCK)
		return number;
	struct flock holder = *lock;
	command = command == F_SETLK ? F_GETLK : F_OFD_GETLK;
	return fcntl(descriptor, command, &holder) == 0 && holder.l_type != F_UNLCK ? EAGAIN
										    : EACCES;
}

struct waiting {
	int descriptor, number;
	struct flock *lock;
};

static void *wait_in_queue(void *context)
{
	struct waiting *waiting = context;
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, SIGRTMAX);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	int result = fcntl(waiting->descriptor, F_OFD_SETLKW, waiting->lock);
	waiting->number = result == 0 ? 0 : errno == EINTR ? EAGAIN : errno;
	return NULL;
}

static bool ended_by(pthread_t thread, int64_t end)
{
	struct timespec until = {.tv_sec = end / 1000, .tv_nsec = end % 1000 * 1000000};
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
}

static void interrupt(int signal)
{
	(void)signal;
}

/*
 * A blocking request has no deadline, so a thread makes it, which a signal interrupts. (Cancelling
 * it would need a library, libgcc_s, that may be missing.) False: there is no thread.
 */
static bool wait_in_thread(struct waiting *waiting, int64_t deadline)
{
	struct sigaction action = {.sa_handler = interrupt};
	pthread_t thread;
	(void)sigaction(SIGRTMAX, &action, NULL);
	if (thread_start(&thread, wait_in_queue, waiting) != 0)
		return false;
	/* More than once: the first signal may come before the request. */
	for (int64_t end = deadline; !ended_by(thread, end); end = clock_after(PAUSE))
		(void)pthread_kill(thread, SIGRTMAX);
	return true;
}

int lockfile_wait(int descriptor, struct flock *lock, int64_t deadline)
{
	struct waiting waiting = {.descriptor = descriptor, .lock = lock};
	while ((waiting.number = lockfile_ask(descriptor, F_OFD_SETLK, lock)) == EAGAIN &&
		clock_now() < deadline && !wait_in_thread(&waiting, deadline))
		clock_sleep_until(clock_earlier(clock_after(clock_jitter(PAUSE)), deadline));
	return waiting.number;
}

static struct flock range(const struct lock *lock)
{
	return (struct flock){.l_type = lock->read_only ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = LOCKED_BYTE,
		.l_len = 1};
}

int lockfile_take(struct lock *lock)
{
	struct flock byte = range(lock);
	return lockfile_ask(lock->descriptor, F_OFD_SETLK, &byte);
}

int lockfile_take_until(struct lock *lock, int64_t deadline)
{
	struct flock byte = range(lock);
	return lockfile_wait(lock->descriptor, &byte, deadline);
}

void lockfile_give(struct lock *lock)
{
	struct flock byte = range(lock);
	byte.l_type = F_UNLCK;
	/* Closing the file releases the lock, too; otherwise the others would wait for us. */
	if (lockfile_ask(lock->descriptor, F_OFD_SETLK, &byte) != 0)
		lockfile_close(lock);
}

/* ---- Whether it is still there ---- */

static bool is_it(const struct lock *lock, const struct stat *st)
{
	return lock->itself.st_dev == st->st_dev && lock->itself.st_ino == st->st_ino;
}

enum status lockfile_gone(const struct lock *lock, struct error *err)
{
	struct stat there = {0};
	char *directory = file_directory_of(lock->path);
	int number = stat(directory, &there) < 0 ? errno : 0;
	enum status status;
	if (number && number != ENOENT)
		status = lock_failed(err, "look at the directory of", lock, number);
	else if (number || there.st_dev != lock->directory.st_dev)
		status = error_set(err, STATUS_TEMPORARY,
			"its directory %s %s while it was in use: it was moved away, or its filesystem is "
			"no longer mounted; put it back, then try again",
			directory, number ? "disappeared" : "came to lie on another filesystem");
	else if (there.st_ino != lock->directory.st_ino)
		status = error_set(err, STATUS_TEMPORARY,
			"its directory %s was moved away or replaced by another while it was in use; put "
			"it back, then try again",
			directory);
	else if (file_stat(AT_FDCWD, lock->path, 0, &there) == 0 && is_it(lock, &there))
		status = error_set(err, STATUS_TEMPORARY,
			"its lock %s was missing for a moment: try again", lock->path);
	else
		status = error_set(err, STATUS_DAMAGED,
			"its lock %s was deleted or replaced while it was in use: not used; stop "
			"everything that uses the store, then start again",
			lock->path);
	free(directory);
	return status;
}

enum status lockfile_check(struct lock *lock, struct error *err)
{
	struct stat there;
	int number = file_stat(AT_FDCWD, lock->path, 0, &there) < 0 ? errno : 0;
	/* While the descriptor is open, no other file of the device can get its inode number. */
	if (!number && is_it(lock, &there))
		return STATUS_OK;
	enum status status = !number || number == ENOENT
				     ? lockfile_gone(lock, err)
				     : lock_failed(err, "look at", lock, number);
	if (status != STATUS_DAMAGED)
		lockfile_close(lock);
	return status;
}
