/* SPDX-License-Identifier: MIT */
/*
 * What the end of a start means for its command: a pure function.
 *
 * A command that was preempted waits again, and the start does not count; the same holds for exit
 * codes 42 and 43, with which preempt-run asks to be run again. Exit code 75 means a transient
 * failure: it waits again up to max_transient times in a row. A failure uses up one of
 * max_attempts; without max_attempts it is final, as with ClusterCoordinator. Exit code 93 is
 * always final.
 *
 * A lost worker uses up nothing: machines vanish, and that is not the command's fault. But a
 * command that kills its machine would kill them all. So losses count while they come in a row,
 * each within RULES_EARLY after the start; RULES_LOST_MAX of these are a failure, or max_attempts
 * if that is more.
 *
 * What the machine may be the cause of (ENDING_CANNOT, also exit codes 126 and 127; ENDING_MACHINE)
 * says nothing about the command, as long as another machine can try it.
 */
#ifndef QUEUE_RULES_H
#define QUEUE_RULES_H

#include "queue/queue.h"

#define RULES_EARLY	    60000
#define RULES_LOST_MAX	    3
#define RULES_PAUSE_MOST    300000
#define RULES_TRANSIENT_MAX 3 /* the default of max_transient, as with ClusterCoordinator */

struct rules_start {
	uint64_t max_attempts, max_transient;
	const struct queue_ending *ending;
	bool early;	/* ENDING_LOST: it was lost within RULES_EARLY */
	bool confirmed; /* a second machine cannot run it either, or there is no other one */
	bool told;	/* it was told to end */
};

/* Whether the machine may be the cause of this end. */
bool rules_is_refusal(const struct queue_ending *ending);

/*
 * history: with this start counted in starts; it is brought up to date. Returns QUEUE_WAITING,
 * QUEUE_SUCCEEDED, QUEUE_FAILED or QUEUE_CANCELLED.
 */
enum queue_state rules_decide(const struct rules_start *start, struct queue_history *history);

/*
 * A worker leaves a command alone that has ended by itself there and waits again, so that it does
 * not start it again and again without a pause. For how many ms: it doubles with each start, up to
 * RULES_PAUSE_MOST.
 */
bool rules_rests(const struct queue_ending *ending);
int64_t rules_pause(const struct queue_history *history);

#endif
