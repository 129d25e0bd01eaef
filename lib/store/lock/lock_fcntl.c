/* SPDX-License-Identifier: MIT */
/* Mode fcntl: an open-file-description lock on one byte of the lock file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/thread.h"
#include "base/xalloc.h"
#include "store/lock/lock.h"

/*
 * We lock a byte after the text, because CIFS locks are mandatory: no process can read a locked
 * byte.
 */
#define LOCKED_BYTE 4096

/* How many times in a row a signal may interrupt the request. */
#define INTERRUPTIONS 100

#define LEAST_PATIENCE 500 /* milliseconds for a request, even if the deadline has passed */

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

static int ask(int descriptor, short type)
{
	struct flock flock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = LOCKED_BYTE, .l_len = 1};
	return lock_fcntl_ask(descriptor, F_OFD_SETLK, &flock);
}

/*
 * A request to a shared filesystem. The system call returns when the server answers, and an NFS
 * server does not answer in its grace period (90 s after its start). So a thread makes the call,
 * and the caller waits for the thread until its deadline. A lock has one request at a time.
 */
struct lock_request {
	pthread_t thread;
	int descriptor; /* a copy for the thread: the lock file may be closed before it ends */
	short type;
	_Atomic int state;
};

enum {
	WANTED,	  /* a caller waits */
	UNWANTED, /* no caller waits: if we get the lock, release it at once */
	CLOSED,	  /* no caller will wait: the thread frees the request, too */
	DONE,	  /* there is an answer: join the thread */
};

/* The thread. Returns what ask returned. */
static void *make_request(void *context)
{
	struct lock_request *request = context;
	int wanted = WANTED, number = ask(request->descriptor, request->type);
	if (number == 0 && !atomic_compare_exchange_strong(&request->state, &wanted, DONE)) {
		(void)ask(request->descriptor, F_UNLCK);
		number = EAGAIN;
	}
	close(request->descriptor);
	if (atomic_exchange(&request->state, DONE) == CLOSED)
		free(request);
	return (void *)(intptr_t)number;
}

static int start_request(struct lock *lock, short type)
{
	struct lock_request *request = xcalloc(1, sizeof(*request));
	request->descriptor = fcntl(lock->file.descriptor, F_DUPFD_CLOEXEC, 0);
	request->type = type;
	int number = request->descriptor < 0
			     ? errno
			     : thread_start(&request->thread, make_request, request);
	if (number == 0) {
		lock->request = request;
		return 0;
	}
	if (request->descriptor >= 0)
		close(request->descriptor);
	free(request);
	return number;
}

/* The answer to the current request; EINPROGRESS: the deadline has passed without an answer. */
static int await_request(struct lock *lock, int64_t deadline)
{
	struct lock_request *request = lock->request;
	int64_t until = clock_later(deadline, clock_after(LEAST_PATIENCE));
	struct timespec at = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
	void *number;
	int unwanted = UNWANTED, wanted = WANTED;
	(void)atomic_compare_exchange_strong(&request->state, &unwanted, WANTED);
	int result = until == CLOCK_NEVER
			     ? pthread_join(request->thread, &number)
			     : pthread_clockjoin_np(request->thread, &number, CLOCK_MONOTONIC, &at);
	if (result != 0) {
		if (atomic_compare_exchange_strong(&request->state, &wanted, UNWANTED))
			return EINPROGRESS;
		/* There is an answer, so the thread is about to end. */
		(void)pthread_join(request->thread, &number);
	}
	lock->request = NULL;
	free(request);
	return (int)(intptr_t)number;
}

static int try_once(struct lock *lock, int64_t deadline)
{
	short type = lock->file.read_only ? F_RDLCK : F_WRLCK;
	if (lock->file.cache == CACHE_OURS)
		return ask(lock->file.descriptor, type);
	/* If we cannot start a thread (ulimit -u), wait as long as the server takes. */
	if (!lock->request && start_request(lock, type) != 0)
		return ask(lock->file.descriptor, type);
	return await_request(lock, deadline);
}

static bool release(struct lock *lock)
{
	/* Closing the file releases the lock, too; otherwise the others would wait for us. */
	if (ask(lock->file.descriptor, F_UNLCK) != 0)
		lockfile_drop(&lock->file);
	return true;
}

/* A request without an answer goes on without us. */
static void close_request(struct lock *lock)
{
	struct lock_request *request = lock->request;
	if (!request)
		return;
	lock->request = NULL;
	pthread_detach(request->thread);
	if (atomic_exchange(&request->state, CLOSED) == DONE)
		free(request);
}

static enum status explain_busy(const struct lock *lock, struct error *err)
{
	char dead[96] = "";
	if (lock->file.outlived == FILESYSTEM_FOR_EVER)
		snprintf(dead, sizeof(dead),
			"; a machine that lost its power holds it until it boots again");
	else if (lock->file.outlived)
		snprintf(dead, sizeof(dead),
			"; a machine that lost its power holds it for about %d s",
			lock->file.outlived);
	return error_set(err, STATUS_TEMPORARY,
		"it is busy: another machine, user or container holds %s; try again, or look for a "
		"process there that is stopped%s",
		lock->file.path, dead);
}

static enum status explain(const struct lock *lock, int number, struct error *err)
{
	if (number == EAGAIN)
		return explain_busy(lock, err);
	if (number != EINPROGRESS)
		return lockfile_failed(err, "lock", &lock->file, number);
	return error_set(err, STATUS_TEMPORARY,
		"its server did not answer in time whether %s is locked: it cannot be reached, or was "
		"started lately and gives no locks in its grace period (90 s on most NFS servers); "
		"try again",
		lock->file.path);
}

const struct lock_kind lock_fcntl = {
	.try = try_once, .release = release, .explain = explain, .close = close_request};
