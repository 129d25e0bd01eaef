/* SPDX-License-Identifier: MIT */
/* What a bystander can say of all tasks of an attempt: their beats, watched for a period. */
#ifndef COMPOSE_VITALS_H
#define COMPOSE_VITALS_H

#include "live/heartbeat.h"
#include "proto/view.h"

struct vital {
	enum heartbeat_state state;
	bool has_step;
	uint64_t step;
	int64_t period; /* ms, as its beats say; 0: not known */
};

/*
 * Fill vitals[tasks]: by the keys who has left, is dead, was restarted or hangs; by the beats who
 * is alive, or late: unchanged for a whole period of its own. Takes as long as the slowest of them,
 * at most until deadline.
 */
enum status vitals_read(struct store *store, struct view *view, struct vital *vitals,
	int64_t deadline, struct error *err);

#endif
