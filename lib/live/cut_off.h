/* SPDX-License-Identifier: MIT */
/*
 * For how long a task has been cut off from the store: pure functions of times and answers. Time
 * counts only while this process runs, not while it or its machine is suspended.
 *
 * A task that is cut off cannot know whether the other tasks reach the store. If none does, no task
 * is declared dead, and all can train on. If the others reach it, they declare this task dead and
 * leave, and what this task trains after that is lost. So it waits for longer than a server
 * takes to come back, and at least until the others must have declared it dead; then it ends.
 */
#ifndef LIVE_CUT_OFF_H
#define LIVE_CUT_OFF_H

#include <stdbool.h>
#include <stdint.h>

#include "live/heartbeat.h"

#define CUT_OFF_LEAST 600000 /* ms: the shortest default */

/* Zeroed: the task is not cut off. */
struct cut_off {
	int64_t looked_at;
	int64_t lasted; /* ms without an answer, up to the last call */
};

/* To be called about once a second. answered: the store has taken the last beat in time. */
void cut_off_update(struct cut_off *cut_off, bool answered, int64_t now);

/* ms without a beat after which the tasks that reach the store have declared a task dead. */
int64_t cut_off_given_up(const struct heartbeat_rules *rules);

/* The default of heartbeat_rules.cut_off, ms. */
int64_t cut_off_default(const struct heartbeat_rules *rules);

#endif
