/* SPDX-License-Identifier: MIT */
#include "store/lock/lock.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/failure.h"

static const struct lock_kind *const kinds[] = {
	[LOCK_FCNTL] = &lock_fcntl,
	[LOCK_LINK] = &lock_link,
};

static const struct lock_kind *kind_of(const struct lock *lock)
{
	return kinds[lock->file.mode];
}

void lock_init(struct lock *lock)
{
	*lock = (struct lock){.file = {.descriptor = -1}, .machine = {.descriptor = -1}};
}

enum status lock_open(
	struct lock *lock, const struct lockfile_terms *terms, int64_t deadline, struct error *err)
{
	lock_init(lock);
	lock->mutex = database_mutex_get(terms->database);
	enum status status = lockfile_open(&lock->file, terms, deadline, err);
	if (status != STATUS_OK)
		lock_close(lock);
	else if (!terms->alone)
		(void)machine_open(&lock->machine, lock->file.itself.st_dev,
			lock->file.itself.st_ino, lock->file.nonce);
	return status;
}

void lock_close(struct lock *lock)
{
	if (lock->file.descriptor >= 0 || lock->request)
		kind_of(lock)->close(lock);
	machine_close(&lock->machine);
	lockfile_close(&lock->file);
	database_mutex_put(lock->mutex);
	lock_init(lock);
}

bool lock_is_open(const struct lock *lock)
{
	return lock->file.descriptor >= 0;
}

enum status lock_replace(struct lock *lock, struct lock *fresh)
{
	bool same = !strcmp(lock->file.nonce, fresh->file.nonce);
	if (same) {
		struct lock old = *lock;
		*lock = *fresh;
		*fresh = old;
	}
	lock_close(fresh);
	return same ? STATUS_OK : STATUS_NO;
}

/* NULL: only this machine uses the store, or its processes share no page. */
static struct handoff *handoff_of(struct lock *lock)
{
	return lock->file.cache == CACHE_OURS ? NULL : machine_handoff(&lock->machine);
}

/*
 * Take the lock that excludes other machines, in the recorded mode. Pauses are random, so that
 * processes that were refused together do not try again together.
 */
static enum status ask_machines(struct lock *lock, int64_t deadline, struct error *err)
{
	const struct lock_kind *kind = kind_of(lock);
	struct handoff *handoff = handoff_of(lock);
	if (handoff)
		clock_sleep_until(
			clock_earlier(clock_after(handoff_pause(handoff, clock_now())), deadline));
	for (int64_t longest = 1;; longest = longest < HANDOFF_RETRY ? longest * 2 : longest) {
		int number = kind->try(lock, deadline);
		if (number == 0) {
			if (handoff)
				handoff_taken(handoff, clock_now(), longest > 1);
			return STATUS_OK;
		}
		if (number == EAGAIN && clock_now() < deadline) {
			clock_sleep_until(
				clock_earlier(clock_after(clock_jitter(longest)), deadline));
			continue;
		}
		if (kind->give_up)
			kind->give_up(lock);
		/* Drop a file whose mount is gone: it would answer ESTALE for ever. */
		if (number != EAGAIN && lockfile_verify(&lock->file, NULL) == STATUS_OK &&
			number == ESTALE)
			lockfile_drop(&lock->file);
		return kind->explain(lock, number, err);
	}
}

enum status lock_enter_queue(
	struct lock *lock, struct post *post, int64_t deadline, struct error *err)
{
	pid_t holder;
	int64_t since;
	if (database_mutex_lock(lock->mutex, deadline) != 0)
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: another thread of this process is at work on it");
	int number = machine_enter(&lock->machine, post, deadline, &holder, &since);
	if (number != 0) {
		database_mutex_unlock(lock->mutex);
		if (number == EALREADY)
			return STATUS_NO;
		return holder ? error_set(err, STATUS_TEMPORARY,
					"it is busy: process %d of this machine has held it for %lld "
					"ms; try again, or see whether that process is stopped",
					(int)holder, (long long)(clock_now() - since))
			      : error_set(err, STATUS_TEMPORARY,
					"it is busy: too many processes of this machine are waiting "
					"for it; try again");
	}
	lock->entered = true;
	return STATUS_OK;
}

void lock_leave_queue(struct lock *lock)
{
	lock->entered = false;
	machine_leave(&lock->machine);
	database_mutex_unlock(lock->mutex);
}

enum status lock_acquire(struct lock *lock, int64_t deadline, struct error *err)
{
	if (!lock->entered && lock_enter_queue(lock, NULL, deadline, err) != STATUS_OK)
		return STATUS_TEMPORARY;
	/* In mode link, check before making a name: an empty mount point must not get one. */
	enum status status = kind_of(lock)->confirm ? lockfile_verify(&lock->file, err) : STATUS_OK;
	if (status == STATUS_OK)
		status = ask_machines(lock, deadline, err);
	if (status == STATUS_OK) {
		status = lockfile_verify(&lock->file, err);
		if (status == STATUS_OK)
			return STATUS_OK;
		(void)kind_of(lock)->release(lock);
		kind_of(lock)->close(lock);
	}
	lock_leave_queue(lock);
	return status;
}

bool lock_unlock(struct lock *lock)
{
	struct handoff *handoff = handoff_of(lock);
	bool was_ours = kind_of(lock)->release(lock);
	if (handoff)
		handoff_given(handoff, clock_now());
	return was_ours;
}

bool lock_release(struct lock *lock)
{
	bool was_ours = lock_unlock(lock);
	lock_leave_queue(lock);
	return was_ours;
}

bool lock_can_be_lost(const struct lock *lock)
{
	return kind_of(lock)->confirm;
}

bool lock_confirm(struct lock *lock, bool ask)
{
	return !kind_of(lock)->confirm || kind_of(lock)->confirm(lock, ask);
}

enum status lock_lost(const struct lock *lock, const char *consequence, struct error *err)
{
	int why = lock->link.why;
	if (why)
		return error_set(err, error_status_of_errno(why),
			"cannot check whether we still hold its lock %s.held: %s%s; %s",
			lock->file.path, strerror(why), store_cure(why), consequence);
	return error_set(err, STATUS_TEMPORARY,
		"its lock %s.held was taken over by others: we were stopped, or did not reach the "
		"filesystem, for %lld s; %s",
		lock->file.path, (long long)(lock->file.takeover / 1000), consequence);
}
