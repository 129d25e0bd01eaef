/* SPDX-License-Identifier: MIT */
/*
 * Boards: in place of the files of agent/task/board.c, what the world knows of them (struct panel).
 */
#include "agent/task/board.h"

#include <string.h>

#include "../broken.h"
#include "sim.h"

/* In place of the descriptor: the task + 1; of a board that no task reads, GHOST. */
#define GHOST 1000

static struct panel *panel_of(const struct board *board)
{
	struct world *w = machine_world;
	return board->directory > 0 && board->directory <= w->schedule->tasks
		       ? &w->task[board->directory - 1].panel
		       : NULL;
}

/* What the clock said when it was so much ahead. */
static int64_t utc_of(int64_t microseconds, int64_t wall)
{
	return clock_utc() - process_current()->wall + wall - kernel.now / MS + microseconds / MS;
}

static bool is_lost(const struct board *board)
{
	const struct panel *panel = panel_of(board);
	return panel && panel->lost;
}

static enum status lost(struct error *err)
{
	return error_set(err, STATUS_NO, "the board is gone");
}

enum status board_create(struct board *board, const char *parent, pid_t agent,
	const struct reaper *reaper, struct error *err)
{
	(void)parent, (void)reaper, (void)err;
	struct node *node = machine_current();
	struct world *w = node->world;
	int task = node->agent * w->schedule->per_agent + (int)node->boards++;
	*board = (struct board){.directory = node->ghost ? GHOST : task + 1,
		.agent = agent,
		.path = strdup("board")};
	if (!node->ghost)
		w->task[task].agent_task =
			(const struct agent_task *)((char *)board -
						    offsetof(struct agent_task, board));
	return STATUS_OK;
}

enum status board_tell(
	const struct board *board, const struct agreement_hold *hold, struct error *err)
{
	static const struct agreement_hold leave = {.order = ORDER_LEAVE, .code = CODE_SAVED};
	if (broken == LEAVE_TOGETHER && hold->order == ORDER_EXIT)
		hold = &leave;
	static const char *const names[] = {"run", "wait", "save", "exit", "leave"};
	struct world *w = machine_world;
	struct panel *panel = panel_of(board);
	int task = board->directory - 1;
	if (!panel)
		return STATUS_OK;
	if (panel->lost)
		return lost(err);
	TRACE(w, task, "hold = %s %llu", names[hold->order],
		(unsigned long long)(hold->order == ORDER_LEAVE ? (uint64_t)hold->code
								: hold->step));
	bool changed = !board_same_hold(hold, &panel->hold);
	panel->hold = *hold;
	panel->order_from = w->task[task].training.boundary;
	check_told(w, task, hold);
	if (!changed)
		return STATUS_OK;
	int64_t react = random_in(&kernel.random, 0, w->schedule->trainee[task].react * MS);
	world_at(w, kernel.now + react, EVENT_HOLD, task, 0);
	if (hold->order == ORDER_WAIT)
		world_trigger(w, AT_WAIT, task);
	else if (hold->order == ORDER_SAVE || hold->order == ORDER_EXIT)
		world_trigger(w, AT_ORDER, task);
	else if (hold->order == ORDER_LEAVE)
		world_trigger(w, AT_LEAVE, task);
	return STATUS_OK;
}

enum status board_read_step(const struct board *board, struct board_step *step, struct error *err)
{
	const struct panel *panel = panel_of(board);
	*step = (struct board_step){0};
	if (!panel)
		return STATUS_OK;
	if (panel->lost)
		return lost(err);
	if (panel->started)
		*step = (struct board_step){
			true, panel->step, panel->next, utc_of(panel->step_at, panel->step_wall)};
	return STATUS_OK;
}

enum status board_read_saved(
	const struct board *board, uint64_t *step, int64_t *written, struct error *err)
{
	const struct panel *panel = panel_of(board);
	if (broken == SAVED_MEANS_SAVED && panel && panel->hold.step) {
		*step = panel->hold.step;
		*written = clock_utc();
		return STATUS_OK;
	}
	if (!panel || panel->lost || !panel->has_saved)
		return panel && panel->lost ? lost(err) : STATUS_NO;
	*step = panel->saved;
	*written = utc_of(panel->saved_at, panel->saved_wall);
	return STATUS_OK;
}

bool board_vanished(const struct board *board)
{
	return is_lost(board);
}
