/* SPDX-License-Identifier: MIT */
/*
 * The agreement of one task, driven by small programs one stage at a time instead of by an agent:
 * what one program has done stands in the store and on the board, and the next goes on from there.
 * Everything happens in the calling thread.
 */
#ifndef GROUP_STAGE_H
#define GROUP_STAGE_H

#include "group/board.h"
#include "group/view.h"
#include "notice/notice.h"

struct stage {
	struct store *store;
	struct view view;
	struct board board;
	struct agreement_config config;
	struct agreement agreement;
	struct notice notice;
	int64_t save_time;
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
 * Go on until goal. STATUS_OK; STATUS_NO: there is nothing to agree on (no claim, no round), or the
 * task was left out of it; STATUS_BROKEN; STATUS_TIMEOUT. progress (may be NULL) is called whenever
 * something has changed.
 */
enum status stage_run(struct stage *stage, enum stage_goal goal, int64_t deadline,
	void (*progress)(const struct stage *stage), struct error *err);

/* How many members of the newest decision have saved; of how many. */
void stage_count_saves(const struct view *view, uint64_t *saved, uint64_t *members);

/*
 * For a training process without a board that stands at boundary `at` (finished steps) and cannot
 * be there again before `next`. STATUS_SAVE (10): save here, *kind says what then. STATUS_OK: run
 * on.
 */
enum status stage_ask_at(struct store *store, struct view *view, uint64_t task, uint64_t at,
	uint64_t next, const struct agreement_config *config, int64_t deadline,
	enum agreement_kind *kind, struct error *err);

#endif
