/* SPDX-License-Identifier: MIT */
#include "queue/rules.h"

#define PAUSE_FIRST 250 /* ms */

static bool is_code(const struct queue_ending *ending, int code)
{
	return ending->kind == ENDING_EXITED && ending->code == code;
}

bool rules_is_refusal(const struct queue_ending *ending)
{
	return ending->kind == ENDING_CANNOT || ending->kind == ENDING_MACHINE ||
	       is_code(ending, CODE_CANNOT_RUN) || is_code(ending, CODE_NOT_FOUND);
}

/* One of max_attempts is used up. */
static enum queue_state fail(const struct rules_start *start, struct queue_history *history)
{
	history->attempts++;
	return history->attempts < start->max_attempts ? QUEUE_WAITING : QUEUE_FAILED;
}

static enum queue_state fail_for_good(struct queue_history *history)
{
	history->attempts++;
	return QUEUE_FAILED;
}

static enum queue_state fail_transiently(
	const struct rules_start *start, struct queue_history *history)
{
	history->transients++;
	return history->transients <= start->max_transient ? QUEUE_WAITING : QUEUE_FAILED;
}

static enum queue_state lose(const struct rules_start *start, struct queue_history *history)
{
	uint64_t most = start->max_attempts > RULES_LOST_MAX ? start->max_attempts : RULES_LOST_MAX;
	history->lost++;
	history->lost_early = start->early ? history->lost_early + 1 : 0;
	return history->lost_early < most ? QUEUE_WAITING : QUEUE_FAILED;
}

static enum queue_state decide_exited(
	const struct rules_start *start, struct queue_history *history)
{
	switch (start->ending->code) {
	case CODE_OK: return QUEUE_SUCCEEDED;
	case CODE_SAVED:
	case CODE_PREEMPTED: history->preempted++; return QUEUE_WAITING;
	case CODE_TEMPORARY: return fail_transiently(start, history);
	case CODE_DECIDED: return fail_for_good(history);
	default: return fail(start, history);
	}
}

static enum queue_state decide_refused(
	const struct rules_start *start, struct queue_history *history)
{
	history->refused++;
	if (!start->confirmed)
		return QUEUE_WAITING;
	return start->ending->kind == ENDING_MACHINE ? fail_transiently(start, history)
						     : fail_for_good(history);
}

static enum queue_state decide(const struct rules_start *start, struct queue_history *history)
{
	if (rules_is_refusal(start->ending))
		return decide_refused(start, history);
	switch (start->ending->kind) {
	case ENDING_PREEMPTED: history->preempted++; return QUEUE_WAITING;
	case ENDING_LOST: return lose(start, history);
	case ENDING_CANCELLED: return QUEUE_CANCELLED;
	case ENDING_EXITED: return decide_exited(start, history);
	case ENDING_SIGNALLED:
	case ENDING_TIMED_OUT:
	case ENDING_CANNOT:
	case ENDING_MACHINE: break;
	}
	return fail(start, history);
}

enum queue_state rules_decide(const struct rules_start *start, struct queue_history *history)
{
	struct queue_history before = *history;
	enum queue_state state = decide(start, history);
	/* What counts in a row begins anew when another end comes between. */
	if (history->transients == before.transients)
		history->transients = 0;
	if (start->ending->kind != ENDING_LOST)
		history->lost_early = 0;
	return state == QUEUE_WAITING && start->told ? QUEUE_CANCELLED : state;
}

bool rules_rests(const struct queue_ending *ending)
{
	return ending->kind != ENDING_PREEMPTED && ending->kind != ENDING_LOST;
}

int64_t rules_pause(const struct queue_history *history)
{
	int64_t pause = PAUSE_FIRST;
	for (uint64_t i = 1; i < history->starts && pause < RULES_PAUSE_MOST; i++)
		pause *= 2;
	return pause < RULES_PAUSE_MOST ? pause : RULES_PAUSE_MOST;
}
