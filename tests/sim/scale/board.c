/* SPDX-License-Identifier: MIT */
/*
 * In place of the files of agent/task/board.c: the struct task whose number + 1 is the "directory".
 */
#include "agent/task/board.h"

#include <string.h>

#include "scale.h"

static struct task *task_of(const struct board *board)
{
	return &scale_world.task[board->directory - 1];
}

static int64_t utc_of(int64_t microseconds)
{
	return clock_utc() - (kernel.now - microseconds) / MS;
}

enum status board_create(struct board *board, const char *parent, pid_t agent,
	const struct reaper *reaper, struct error *err)
{
	struct node *node = (struct node *)process_current();
	int task = (int)node->identity.task + (int)node->boards++;
	(void)parent, (void)reaper, (void)err;
	*board = (struct board){.directory = task + 1, .agent = agent, .path = strdup("board")};
	return STATUS_OK;
}

enum status board_tell(
	const struct board *board, const struct agreement_hold *hold, struct error *err)
{
	struct task *t = task_of(board);
	bool changed = !board_same_hold(hold, &t->hold);
	(void)err;
	t->hold = *hold;
	if (changed)
		kernel_at(kernel.now + random_in(&kernel.random, 0, 10 * MS), EVENT_HOLD,
			board->directory - 1, 0);
	return STATUS_OK;
}

enum status board_read_step(const struct board *board, struct board_step *step, struct error *err)
{
	const struct task *t = task_of(board);
	(void)err;
	*step = (struct board_step){0};
	if (t->started)
		*step = (struct board_step){true, t->step, t->step + 1, utc_of(t->step_at)};
	return STATUS_OK;
}

enum status board_read_saved(
	const struct board *board, uint64_t *step, int64_t *written, struct error *err)
{
	const struct task *t = task_of(board);
	(void)err;
	if (!t->has_saved)
		return STATUS_NO;
	*step = t->saved;
	*written = utc_of(t->saved_at);
	return STATUS_OK;
}

bool board_vanished(const struct board *board)
{
	(void)board;
	return false;
}
