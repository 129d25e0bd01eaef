/* SPDX-License-Identifier: MIT */
#include "store/sharedlock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/access.h"

#define FIRST_LINE    "lock of a preempt-tools store: do not delete, copy or edit"
#define FORMAT	      1
#define LAST_NEW      "state new \n"
#define LAST_MADE     "state made\n"
#define RETRY_LONGEST 64 /* milliseconds */

/*
 * The byte that is locked lies behind the text, so that the text can be read while it is locked
 * where locks are mandatory (CIFS).
 */
#define LOCKED_BYTE 4096

const char *lock_cure(int number)
{
	switch (number) {
	case ENOSPC:
	case EDQUOT: return "; free space or choose another place with --store or PREEMPT_STORE";
	case ENOLCK: return "; the server grants no locks: start its lock service (not: nolock)";
	case ENOSYS:
	case EOPNOTSUPP:
		return "; this filesystem has no byte-range locks here (Lustre: mount it with flock)";
	case EROFS: return "; it is mounted read-only: choose another place with --store";
	case EACCES:
	case EPERM: return "; look at its owner and mode, and at those of its directory";
	case ESTALE: return "; it was replaced on the server: try again";
	case EIO:
	case ETIMEDOUT: return "; the disk, the server or the network failed: try again";
	case ENOENT:
	case ENOTDIR: return "; is the filesystem mounted?";
	default: return "";
	}
}

static enum status failed(
	struct error *err, const char *action, const struct sharedlock *lock, int number)
{
	return error_set(err, error_status_of_errno(number), "cannot %s lock file %s: %s%s", action,
		lock->path, strerror(number), lock_cure(number));
}

/* Trying once: 0, EAGAIN (another holds it), or what went wrong. */
static int fcntl_ask(struct sharedlock *lock, short type)
{
	struct flock flock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = LOCKED_BYTE, .l_len = 1};
	if (fcntl(lock->descriptor, F_OFD_SETLK, &flock) == 0)
		return 0;
	return errno == EACCES || errno == EINTR ? EAGAIN : errno;
}

static int fcntl_try(struct sharedlock *lock)
{
	return fcntl_ask(lock, lock->read_only ? F_RDLCK : F_WRLCK);
}

static void fcntl_release(struct sharedlock *lock)
{
	(void)fcntl_ask(lock, F_UNLCK);
}

/* The modes; one without functions is not built. */
static const struct {
	const char *name;
	int (*try)(struct sharedlock *lock);
	void (*release)(struct sharedlock *lock);
} modes[] = {
	[LOCK_AUTO] = {"auto", NULL, NULL},
	[LOCK_FCNTL] = {"fcntl", fcntl_try, fcntl_release},
	[LOCK_LINK] = {"link", NULL, NULL},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

bool lock_mode_parse(const char *name, enum lock_mode *mode)
{
	for (size_t i = 0; i < MODES; i++)
		if (!strcmp(modes[i].name, name)) {
			*mode = (enum lock_mode)i;
			return true;
		}
	return false;
}

const char *lock_mode_name(enum lock_mode mode)
{
	return modes[mode].name;
}

/* Where it is not known that locks reach everybody, they are not relied on. */
static enum status check_reach(
	enum lock_mode mode, const struct filesystem_verdict *verdict, struct error *err)
{
	if (!modes[mode].try)
		return error_set(err, STATUS_USAGE, "lock=%s is not built yet", modes[mode].name);
	if (mode != LOCK_FCNTL || verdict->reach == FILESYSTEM_LOCAL ||
		verdict->reach == FILESYSTEM_SHARED)
		return STATUS_OK;
	return error_set(err, STATUS_USAGE,
		"it is on %s, and %s: two machines could both win; put it on NFSv4, Lustre with flock or "
		"CephFS, or add to the store's URL ?assume=local if one machine alone uses it%s",
		verdict->name, verdict->why,
		verdict->reach == FILESYSTEM_UNKNOWN
			? ", ?assume=shared if you know that its locks reach all"
			: "");
}

enum status lock_mode_choose(enum lock_mode asked, const struct filesystem_verdict *verdict,
	enum lock_mode *mode, struct error *err)
{
	enum lock_mode chosen = asked == LOCK_AUTO ? LOCK_FCNTL : asked;
	enum status status = check_reach(chosen, verdict, err);
	if (status == STATUS_OK)
		*mode = chosen;
	return status;
}

enum status lock_mode_follow(enum lock_mode recorded, enum lock_mode asked,
	const struct filesystem_verdict *verdict, struct error *err)
{
	if (asked != LOCK_AUTO && asked != recorded)
		return error_set(err, STATUS_USAGE,
			"it was made with lock=%s, and all must use the same: leave lock=%s out",
			modes[recorded].name, modes[asked].name);
	return check_reach(recorded, verdict, err);
}

/* Text of a new lock file. */
static enum status compose(enum lock_mode mode, char *text, size_t size, struct error *err)
{
	unsigned char random[16];
	char nonce[33];
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return error_set(err, STATUS_TEMPORARY, "no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(nonce + 2 * i, 3, "%02x", random[i]);
	snprintf(text, size, "%s\nformat %d\nmode %s\nnonce %s\n%s", FIRST_LINE, FORMAT,
		modes[mode].name, nonce, LAST_NEW);
	return STATUS_OK;
}

/* A name for a finished file, never over another; some filesystems have no hard links. */
static int name_whole(const char *from, const char *to)
{
	if (link(from, to) == 0)
		return unlink(from);
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
		return -1;
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

/* STATUS_OK also if another made it meanwhile. */
static enum status make(
	struct sharedlock *lock, const struct sharedlock_terms *terms, struct error *err)
{
	char text[256];
	char *temporary = NULL;
	char *directory = file_directory_of(lock->path);
	enum lock_mode mode;
	int descriptor = -1;
	enum status status = lock_mode_choose(terms->mode, &terms->verdict, &mode, err);
	if (status == STATUS_OK)
		status = compose(mode, text, sizeof(text), err);
	if (status != STATUS_OK)
		goto out;
	if (!directory || asprintf(&temporary, "%s.XXXXXX", lock->path) < 0) {
		temporary = NULL;
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
		goto out;
	}
	descriptor = mkostemp(temporary, O_CLOEXEC);
	if (descriptor < 0) {
		status = failed(err, "make", lock, errno);
		goto out;
	}
	if ((terms->shared_group && fchmod(descriptor, 0660) < 0) ||
		file_write_all(descriptor, text, strlen(text)) < 0 ||
		name_whole(temporary, lock->path) < 0) {
		int number = errno;
		unlink(temporary);
		/* The others: what a race looks like on some network filesystems. */
		status = number == EEXIST || number == ENOENT || number == ESTALE || number == EBADF
				 ? STATUS_OK
				 : failed(err, "make", lock, number);
		goto out;
	}
	/* Only who made it pays for making it durable, and before the database is made. */
	if (fsync(descriptor) < 0)
		status = failed(err, "sync", lock, errno);
	else
		status = file_sync_directory(directory, err);
out:
	if (descriptor >= 0)
		close(descriptor);
	free(temporary);
	free(directory);
	return status;
}

static enum status read_text(struct sharedlock *lock, char *text, size_t size, struct error *err)
{
	if (!lock->local)
		posix_fadvise(lock->descriptor, 0, 0, POSIX_FADV_DONTNEED);
	ssize_t n = pread(lock->descriptor, text, size - 1, 0);
	if (n < 0)
		return failed(err, "read", lock, errno);
	text[n] = '\0';
	return STATUS_OK;
}

static enum status not_ours(const struct sharedlock *lock, struct error *err)
{
	return error_set(err, STATUS_DAMAGED,
		"%s is not the lock file of a store: not used; if it is not yours to keep, delete it",
		lock->path);
}

/* Understand the opened file. */
static enum status read_record(struct sharedlock *lock, struct error *err)
{
	char text[512], mode[16];
	int format = 0, length = 0;
	enum status status = read_text(lock, text, sizeof(text), err);
	if (status != STATUS_OK)
		return status;
	size_t first = strlen(FIRST_LINE);
	if (strncmp(text, FIRST_LINE "\n", first + 1) ||
		sscanf(text + first, "\nformat %9d\n", &format) != 1)
		return not_ours(lock, err);
	if (format > FORMAT)
		return error_set(err, STATUS_DAMAGED,
			"%s has format %d and we know %d: not used; install a newer preempt-tools",
			lock->path, format, FORMAT);
	if (sscanf(text + first, "\nformat %*d\nmode %15s\nnonce %32[0-9a-f]\nstate%n", mode,
		    lock->nonce, &length) != 2 ||
		!length || strlen(lock->nonce) != 32 || !lock_mode_parse(mode, &lock->mode) ||
		lock->mode == LOCK_AUTO)
		return not_ours(lock, err);
	lock->made = strstr(text, "\n" LAST_MADE) != NULL;
	return STATUS_OK;
}

/* Open what is there. STATUS_NO: nothing is. */
static enum status open_existing(struct sharedlock *lock, const struct sharedlock_terms *terms,
	int *number, struct error *err)
{
	struct stat st;
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
	lock->read_only = false;
	lock->descriptor = open(lock->path, O_RDWR | flags);
	if (lock->descriptor < 0 && terms->read_only &&
		(errno == EROFS || errno == EACCES || errno == EPERM)) {
		lock->read_only = true;
		lock->descriptor = open(lock->path, O_RDONLY | flags);
	}
	*number = 0;
	if (lock->descriptor < 0 || fstat(lock->descriptor, &st) < 0) {
		*number = errno;
		return errno == ENOENT ? STATUS_NO : failed(err, "open", lock, errno);
	}
	enum status status = access_check(lock->path, &st, terms->shared_group, err);
	if (status == STATUS_OK)
		status = read_record(lock, err);
	if (status == STATUS_OK)
		status = lock_mode_follow(lock->mode, terms->mode, &terms->verdict, err);
	if (status == STATUS_OK)
		(void)machine_open(&lock->machine, st.st_dev, st.st_ino);
	return status;
}

static void close_descriptor(struct sharedlock *lock)
{
	if (lock->descriptor >= 0)
		close(lock->descriptor);
	lock->descriptor = -1;
}

enum status sharedlock_open(struct sharedlock *lock, const struct sharedlock_terms *terms,
	int64_t deadline, struct error *err)
{
	enum status status;
	bool seen_database = false;
	*lock = (struct sharedlock){.descriptor = -1, .machine = {.descriptor = -1}};
	lock->local = terms->verdict.reach == FILESYSTEM_LOCAL;
	lock->guard = guard_get(terms->database);
	if (!lock->guard || asprintf(&lock->path, "%s.lock", terms->database) < 0) {
		lock->path = NULL;
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
		goto out;
	}
	for (int64_t longest = 1;; longest = longest < RETRY_LONGEST ? longest * 2 : longest) {
		int number;
		status = open_existing(lock, terms, &number, err);
		if (status == STATUS_OK)
			return STATUS_OK;
		close_descriptor(lock);
		if (status == STATUS_NO) {
			/*
			 * The lock file is there before the database: a database without one has
			 * lost it, unless both were made since we looked. So look again.
			 */
			if (access(terms->database, F_OK) == 0) {
				if (seen_database) {
					status = error_set(err, STATUS_DAMAGED,
						"its lock file %s is missing: deleted by somebody; put "
						"it back, or when nobody uses the store any more, "
						"move the store away",
						lock->path);
					break;
				}
				seen_database = true;
				continue;
			}
			if (!terms->create) {
				error_set(err, STATUS_NO, "it does not exist");
				break;
			}
			status = make(lock, terms, err);
			if (status != STATUS_OK)
				break;
		} else if (number != ESTALE && number != EBADF && number != EEXIST) {
			break;
		}
		if (clock_now() >= deadline) {
			status = failed(err, "open", lock, number);
			break;
		}
		if (longest > 1)
			poll(NULL, 0, (int)clock_jitter(longest));
	}
out:
	sharedlock_close(lock);
	return status;
}

void sharedlock_close(struct sharedlock *lock)
{
	machine_close(&lock->machine);
	close_descriptor(lock);
	guard_put(lock->guard);
	free(lock->path);
	*lock = (struct sharedlock){.descriptor = -1, .machine = {.descriptor = -1}};
}

/* Ask the other machines. Full jitter: those who were refused together do not come together. */
static enum status ask_machines(struct sharedlock *lock, int64_t deadline, struct error *err)
{
	for (int64_t longest = 1;; longest = longest < RETRY_LONGEST ? longest * 2 : longest) {
		int number = modes[lock->mode].try(lock);
		if (number == 0)
			return STATUS_OK;
		if (number != EAGAIN)
			return failed(err, "lock", lock, number);
		int64_t now = clock_now();
		if (now >= deadline)
			return error_set(err, STATUS_TEMPORARY,
				"it is busy: another machine, user or container holds %s; try again, or "
				"look for a process there that is stopped",
				lock->path);
		int64_t wait = clock_jitter(longest);
		poll(NULL, 0, (int)(wait < deadline - now ? wait : deadline - now));
	}
}

/* Two inodes under one path are two locks: the one we hold must be the one there is. */
static enum status verify_file(struct sharedlock *lock, struct error *err)
{
	struct stat held, there;
	if (fstat(lock->descriptor, &held) < 0)
		return failed(err, "look at", lock, errno);
	errno = 0;
	if (stat(lock->path, &there) < 0 && errno != ENOENT)
		return failed(err, "look at", lock, errno);
	else if (errno == ENOENT || held.st_dev != there.st_dev || held.st_ino != there.st_ino)
		return error_set(err, STATUS_DAMAGED,
			"its lock file %s was deleted or replaced while it was in use: not used; stop "
			"everything that uses the store, then start again",
			lock->path);
	return STATUS_OK;
}

enum status sharedlock_acquire(struct sharedlock *lock, int64_t deadline, struct error *err)
{
	pid_t holder;
	int64_t since;
	if (guard_enter(lock->guard, deadline) != 0)
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: another thread of this process is at work on it");
	if (machine_enter(&lock->machine, deadline, &holder, &since) != 0) {
		guard_leave(lock->guard);
		return holder ? error_set(err, STATUS_TEMPORARY,
					"it is busy: process %d of this machine has held it for %lld "
					"ms; try again, or see whether that process is stopped",
					(int)holder, (long long)(clock_now() - since))
			      : error_set(err, STATUS_TEMPORARY,
					"it is busy: too many processes of this machine are waiting "
					"for it; try again");
	}
	enum status status = ask_machines(lock, deadline, err);
	if (status == STATUS_OK) {
		status = verify_file(lock, err);
		if (status == STATUS_OK)
			return STATUS_OK;
		modes[lock->mode].release(lock);
	}
	machine_leave(&lock->machine);
	guard_leave(lock->guard);
	return status;
}

void sharedlock_release(struct sharedlock *lock)
{
	modes[lock->mode].release(lock);
	machine_leave(&lock->machine);
	guard_leave(lock->guard);
}

enum status sharedlock_read_made(struct sharedlock *lock, struct error *err)
{
	return read_record(lock, err);
}

enum status sharedlock_write_made(struct sharedlock *lock, struct error *err)
{
	char text[512];
	enum status status = read_text(lock, text, sizeof(text), err);
	if (status != STATUS_OK)
		return status;
	size_t length = strlen(text), last = strlen(LAST_MADE);
	if (length < last || strcmp(text + length - last, LAST_NEW))
		return STATUS_OK;
	/* Same length, in place. Should we die first, the next who opens the store writes it. */
	if (pwrite(lock->descriptor, LAST_MADE, last, (off_t)(length - last)) != (ssize_t)last ||
		fdatasync(lock->descriptor) < 0)
		return failed(err, "write", lock, errno);
	lock->made = true;
	return STATUS_OK;
}
