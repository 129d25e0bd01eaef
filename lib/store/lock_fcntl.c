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

static int ask(struct sharedlock *lock, short type)
{
	struct flock flock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = LOCKED_BYTE, .l_len = 1};
	if (fcntl(lock->file.descriptor, F_OFD_SETLK, &flock) == 0)
		return 0;
	return errno == EACCES || errno == EINTR ? EAGAIN : errno;
}

static int try_once(struct sharedlock *lock)
{
	return ask(lock, lock->file.read_only ? F_RDLCK : F_WRLCK);
}

static void release(struct sharedlock *lock)
{
	(void)ask(lock, F_UNLCK);
}

const struct lock_kind lock_fcntl = {.try = try_once, .release = release};
