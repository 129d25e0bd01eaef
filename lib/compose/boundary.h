/* SPDX-License-Identifier: MIT */
/*
 * The agreement of one task, driven by small programs one stage at a time instead of by an agent:
 * what one program has done stands in the store and on the board, and the next goes on from there.
 * Everything happens in the calling thread.
 */
#ifndef COMPOSE_BOUNDARY_H
#define COMPOSE_BOUNDARY_H

#include "agent/task/board.h"
#include "notice/notice.h"
#include "proto/view.h"

/*
 * For a training process without a board that stands at boundary `at` (finished steps) and cannot
 * be there again before `next`. STATUS_OK: answer->save says whether to save here, and kind what
 * then; else run on. STATUS_BROKEN: the run has failed. STATUS_NO with answer->leave: the others
 * have declared this task dead after a claim; leave with that code.
 */
struct boundary_answer {
	bool save;
	enum agreement_kind kind;
	int leave; /* CODE_PREEMPTED, CODE_DECIDED; 0: none */
};
enum status boundary_ask(struct store *store, struct view *view, uint64_t task, uint64_t at,
	uint64_t next, const struct agreement_config *config, int64_t deadline,
	struct boundary_answer *answer, struct error *err);

/*
 * The same has saved at `at`. STATUS_OK: reported. STATUS_NO: no step is agreed on, or another one
 * is; the task was declared dead.
 */
enum status boundary_saved(
	struct store *store, struct view *view, uint64_t task, uint64_t at, struct error *err);

/*
 * After that: wait until the others have saved. STATUS_OK: the checkpoint is complete, run on.
 * STATUS_NO with *leave: it was the final save, leave with that code (CODE_SAVED, CODE_PREEMPTED,
 * CODE_DECIDED); without: a task did not save for a checkpoint on demand. STATUS_TIMEOUT.
 */
enum status boundary_wait_for_saves(struct store *store, struct view *view, int64_t save_timeout,
	int64_t deadline, int *leave, struct error *err);

#endif
