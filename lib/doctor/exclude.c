/* SPDX-License-Identifier: MIT */
/* Testing whether the lock of a store excludes: one side holds it, and all others try to get it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "doctor/examine.h"
#include "store/failure.h"
#include "store/lock/link_prove.h"
#include "store/lock/lock.h"

/* Milliseconds. */
#define ANSWER_IN      5000
#define TRIAL_TAKEOVER 60000 /* so that no side treats a slow holder as dead */

/* Side 0: make the lock file. STATUS_USAGE: this mode does not work here. */
static enum status make_lockfile(const char *path, enum lock_mode mode, struct error *err)
{
	enum status status = mode == LOCK_LINK ? link_prove(path, err) : STATUS_OK;
	return status == STATUS_OK ? lockfile_write(path, mode, TRIAL_TAKEOVER, false, err)
				   : status;
}

/* Ask once, not through the ticket queue of this machine. */
static enum status ask(struct lock *lock, const struct lock_kind *kind, struct doctor_side *self,
	struct error *err)
{
	self->result = kind->try(lock, clock_after(ANSWER_IN));
	if (self->result != 0 && kind->give_up)
		kind->give_up(lock);
	/* EINPROGRESS: the server did not answer, so it is not known whether the lock excludes. */
	return self->result == EINPROGRESS ? kind->explain(lock, EINPROGRESS, err) : STATUS_OK;
}

/* Side 0 takes the lock; then all others try; then each side that has it releases it. */
static bool try_lock(struct examination *examination, struct lock *lock,
	const struct lock_kind *kind, struct error *err)
{
	bool holds = examination->exchange.index == 0;
	for (int round = 0; round < 2; round++) {
		enum status status = STATUS_OK;
		if (holds == (round == 0))
			status = ask(lock, kind, examination->self, err);
		if (!doctor_step(examination, status, ANSWER_IN, err))
			return false;
	}
	if (examination->self->result == 0)
		(void)kind->release(lock);
	return true;
}

static void conclude_lock(const struct doctor_findings *findings, struct doctor_mode *mode)
{
	const struct doctor_side *sides = findings->sides;
	mode->lock = DOCTOR_YES;
	for (size_t k = 0; k < findings->count; k++) {
		int got = sides[k].result;
		if (got == (k == 0 ? 0 : EAGAIN))
			continue;
		/* If side 0 does not hold it, another side may get it. */
		if (k > 0 && got == 0 && sides[0].result != 0)
			continue;
		mode->lock = got == 0 ? DOCTOR_NO : DOCTOR_FAILED;
		if (got == 0)
			snprintf(mode->lock_why, sizeof(mode->lock_why),
				"%.60s on %.40s got it while %.60s on %.40s held it", sides[k].path,
				sides[k].host, sides[0].path, sides[0].host);
		else if (got == EAGAIN)
			snprintf(mode->lock_why, sizeof(mode->lock_why),
				"no side holds it, and it is not granted");
		else
			snprintf(mode->lock_why, sizeof(mode->lock_why), "on %s: %s%s",
				sides[k].host, strerror(got), store_cure(got));
		if (got == 0)
			return;
	}
}

bool doctor_measure_lock(struct examination *examination, enum lock_mode mode)
{
	const struct lock_kind *kind = mode == LOCK_LINK ? &lock_link : &lock_fcntl;
	const struct doctor_findings *findings = examination->findings;
	struct doctor_mode *found = &examination->findings->modes[mode];
	struct doctor_side *self = examination->self;
	size_t index = examination->exchange.index;
	char path[PATH_MAX + 32];
	struct lock lock;
	struct error err = {0};
	snprintf(path, sizeof(path), "%s/%s.lock", examination->exchange.scratch,
		lock_mode_name(mode));
	enum status status = index == 0 ? make_lockfile(path, mode, &err) : STATUS_OK;
	self->result = (int)status;
	snprintf(self->why, sizeof(self->why), "%s", err.text);
	if (!doctor_step(examination, status == STATUS_USAGE ? STATUS_OK : status, ANSWER_IN, &err))
		return false;
	if (findings->sides[0].result != STATUS_OK) {
		found->lock = DOCTOR_FAILED;
		snprintf(found->lock_why, sizeof(found->lock_why), "%s", findings->sides[0].why);
		return true;
	}
	lock_init(&lock);
	status = lockfile_inspect(&lock.file, path, false, &err);
	lock.file.cache = cache_kind(&findings->traits[index]);
	bool tried = status == STATUS_OK ? try_lock(examination, &lock, kind, &err)
					 : doctor_step(examination, status, 0, &err);
	lock_close(&lock);
	if (tried)
		conclude_lock(findings, found);
	return tried;
}
