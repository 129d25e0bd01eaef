/* SPDX-License-Identifier: MIT */
/*
 * How an attempt ended, as the budgets (budget.h) count it: concluded from the keys of the attempt,
 * and kept in its key CLOSED, so that the history of a run is one short key for each attempt.
 */
#ifndef RUN_OUTCOME_H
#define RUN_OUTCOME_H

#include "base/json.h"
#include "proto/view.h"

enum outcome_cause {
	CAUSE_OPEN,	 /* it has not ended, as far as the store shows */
	CAUSE_COMPLETED, /* all tasks have finished */
	CAUSE_STOPPED,	 /* by preempt-claim --then stop */
	CAUSE_PREEMPTED, /* with its checkpoint, or before there was anything to save */
	CAUSE_UNSAVED,	 /* preempted, and no new complete checkpoint */
	CAUSE_CRASHED,	 /* a command failed by itself */
	CAUSE_HUNG,	 /* a task ran, but made no progress */
	CAUSE_LOST,	 /* a machine or an agent died, or a task was started again */
	CAUSE_UNJOINED,	 /* not all tasks joined in time */
	CAUSE_KINDS,
};

struct outcome {
	uint64_t attempt;
	enum outcome_cause cause;
	int code;	/* of CAUSE_CRASHED: the command's, as a shell says it */
	char text[512]; /* human-readable: "task 2 failed on n3 with 1: no memory"; may be empty */
	int64_t lasted; /* ms, by the clock of the task that took part longest; -1: not known */
	/*
	 * Whether saves are known at all: the program calls preempt_step, or --checkpoints names
	 * its checkpoints.
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

/* The hash of this path for `from`; 0 for "". */
uint64_t outcome_from(const char *path);

/* "crashed", "preempted", ... */
const char *outcome_word(enum outcome_cause cause);

/* What an agent whose tasks have all left knows, and the store does not show. */
struct outcome_finding {
	bool finished; /* it leaves with 0 */
	bool newer;    /* a complete checkpoint is newer than the one the attempt began from: */
	uint64_t step;
};

/*
 * Conclude from a view. An attempt that is neither closed nor sealed is CAUSE_OPEN. With
 * --checkpoints (view->resume_known) what was saved is taken from finding only, not from the
 * reports of the tasks. finding NULL: no agent has looked.
 */
void outcome_of_view(
	const struct view *view, const struct outcome_finding *finding, struct outcome *outcome);

/* Into the value of CLOSED, and back. False: it has no cause that can be parsed; use the view. */
void outcome_write(const struct outcome *outcome, struct json_object *closed);
bool outcome_read(const struct json_object *closed, struct outcome *outcome);

#endif
