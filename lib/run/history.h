/* SPDX-License-Identifier: MIT */
/*
 * How the attempts of a run ended, read from the store for the budgets; and the decisions that
 * follow an attempt:
 *
 *   NEXT     {"again", "pause_ms", "why"}: written by the first agent that asks (preempt-run
 *            --restarts); all agents follow it, so that none restarts while another gives up
 *   REFUSED  {"again", "why"}: written by preempt-requeue, after the whole job had ended
 */
#ifndef RUN_HISTORY_H
#define RUN_HISTORY_H

#include "run/budget.h"
#include "store/store.h"

#define HISTORY_MAX 1000 /* how many attempts are read, the newest ones */

struct history {
	struct outcome *past; /* the oldest first */
	size_t count;
};

/* Read the attempts up to number (0: the newest). STATUS_NO: the run has none. */
enum status history_read(struct store *store, const char *run, uint64_t number,
	struct history *history, struct error *err);
void history_release(struct history *history);

/*
 * Decide whether the agents of this attempt, which has closed, run again: as NEXT says; without
 * NEXT by the budgets, and write the decision to NEXT, unless the run has finished. resume: the
 * step of the newest complete checkpoint, or NULL.
 */
enum status history_decide_next(struct store *store, const struct attempt *attempt,
	const struct budget_limits *limits, const uint64_t *resume,
	struct budget_decision *decision, struct error *err);

/* Record the decision not to run again after this attempt (REFUSED). */
enum status history_refuse(
	struct store *store, const struct attempt *attempt, const char *why, struct error *err);

#endif
