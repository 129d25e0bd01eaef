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
	CAUSE_LEFT,	 /* all tasks have left, and of some it is not known how they ended */
	CAUSE_KINDS,
};

struct outcome {
	uint64_t attempt;
	enum outcome_cause cause;
	int code;	/* of CAUSE_CRASHED: the command's, as a shell reports it */
	char text[512]; /* human-readable: "task 2 failed on n3 with 1: no memory"; may be empty */
	int64_t lasted; /* ms: longest time from a task's TASK to its SAVED or LEFT; -1: unknown */
	/* Whether the store shows saves: the program calls preempt_step, or has --checkpoints. */
	bool measured;
	bool has_saved;	 /* a save is known */
	uint64_t saved;	 /* the newest step that all that must save have saved */
	bool has_resume; /* the checkpoint that it resumed from is known */
	uint64_t resume; /* the step of that checkpoint; 0: there was none */
	uint64_t from;	 /* a hash of its path (outcome_from); 0: none, or not known */
	bool refused;	 /* NEXT or REFUSED says not to run again after it */
	char why[512];	 /* that decision's reason */
};

/* The hash of this path, for outcome.from; 0 for "". */
uint64_t outcome_from(const char *path);

/* "crashed", "preempted", ... */
const char *outcome_word(enum outcome_cause cause);

/* What only an agent whose tasks have all left knows: the store does not show it. */
struct outcome_finding {
	bool finished; /* the agent leaves with 0 */
	bool newer; /* a complete checkpoint is newer than the one that the attempt resumed from */
	uint64_t step;	  /* of that newer one */
	char where[4096]; /* the directory that it is in */
	char layout[32];
};

/*
 * Conclude the outcome from a view. An attempt that is neither closed nor sealed is CAUSE_OPEN,
 * unless all its tasks have completed. With --checkpoints (view->resume_known) what was saved is
 * taken from finding only, not from the reports of the tasks. finding NULL: no agent has looked.
 */
void outcome_of_view(
	const struct view *view, const struct outcome_finding *finding, struct outcome *outcome);

/* Write the outcome to the value of CLOSED; read it. False: it has no cause that can be parsed. */
void outcome_write(const struct outcome *outcome, struct json_object *closed);
bool outcome_read(const struct json_object *closed, struct outcome *outcome);

#endif
