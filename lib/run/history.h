/* SPDX-License-Identifier: MIT */
/*
 * How the attempts of a run ended, read from the store for the budgets; what the run has saved; and
 * the decisions that follow an attempt:
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

/* ---- What the run has saved ---- */

/*
 * The newest save of a run since it last completed or was started anew: the key saved/RUN, outside
 * the run's other keys, so that "preempt-store gc" keeps it. Each that learns that a checkpoint is
 * complete writes it: "ckpt-rotate commit" in a run, a start that finds one, an attempt that
 * closes.
 */
struct saved {
	enum {
		SAVED_UNKNOWN, /* there is no store that could be asked */
		SAVED_NEVER,
		SAVED_STEP, /* the rest is set */
	} kind;
	uint64_t step, attempt;
	char where[4096]; /* the directory; "": not known */
	char layout[32];  /* of the checkpoints there (ckpt/layouts.h): once chosen, it stays */
	char host[65];	  /* on which the attempt was closed */
};

/* STATUS_DAMAGED: the key cannot be parsed. Not STATUS_OK: *saved is SAVED_UNKNOWN. */
enum status saved_read(
	struct store *store, const char *run, struct saved *saved, struct error *err);
/*
 * The same for PREEMPT_RUN and PREEMPT_STORE of the environment. STATUS_OK with SAVED_UNKNOWN: they
 * are not set, or there is no such store yet.
 */
enum status saved_ask(const char **run, struct saved *saved, struct error *err);
/* In a run: its checkpoint of this step, which "ckpt-rotate commit" has made in this directory, is
 * complete. Outside of a run nothing. */
enum status saved_note(uint64_t step, const char *directory, struct error *err);
/* Fill in where a save is: this directory, by its real path if it has one now. */
void saved_set_where(char where[4096], const char *directory);
/* Add to t that the run has saved this; host is set to this one. */
struct transaction;
void saved_put(const char *run, const struct saved *saved, struct transaction *t);
/* Add to t what the outcome of an attempt changes: a save is put; a completed run has none. finding
 * may be NULL. */
void saved_put_outcome(const char *run, const struct outcome *outcome,
	const struct outcome_finding *finding, struct transaction *t);
/* Start the run over: forget what it has saved. */
enum status saved_forget(struct store *store, const char *run, struct error *err);

/* The search for a checkpoint in all directories that are named. */
struct saved_search {
	/* STATUS_NO: they have none, or are missing in a directory that is there. Not STATUS_OK or
	 * STATUS_NO: could not ask, also if the parent of a directory is missing. */
	enum status status;
	uint64_t step; /* of the newest one that was found */
	const char *places;
	const char *path; /* its name; NULL: do not say that it is older than what was saved */
};
/* Where a start of the run begins. */
enum saved_start {
	START_FRESH,   /* at step 0: a missing checkpoint directory may be made */
	START_FOUND,   /* at the checkpoint that was found */
	START_OLDER,   /* the same, but it is older than what was saved */
	START_REFUSED, /* what was saved is in none of the directories */
	START_UNASKED, /* the directories could not be searched */
};
enum saved_start saved_decide(const struct saved *saved, const struct saved_search *search);
/* Returns the status of the search, or for START_REFUSED STATUS_TEMPORARY. Reports START_OLDER. */
enum status saved_judge(const struct saved *saved, const char *run,
	const struct saved_search *search, struct error *err);

#endif
