/* SPDX-License-Identifier: MIT */
/* What a grace period was used for. Pure; instants and durations are milliseconds. */
#ifndef AGENT_TASK_GRACE_ACCOUNT_H
#define AGENT_TASK_GRACE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum grace_use {
	GRACE_TRAINING,
	GRACE_SAVING,	/* agreeing and saving, and waiting for the others at it */
	GRACE_NOT_USED, /* through: the rest is left over */
	GRACE_USES,
};

/* A zeroed one: no grace period has begun. */
struct grace_account {
	bool begun;
	int64_t start, deadline;
	enum grace_use on;
	int64_t since; /* when that began */
	int64_t time[GRACE_USES];
};

/* From now on it is spent on that; the first call begins it. A deadline that has moved counts. */
void grace_account_switch(
	struct grace_account *account, enum grace_use on, int64_t deadline, int64_t now);

/* "20.0 s of grace: 12.3 s of training, 4.0 s to agree and save, 3.7 s left"; false: there is none.
 */
bool grace_account_describe(const struct grace_account *account, struct text *text);

#endif
