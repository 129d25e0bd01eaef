/* SPDX-License-Identifier: MIT */
/* What a grace period was used for. Pure; instants and durations are milliseconds. */
#ifndef AGENT_TASK_GRACE_ACCOUNT_H
#define AGENT_TASK_GRACE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum grace_use {
	GRACE_TRAINING,
	GRACE_SAVING,	/* agreeing on a step and saving */
	GRACE_NOT_USED, /* the task has saved, or its command has ended: the rest is left over */
	GRACE_USES,
};

/* Zeroed: no grace period has begun. */
struct grace_account {
	bool begun;
	int64_t start, deadline;
	enum grace_use use;
	int64_t since; /* when this use began */
	int64_t time[GRACE_USES];
};

/*
 * Record how the grace period is used from now on. The first call begins the period; the deadline
 * of the last call counts.
 */
void grace_account_switch(
	struct grace_account *account, enum grace_use use, int64_t deadline, int64_t now);

/*
 * "20.0 s of grace: 12.3 s of training, 4.0 s to agree and save, 3.7 s left"; the end may also be
 * "1.5 s past the deadline". False: no grace period has begun.
 */
bool grace_account_describe(const struct grace_account *account, struct text *text);

#endif
