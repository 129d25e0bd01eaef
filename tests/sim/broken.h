/* SPDX-License-Identifier: MIT */
/*
 * Rules that can be broken, to see that they are noticed: at the borders of what is tried, where it
 * asks the store, reads a board or the clock. So no rule says how the code has to be written.
 */
#ifndef SIM_BROKEN_H
#define SIM_BROKEN_H

#include <stdbool.h>

#include "store/store.h"

enum rule {
	NO_RULE,
	ONE_CLAIM,
	ONE_DECISION,
	THE_DEAD_WRITE_NOTHING,
	ATTEMPTS_FOLLOW,
	UNKNOWN_IS_NOT_DONE,
	LARGEST_REPORT,
	SAVED_MEANS_SAVED,
	LEAVE_TOGETHER,
	TIME_IS_MONOTONIC,
	/* Of the queue in tables (queue/world.c). */
	ONE_LEASE,
	ONE_RESULT,
	FENCED_ARE_REFUSED,
	AFTER_OTHERS,
	ACKNOWLEDGED_IS_THERE,
	REPEATED_IS_ONCE,
	TOLD_TO_END,
	FAILURE_IS_TOLD,
	WITHIN_THE_LIMIT,
	NO_ID_TWICE,
	BOUNDED_ATTEMPTS,
	WAITING_IS_WOKEN,
	FORGET_WHAT_IS_OVER,
	REFUSED_ELSEWHERE,
	PAUSE_BETWEEN,
	RULES,
};

extern enum rule broken; /* the one that is broken now */

const char *rule_name(enum rule rule);
/* What breaking it means. */
const char *rule_meaning(enum rule rule);
/* Whether this simulator has to notice it. */
bool rule_is_for(enum rule rule, const char *simulator);
/* For struct shim: how the request becomes one that breaks the rule. */
void rule_alter(void *context, struct store_request *request);

#endif
