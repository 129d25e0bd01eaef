/* SPDX-License-Identifier: MIT */
/*
 * How an attempt ended, as the budgets (budget.h) count it: read off what the store shows of it,
 * and kept in its key CLOSED, so that the history of a run is one short key for each attempt.
 */
#ifndef RUN_OUTCOME_H
#define RUN_OUTCOME_H

#include "base/json.h"
#include "proto/view.h"

enum outcome_cause {
	CAUSE_OPEN,	 /* not at all yet, as far as the store knows */
	CAUSE_COMPLETED, /* all tasks have finished */
	CAUSE_STOPPED,	 /* somebody asked for it: preempt-claim --then stop */
	CAUSE_PREEMPTED, /* with its checkpoint, or before there was anything to save */
	CAUSE_UNSAVED,	 /* preempted, and no new complete checkpoint */
	CAUSE_CRASHED,	 /* a command failed by itself */
	CAUSE_HUNG,	 /* a task ran, but got no further */
	CAUSE_LOST,	 /* a peer broke: its machine or agent died, or came back as another */
	CAUSE_UNJOINED,	 /* not all tasks came */
	CAUSE_KINDS,
};

struct outcome {
	uint64_t attempt;
	enum outcome_cause cause;
	int code;	/* of CAUSE_CRASHED: the command's, as a shell says it */
	char text[512]; /* for people: "task 2 failed on n3 with 1: out of memory"; may be empty */
	int64_t lasted; /* ms, by the clock of the task that took part longest; -1: not known */
	/*
	 * Whether its saves show in the store at all: the program calls preempt_step, or its
	 * checkpoints are looked at (--checkpoints).
	 */
	bool measured;
	bool has_saved;	 /* a save is known: */
	uint64_t saved;	 /* the newest step that any task has saved */
	bool has_resume; /* the checkpoint it began from was looked for: */
	uint64_t resume; /* its step, 0: there was none, */
	uint64_t from;	 /* and a hash of its path (outcome_from); 0: none, or not known */
	bool refused;	 /* after it, it was decided not to run again: */
	char why[512];
};

/* What stands for the checkpoint of this path in `from`; 0 for "". */
uint64_t outcome_from(const char *path);

/* "crashed", "preempted", ... */
const char *outcome_word(enum outcome_cause cause);

/* What an agent that is through has found out, and the store does not show. */
struct outcome_finding {
	bool finished; /* it leaves with 0 */
	bool newer;    /* a complete checkpoint is newer than the one the attempt began from: */
	uint64_t step;
};

/*
 * What a view shows. One of an attempt that is not closed and not sealed is CAUSE_OPEN. Where the
 * checkpoints are looked at (view->resume_known), only they tell what was saved: finding, not what
 * the tasks have reported. finding NULL: no agent has looked.
 */
void outcome_of_view(
	const struct view *view, const struct outcome_finding *finding, struct outcome *outcome);

/* Into the value of CLOSED, and back; false: an older version closed it, ask the view. */
void outcome_write(const struct outcome *outcome, struct json_object *closed);
bool outcome_read(const struct json_object *closed, struct outcome *outcome);

#endif
