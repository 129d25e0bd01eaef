/* SPDX-License-Identifier: MIT */
/*
 * Where a command goes when one start of it has ended: a pure function.
 *
 * Being preempted never counts: it goes back. So do the exit codes that mean "run me again" of a
 * run inside (42, 43). 75 means "transient, put me back": forgiven max_transient times in a row. A
 * lost worker uses up an attempt: without max_attempts three may be lost (TensorFlow's
 * ClusterCoordinator has no limit, and a command that kills its worker then kills them all). What
 * fails by itself uses one, too, and without max_attempts is not tried again, as ClusterCoordinator
 * does not. 93 and what cannot be started are final.
 */
#ifndef QUEUE_RULES_H
#define QUEUE_RULES_H

#include "queue/records.h"

#define QUEUE_LOST_MAX	    3 /* lost workers that make a command fail, where not given */
#define QUEUE_TRANSIENT_MAX 3 /* as ClusterCoordinator (docs/scenarios.md) */

/*
 * before: its history with this start counted in starts. Answers where it goes (QUEUE_WAITING or
 * one of the last three) and what its history is then.
 */
enum queue_state rules_decide(const struct queue_item *item, const struct queue_history *before,
	const struct queue_ending *ending, struct queue_history *after);

/*
 * How long a worker does not take a command that it has put back itself, ms, so that it does not
 * spin on a command that is put back every time. Doubles with each start, at most 5 min.
 */
int64_t rules_pause(const struct queue_history *history);

#endif
