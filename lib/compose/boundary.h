/* SPDX-License-Identifier: MIT */
/*
 * The agreement for a training process without a board, which asks at each of its boundaries
 * (preempt-ack --at). Each call is a process of its own: it continues from what the call before it
 * has written into the store.
 */
#ifndef COMPOSE_BOUNDARY_H
#define COMPOSE_BOUNDARY_H

#include "proto/view.h"

struct boundary {
	struct store *store;
	struct view *view; /* refreshed by each call */
	const struct agreement_config *config;
	uint64_t at;	  /* finished steps: the boundary at which the training stands */
	uint64_t next;	  /* the boundary after `at`; for boundary_ask only */
	int64_t deadline; /* of the call; CLOCK_NEVER: none */
};

/*
 * STATUS_OK: save here if answer->save, otherwise run on; answer->kind is that of the decision.
 * STATUS_BROKEN: the run has failed. STATUS_NO with answer->leave: after a claim the others have
 * declared this task dead, or the deadline has passed without a decision; leave with that code.
 */
struct boundary_answer {
	bool save;
	enum agreement_kind kind;
	int leave; /* CODE_SAVED, CODE_PREEMPTED, CODE_DECIDED; 0: do not leave */
};
enum status boundary_ask(
	const struct boundary *boundary, struct boundary_answer *answer, struct error *err);

/*
 * Report that the training has saved at `at`. STATUS_NO: no step is agreed on, or a later one, or
 * the task was declared dead. STATUS_OK also if a newer round was opened since that save was asked
 * for.
 */
enum status boundary_saved(const struct boundary *boundary, struct error *err);

/*
 * After boundary_saved: wait until the others have saved, but not longer than config->save_timeout
 * or until LEAVE_EARLY before the deadline of the claim. STATUS_OK: run on: the checkpoint is
 * complete, or a newer round was opened. STATUS_NO: leave with the code *leave (CODE_SAVED,
 * CODE_PREEMPTED, CODE_DECIDED); if it is 0, run on without a complete checkpoint. STATUS_TIMEOUT:
 * boundary->deadline has passed, and a task may still save.
 */
enum status boundary_wait_for_saves(const struct boundary *boundary, int *leave, struct error *err);

#endif
