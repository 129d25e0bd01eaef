/* SPDX-License-Identifier: MIT */
/* The state of all tasks of an attempt, found from outside by watching their beats for a period. */
#ifndef COMPOSE_VITALS_H
#define COMPOSE_VITALS_H

#include "live/heartbeat.h"
#include "proto/view.h"

struct vital {
	enum heartbeat_state state;
	bool has_step;
	uint64_t step;
	int64_t period; /* ms, as its beats say; 0: not known */
	bool unread;	/* its beats could not be read: the state is that of the keys */
};

/*
 * Fill vitals[tasks]. The keys show which tasks have left, are dead, were restarted or hang; the
 * beats show which are alive, or late (unchanged for a whole period of the task's own). Takes as
 * long as the longest of these periods, at most until deadline.
 */
void vitals_read(
	struct store *store, const struct view *view, struct vital *vitals, int64_t deadline);

#endif
