/* SPDX-License-Identifier: MIT */
/*
 * Where a command goes when a start of it has ended; a pure function.
 *
 * A command that was preempted is put back, and the start does not count as an attempt. The same
 * holds for exit codes 42 and 43, with which preempt-run asks to be run again. Exit code 75 means a
 * transient failure: the command is put back up to max_transient times in a row. A lost worker uses
 * up an attempt; without max_attempts, a command fails when QUEUE_LOST_MAX workers were lost.
 * (TensorFlow's ClusterCoordinator has no such limit, and a command that kills its worker can kill
 * them all.) A failure of the command itself also uses up an attempt; without max_attempts it is
 * final, as with ClusterCoordinator. Exit code 93 is final, and so is a command that cannot start.
 */
#ifndef QUEUE_RULES_H
#define QUEUE_RULES_H

#include "queue/records.h"

#define QUEUE_LOST_MAX	    3 /* lost workers that make a command fail, without max_attempts */
#define QUEUE_TRANSIENT_MAX 3 /* as ClusterCoordinator (docs/scenarios.md) */

/*
 * before: its history, with this start counted in starts. Returns QUEUE_WAITING or one of the last
 * three states, and sets the new history.
 */
enum queue_state rules_decide(const struct queue_item *item, const struct queue_history *before,
	const struct queue_ending *ending, struct queue_history *after);

/*
 * For how many ms a worker does not take a command that it has put back itself, so that it does not
 * start it again and again without a pause. It doubles with each start, up to 5 min.
 */
int64_t rules_pause(const struct queue_history *history);

#endif
