/* SPDX-License-Identifier: MIT */
/*
 * For how long a task has been cut off from the store: pure, times and answers in. Only time counts
 * that was watched: the time of a suspended machine does not count.
 *
 * A task cannot know whether no task reaches the store or only this one does not. In the first
 * case no task is declared dead, and all could train on; in the second one the others have declared
 * this one dead and have left, and what it trains on is lost. So it waits longer than a server
 * takes to come back, and at least until the others must have given it up.
 */
#ifndef LIVE_CUT_OFF_H
#define LIVE_CUT_OFF_H

#include <stdbool.h>
#include <stdint.h>

#include "live/heartbeat.h"

#define CUT_OFF_LEAST 600000 /* ms: the shortest default */

/* Zeroed: it is not cut off. */
struct cut_off {
	int64_t looked_at;
	int64_t lasted; /* ms without an answer, up to the last look */
};

/* To be called about once a second. answered: the store has taken the last beat in time. */
void cut_off_update(struct cut_off *cut_off, bool answered, int64_t now);

/* Tasks that can ask the store have given up one that has not beaten for so long; ms. */
int64_t cut_off_given_up(const struct heartbeat_rules *rules);

/* After how long a task ends where the user names no time; ms. */
int64_t cut_off_default(const struct heartbeat_rules *rules);

#endif
