/* SPDX-License-Identifier: MIT */
/* Waiting for the other tasks' commits. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/native.h"
#include "ckpt/staging.h"

/* Milliseconds: pauses between two looks, and how long the last task may take to publish. */
#define PAUSE_MIN 20
#define PAUSE_MAX 1000
#define PUBLISHES 3000

/*
 * Find the missing tasks. STATUS_NO: the committed directory is gone, and not published.
 * *all_since: the time since which no task is missing; 0: one is missing.
 */
static enum status look_around(const struct checkpoint_target *target, int64_t *all_since,
	struct checkpoint_commit *answer, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct checkpoint found;
	struct staging staging = {0};
	enum status status =
		inspect_step(target->directory, target->step, false, &found, NULL, err);
	bool unknown = status == STATUS_OK && found.state == CHECKPOINT_UNKNOWN;
	answer->complete = status == STATUS_OK && staging_is_settled(target, &found);
	if (answer->complete || (status != STATUS_OK && status != STATUS_NO))
		return status;
	/* Task 0 may not even have begun. */
	if (!target->sharded)
		return STATUS_OK;
	ckpt_name_staging(name, target->step, target->attempt, target->life);
	char *path = ckpt_directory_path(target->directory, name);
	status = staging_inspect(path, &staging, err);
	if (status == STATUS_OK) {
		text_release(&answer->absent);
		answer->missing = staging_absent(&staging, target->tasks, &answer->absent);
		if (answer->missing)
			*all_since = 0;
		else if (*all_since == 0)
			*all_since = clock_now();
	} else if (status == STATUS_NO && unknown) {
		/* It was published, and could not be read. */
		status = inspect_refuse(target->directory, &found, err);
	}
	staging_release(&staging);
	free(path);
	return status;
}

enum status checkpoint_await(const struct checkpoint_target *target, int64_t deadline,
	struct checkpoint_commit *answer, struct error *err)
{
	int64_t pause = PAUSE_MIN, all_since = 0;
	bool gone = false;
	for (;;) {
		enum status status = look_around(target, &all_since, answer, err);
		if (answer->complete)
			return STATUS_OK;
		/* It may have been published between the two looks: look once more. */
		if (status == STATUS_NO && !gone) {
			gone = true;
			continue;
		}
		if (status != STATUS_OK)
			return status;
		gone = false;
		int64_t now = clock_now();
		if (all_since && now - all_since >= PUBLISHES) {
			text_release(&answer->absent);
			return checkpoint_commit(target, answer, err);
		}
		if (now >= deadline && !answer->missing)
			return error_set(err, STATUS_TIMEOUT,
				"step %" PRIu64 " in %s is not complete: no task has published it "
				"yet",
				target->step, target->directory);
		if (now >= deadline)
			return error_set(err, STATUS_TIMEOUT,
				"step %" PRIu64 " in %s is not complete: task %s has not committed",
				target->step, target->directory, text_string(&answer->absent));
		now += clock_jitter(pause);
		clock_sleep_until(now < deadline ? now : deadline);
		pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
	}
}
