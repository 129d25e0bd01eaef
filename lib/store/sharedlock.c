/* SPDX-License-Identifier: MIT */
#include "store/sharedlock.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/clock.h"

#define RETRY_LONGEST 64 /* milliseconds */

/* The modes that are built. */
static const struct lock_kind *const kinds[] = {
	[LOCK_FCNTL] = &lock_fcntl,
};

static const struct lock_kind *kind_of(const struct sharedlock *lock)
{
	return kinds[lock->file.mode];
}

void sharedlock_init(struct sharedlock *lock)
{
	*lock = (struct sharedlock){.file = {.descriptor = -1}, .machine = {.descriptor = -1}};
}

enum status sharedlock_open(struct sharedlock *lock, const struct lockfile_terms *terms,
	int64_t deadline, struct error *err)
{
	struct stat st;
	sharedlock_init(lock);
	lock->guard = guard_get(terms->database);
	if (!lock->guard)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	enum status status = lockfile_open(&lock->file, terms, deadline, err);
	if (status != STATUS_OK)
		sharedlock_close(lock);
	else if (fstat(lock->file.descriptor, &st) == 0)
		(void)machine_open(&lock->machine, st.st_dev, st.st_ino);
	return status;
}

void sharedlock_close(struct sharedlock *lock)
{
	machine_close(&lock->machine);
	lockfile_close(&lock->file);
	guard_put(lock->guard);
	sharedlock_init(lock);
}

/* Ask the other machines. Full jitter: those who were refused together do not come together. */
static enum status ask_machines(struct sharedlock *lock, int64_t deadline, struct error *err)
{
	for (int64_t longest = 1;; longest = longest < RETRY_LONGEST ? longest * 2 : longest) {
		int number = kind_of(lock)->try(lock);
		if (number == 0)
			return STATUS_OK;
		if (number != EAGAIN)
			return lockfile_failed(err, "lock", &lock->file, number);
		int64_t now = clock_now();
		if (now >= deadline)
			return error_set(err, STATUS_TEMPORARY,
				"it is busy: another machine, user or container holds %s; try again, or "
				"look for a process there that is stopped",
				lock->file.path);
		int64_t wait = clock_jitter(longest);
		poll(NULL, 0, (int)(wait < deadline - now ? wait : deadline - now));
	}
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
	enum status status = lockfile_again(&lock->file, err);
	if (status == STATUS_OK)
		status = ask_machines(lock, deadline, err);
	if (status == STATUS_OK) {
		status = lockfile_verify(&lock->file, err);
		if (status == STATUS_OK)
			return STATUS_OK;
		kind_of(lock)->release(lock);
	}
	machine_leave(&lock->machine);
	guard_leave(lock->guard);
	return status;
}

void sharedlock_release(struct sharedlock *lock)
{
	kind_of(lock)->release(lock);
	machine_leave(&lock->machine);
	guard_leave(lock->guard);
}
