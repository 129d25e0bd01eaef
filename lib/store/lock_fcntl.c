/* SPDX-License-Identifier: MIT */
/* Mode fcntl: an open-file-description lock on one byte of the lock file. */
#include <errno.h>
#include <fcntl.h>

#include "store/sharedlock.h"

/*
 * The byte that is locked lies behind the text, so that the text can be read while it is locked
 * where locks are mandatory (CIFS).
 */
#define LOCKED_BYTE 4096

/* How often asking may be interrupted in a row. */
#define INTERRUPTIONS 100

int lock_fcntl_ask(int descriptor, int command, struct flock *lock)
{
	int number = EINTR;
	for (int i = 0; i < INTERRUPTIONS && number == EINTR; i++)
		number = fcntl(descriptor, command, lock) == 0 ? 0 : errno;
	if (number != EACCES || lock->l_type == F_UNLCK)
		return number;
	struct flock holder = *lock;
	command = command == F_OFD_SETLK ? F_OFD_GETLK : F_GETLK;
	return fcntl(descriptor, command, &holder) == 0 && holder.l_type != F_UNLCK ? EAGAIN
										    : EACCES;
}

static int ask(struct sharedlock *lock, short type)
{
	struct flock flock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = LOCKED_BYTE, .l_len = 1};
	return lock_fcntl_ask(lock->file.descriptor, F_OFD_SETLK, &flock);
}

static int try_once(struct sharedlock *lock)
{
	return ask(lock, lock->file.read_only ? F_RDLCK : F_WRLCK);
}

static void release(struct sharedlock *lock)
{
	/* We may live on, and the others would wait for us. */
	if (ask(lock, F_UNLCK) != 0)
		lockfile_drop(&lock->file);
}

static enum status busy(const struct sharedlock *lock, struct error *err)
{
	return error_set(err, STATUS_TEMPORARY,
		"it is busy: another machine, user or container holds %s; try again, or look for a "
		"process there that is stopped",
		lock->file.path);
}

const struct lock_kind lock_fcntl = {.try = try_once, .release = release, .busy = busy};
