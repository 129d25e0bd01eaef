/* SPDX-License-Identifier: MIT */
/*
 * The attempts of a run, as the budgets need them, out of the store; and what was decided after one
 * of them, which holds for all of its agents and for whoever asks later.
 *
 *   NEXT     {"again", "pause_ms", "why"}: by the first of its agents that asked (preempt-run
 *            --restarts); all of them follow it, so that none restarts while another gives up
 *   REFUSED  {"why"}: by preempt-requeue, after the whole job had ended
 */
#ifndef RUN_HISTORY_H
#define RUN_HISTORY_H

#include "run/budget.h"
#include "store/store.h"

#define HISTORY_MAX 1000 /* the newest so many attempts are looked at */

struct history {
	struct outcome *past; /* the oldest first */
	size_t count;
};

/* All attempts up to number (0: the newest). STATUS_NO: the run has none. */
enum status history_read(struct store *store, const char *run, uint64_t number,
	struct history *history, struct error *err);
void history_release(struct history *history);

/*
 * Decide by the budgets whether the agents of this attempt, which has closed, run again; or learn
 * what another of them has decided. resume: the step of the newest complete checkpoint;
 * NULL: not known.
 */
enum status history_decide_next(struct store *store, const struct attempt *attempt,
	const struct budget_limits *limits, const uint64_t *resume,
	struct budget_decision *decision, struct error *err);

/* Keep that it was decided not to run again after this attempt. */
enum status history_refuse(
	struct store *store, const struct attempt *attempt, const char *why, struct error *err);

#endif
