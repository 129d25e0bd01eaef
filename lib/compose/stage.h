/* SPDX-License-Identifier: MIT */
/*
 * The agreement of one task, driven by small programs one stage at a time instead of by an agent:
 * what one program has done stands in the store and on the board, and the next goes on from there.
 * Everything happens in the calling thread.
 */
#ifndef COMPOSE_STAGE_H
#define COMPOSE_STAGE_H

#include "agent/task/board.h"
#include "notice/notice.h"
#include "proto/view.h"

struct stage {
	struct store *store;
	struct view view;
	struct board board;
	struct agreement_config config;
	struct agreement_alone alone;
	struct agreement agreement;
	struct notice notice;
	int64_t save_time;
	store_revision deadline_kept; /* of the key, as the board has it */
};

/* The attempt must be there (STATUS_NO otherwise). board: $PREEMPT_DIR; agent: pid in its hold. */
enum status stage_open(struct stage *stage, struct store *store, const struct attempt *attempt,
	const struct agreement_config *config, const char *board, pid_t agent, struct error *err);
void stage_release(struct stage *stage);

enum stage_goal {
	STAGE_AGREED, /* the board was told where to save, and that is acknowledged */
	STAGE_SAVED,  /* the save is done and reported */
	STAGE_ALL,    /* everybody is through; the board was told to leave */
};

/*
 * Go on until goal. STATUS_OK, also when an earlier call has reached it. STATUS_NO: there is
 * nothing to agree on (no claim, no round), the task was left out of it, or the board is gone.
 * STATUS_TIMEOUT. The code of a verdict (STATUS_SAVED, STATUS_PREEMPTED, STATUS_BROKEN,
 * STATUS_DECIDED): the training process was told to leave with it, or has to be ended: the error
 * says which. A store that cannot be asked is asked again; without it the task saves alone in time.
 * progress (may be NULL) is called whenever something has changed.
 */
enum status stage_run(struct stage *stage, enum stage_goal goal, int64_t deadline,
	void (*progress)(const struct stage *stage), struct error *err);

/* How many members of the newest decision have saved; of how many. */
void stage_count_saves(const struct view *view, uint64_t *saved, uint64_t *members);

/*
 * For a training process without a board that stands at boundary `at` (finished steps) and cannot
 * be there again before `next`. STATUS_SAVE (10): save here, *kind says what then. STATUS_OK: run
 * on. STATUS_BROKEN: the group fell apart. STATUS_PREEMPTED, STATUS_DECIDED: the others have given
 * this task up after a claim.
 */
enum status stage_ask_at(struct store *store, struct view *view, uint64_t task, uint64_t at,
	uint64_t next, const struct agreement_config *config, int64_t deadline,
	enum agreement_kind *kind, struct error *err);

/*
 * The same has saved at `at`; everybody: wait for the others. STATUS_OK: reported, and after
 * waiting: the checkpoint is complete, run on. STATUS_SAVED, STATUS_PREEMPTED, STATUS_DECIDED: the
 * final save was waited for, leave with that code. STATUS_NO: no step is agreed on, another one is,
 * or somebody did not save for a checkpoint on demand; STATUS_TIMEOUT.
 */
enum status stage_saved_at(struct store *store, struct view *view, uint64_t task, uint64_t at,
	const struct agreement_config *config, bool everybody, int64_t deadline, struct error *err);

#endif
