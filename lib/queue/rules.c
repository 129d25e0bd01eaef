/* SPDX-License-Identifier: MIT */
#include "queue/rules.h"

#define PAUSE	      250	      /* ms */
#define PAUSE_LONGEST (5 * 60 * 1000) /* ms */

/* Use up one of at most `most` attempts. */
static enum queue_state use_up(struct queue_history *after, uint64_t most)
{
	after->attempts++;
	return after->attempts < most ? QUEUE_WAITING : QUEUE_FAILED;
}

static enum queue_state decide_exited(
	const struct queue_item *item, int code, struct queue_history *after)
{
	switch (code) {
	case STATUS_OK: return QUEUE_SUCCEEDED;
	case CODE_SAVED:
	case CODE_PREEMPTED: after->preempted++; return QUEUE_WAITING;
	case STATUS_TEMPORARY:
		after->transients++;
		return after->transients <= item->max_transient ? QUEUE_WAITING : QUEUE_FAILED;
	case CODE_DECIDED: after->attempts++; return QUEUE_FAILED;
	default: return use_up(after, item->max_attempts ? item->max_attempts : 1);
	}
}

enum queue_state rules_decide(const struct queue_item *item, const struct queue_history *before,
	const struct queue_ending *ending, struct queue_history *after)
{
	*after = *before;
	/* Only failures in a row count. */
	if (ending->kind != ENDING_EXITED || ending->code != STATUS_TEMPORARY)
		after->transients = 0;
	switch (ending->kind) {
	case ENDING_EXITED: return decide_exited(item, ending->code, after);
	case ENDING_PREEMPTED: after->preempted++; return QUEUE_WAITING;
	case ENDING_LOST:
		after->lost++;
		return use_up(after, item->max_attempts ? item->max_attempts : QUEUE_LOST_MAX);
	case ENDING_CANCELLED: return QUEUE_CANCELLED;
	case ENDING_CANNOT: after->attempts++; return QUEUE_FAILED;
	case ENDING_SIGNALLED:
	case ENDING_TIMED_OUT: break;
	}
	return use_up(after, item->max_attempts ? item->max_attempts : 1);
}

int64_t rules_pause(const struct queue_history *history)
{
	int64_t pause = PAUSE;
	for (uint64_t i = 1; i < history->starts && pause < PAUSE_LONGEST; i++)
		pause *= 2;
	return pause < PAUSE_LONGEST ? pause : PAUSE_LONGEST;
}
