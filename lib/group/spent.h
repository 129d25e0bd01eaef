/* SPDX-License-Identifier: MIT */
/* What a grace period was used for. Pure; instants and durations are milliseconds. */
#ifndef GROUP_SPENT_H
#define GROUP_SPENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum spent_on {
	SPENT_TRAINING,
	SPENT_SAVING, /* agreeing and saving, and waiting for the others at it */
	SPENT_NOT,    /* through: the rest is left over */
	SPENT_KINDS,
};

/* A zeroed one: no grace period has begun. */
struct spent {
	bool begun;
	int64_t start, deadline;
	enum spent_on on;
	int64_t since; /* when that began */
	int64_t time[SPENT_KINDS];
};

/* From now on it is spent on that; the first call begins it. A deadline that has moved counts. */
void spent_turn(struct spent *spent, enum spent_on on, int64_t deadline, int64_t now);

/* "20.0 s of grace: 12.3 s of training, 4.0 s to agree and save, 3.7 s left"; false: there is none.
 */
bool spent_say(const struct spent *spent, struct text *text);

#endif
