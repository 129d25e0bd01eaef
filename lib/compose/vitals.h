/* SPDX-License-Identifier: MIT */
/* The state of all tasks of an attempt, found from outside by watching their beats for a period. */
#ifndef COMPOSE_VITALS_H
#define COMPOSE_VITALS_H

#include "live/heartbeat.h"
#include "proto/view.h"

struct vital {
	enum heartbeat_state state;
	int64_t period; /* ms between its beats; 0: not known */
	bool unread;	/* its beats could not be read: the state is from the keys alone */
};

/*
 * Fill vitals[tasks]. The keys show which tasks have left, are dead, were restarted or hang. The
 * beats of the others show whether they have left, were restarted, are alive or late (unchanged for
 * a whole period); a late one whose process on this machine is gone is dead. Takes about as long as
 * the longest period of a late task, at most until deadline.
 */
void vitals_read(
	struct store *store, const struct view *view, struct vital *vitals, int64_t deadline);

#endif
