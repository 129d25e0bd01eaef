/* SPDX-License-Identifier: MIT */
#include "agent/ack.h"

#include <errno.h>
#include <signal.h>

#include "agent/loop/events.h"
#include "agent/loop/heart.h"
#include "agent/loop/loop.h"
#include "agent/served.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/process/descriptor.h"
#include "base/xalloc.h"
#include "proto/remembered.h"

#define RECALL	5000 /* ms to read from the store how long saves take, or to write it there */
#define GOODBYE 5000 /* ms to write that the task is dead */

/* Read how long saves took before. If the store does not answer, longest_save stays 0. */
static void recall_saves(struct agent *agent)
{
	struct store *store;
	struct error unused;
	struct remembered known;
	struct view *view = &agent->group.view;
	if (store_open_patient(&store, agent->options->store, 0, RECALL, &unused) != STATUS_OK)
		return;
	if (remembered_read(store, view->attempt.run, &known, &unused) == STATUS_OK)
		view->agreement.longest_save = known.longest_save;
	store_close(store);
}

static void remember_saves(const struct agent *agent)
{
	int64_t longest = agent->tasks[0].agreement.measure.longest_save;
	const struct view *view = &agent->group.view;
	struct store *store;
	struct error unused;
	if (longest <= view->agreement.longest_save || agent->store_away ||
		store_open_patient(&store, agent->options->store, 0, RECALL, &unused) != STATUS_OK)
		return;
	(void)remembered_add(store, view->attempt.run, longest, &unused);
	store_close(store);
}

static struct agent blank(const struct ack_request *request, int served, bool one_stage)
{
	struct agent agent = agent_blank(request->options);
	agent.group.one_stage = one_stage;
	agent.joined = true;
	agent.served = served;
	return agent;
}

/* Open the board, and make an empty view of the attempt. */
static enum status open_board(
	struct agent *agent, const struct ack_request *request, struct error *err)
{
	struct group *group = &agent->group;
	struct agreement_alone *alone = &group->alone;
	agent->tasks = xcalloc(1, sizeof(*agent->tasks));
	agent->commands = xcalloc(1, sizeof(*agent->commands));
	alone->view.peers = xcalloc(request->attempt->tasks, sizeof(*alone->view.peers));
	agent->task_count = agent->command_count = 1;
	agent->commands[0].foreign = true;
	group->reaper = &agent->reaper;
	alone->first = request->options->identity->task;
	alone->count = 1;
	view_init(&group->view, request->attempt);
	return board_open(&agent->tasks[0].board, request->board, request->agent, err);
}

/* Start the store thread, which takes store over, and follow what changes after the view. */
static enum status follow(struct agent *agent, struct store *store, struct error *err)
{
	struct group *group = &agent->group;
	struct agent_task *task = &agent->tasks[0];
	enum status status =
		store_thread_start(&group->store_thread, agent->options->store, store, err);
	if (status == STATUS_OK)
		status = loop_open(&agent->loop, err);
	if (status != STATUS_OK)
		return status;
	loop_watch(&agent->loop, store_thread_descriptor(group->store_thread));
	loop_watch(&agent->loop, agent->served);
	agent_task_init(task, group, group->alone.first, &agent->commands[0], clock_now());
	/* The calling program needs the acknowledgement as soon as the step is agreed on. */
	task->config.acknowledges = task->agreement.config.acknowledges = true;
	store_thread_follow(group->store_thread, &group->view);
	return STATUS_OK;
}

/* Free the agent, but leave the board: the board's own agent removes it. */
static void release(struct agent *agent)
{
	if (agent->task_count)
		board_release(&agent->tasks[0].board, false);
	agent_end_attempt(agent);
	(void)agent_close(agent);
}

/* ---- One stage ---- */

/* Read the store, and the deadline that an earlier program may have noted on this board. */
static enum status take_up(struct agent *agent, struct store *store, struct error *err)
{
	struct view *view = &agent->group.view;
	struct remembered known;
	enum status status = view_refresh(view, store, err);
	if (status == STATUS_OK)
		status = remembered_read(store, view->attempt.run, &known, err);
	if (status != STATUS_OK)
		return status;
	view->agreement.longest_save = known.longest_save;
	agent_task_keep_deadline(&agent->tasks[0], view);
	return STATUS_OK;
}

static enum status take_up_order(struct agent_task *task, struct error *err)
{
	const struct agreement_view *view = task->agreement.view;
	struct agreement_hold hold;
	int64_t written;
	enum status status = board_told(&task->board, &hold, &written, err);
	bool saves = hold.order == ORDER_SAVE || hold.order == ORDER_EXIT;
	if (status != STATUS_OK)
		return status;
	if (saves)
		task->hold_written = written;
	if ((saves && view->decided && hold.step == view->decision.step) ||
		hold.order == ORDER_WAIT || hold.order == ORDER_LEAVE)
		agreement_told(&task->agreement, &hold, clock_now());
	return STATUS_OK;
}

static bool reached(const struct agent *agent, enum ack_goal goal)
{
	const struct agreement *a = &agent->tasks[0].agreement;
	const struct agreement_view *view = &agent->group.view.agreement;
	if (a->solo) /* a task that saves by itself reaches no agreement */
		return goal == ACK_ALL && a->told.order == ORDER_LEAVE;
	bool told = a->told.order == ORDER_SAVE || a->told.order == ORDER_EXIT;
	/* The save in the newest round was reported, by us or by an earlier call. */
	bool reported = view->decided && view->peers[a->config.task].saved;
	switch (goal) {
	case ACK_AGREED: return (told && a->done[WRITE_ACK] == a->round) || reported;
	case ACK_SAVED: return agreement_saved_reported(a) || reported;
	case ACK_ALL:
		/* After a claim, ORDER_RUN is not the end: the final round is still to come. */
		return a->told.order == ORDER_LEAVE ||
		       (a->told.order == ORDER_RUN && !view->claimed &&
			       (agreement_saved_reported(a) || reported));
	}
	return true;
}

/* Whether the view may lack what this task has written, or is writing. */
static bool is_writing(const struct agreement *a)
{
	bool any = a->look_first || a->read_first;
	for (enum agreement_write what = 0; what < WRITE_KINDS; what++)
		any |= a->pending[what];
	return any;
}

/* Return an error if the goal can no longer be reached. *leave: the code to leave with, if any. */
static enum status give_up(const struct agent *agent, int *leave, struct error *err)
{
	const struct agent_task *task = &agent->tasks[0];
	const struct agreement *a = &task->agreement;
	const struct view *view = &agent->group.view;
	const char *run = view->attempt.run;
	if (a->told.order == ORDER_LEAVE) {
		*leave = a->told.code;
		return error_set(err, STATUS_NO,
			"run %s: the training process was told to leave with %d", run,
			a->told.code);
	}
	if (a->lost)
		return error_set(err, STATUS_NO, "the board %s is gone", task->board.path);
	if (task->command->ending && a->code == CODE_BROKEN)
		return error_set(err, STATUS_BROKEN, "run %s: attempt %llu is broken: %s", run,
			(unsigned long long)view->attempt.number, view_why(view));
	if (task->command->ending) {
		*leave = a->code;
		return error_set(err, STATUS_NO,
			"run %s: %s; end the training process and leave with %d", run,
			view->agreement.decided && view->agreement.decision.kind == KIND_NONE
				? "no task has begun to train, so there is nothing to save"
				: "this task did not save in time",
			a->code);
	}
	if (task->finished) {
		*leave = task->code;
		return error_set(err, STATUS_NO, "run %s: this task has left it", run);
	}
	if (is_writing(a))
		return STATUS_OK;
	if (view->agreement.round == 0)
		return error_set(err, STATUS_NO,
			"run %s: nothing is claimed, and no checkpoint is asked for", run);
	if (a->told.order == ORDER_RUN && view->agreement.decided && !view->agreement.claimed)
		return error_set(err, STATUS_NO,
			"run %s: this task has no part in the checkpoint of step %llu", run,
			(unsigned long long)view->agreement.decision.step);
	return STATUS_OK;
}

/* Return an error if the board or its agent is gone, or the store is damaged or refuses us. */
static enum status check_surroundings(const struct agent *agent, int *leave, struct error *err)
{
	const struct board *board = &agent->tasks[0].board;
	const struct error *refused = &agent->store_error;
	if (board_vanished(board))
		return error_set(err, STATUS_NO, "the board %s is gone", board->path);
	if (kill(board->agent, 0) < 0 && errno == ESRCH) {
		*leave = CODE_PREEMPTED;
		return error_set(err, STATUS_NO, "process %d, which owns the board, is gone",
			(int)board->agent);
	}
	if (agent->store_away &&
		(refused->status == STATUS_DAMAGED || refused->status == STATUS_PERMISSION))
		return error_set(err, refused->status, "%s", refused->text);
	return STATUS_OK;
}

static enum status check_time(const struct agent *agent, int64_t deadline, struct error *err)
{
	if (clock_now() < deadline)
		return STATUS_OK;
	if (agent->store_away)
		return error_set(err, agent->store_error.status, "%s", agent->store_error.text);
	return error_set(
		err, STATUS_TIMEOUT, "run %s: no agreement in time", agent->group.view.attempt.run);
}

static enum status run_until(
	struct agent *agent, const struct ack_request *request, int *leave, struct error *err)
{
	const struct agent_task *task = &agent->tasks[0];
	/* If an earlier call has reached the goal, do not hold the training process once more. */
	while (!reached(agent, request->goal)) {
		int64_t wake = clock_now();
		/* A training that was told to leave by an earlier call gets no other order. */
		if (task->agreement.told.order != ORDER_LEAVE)
			wake = agent_act(agent);
		if (request->progress)
			request->progress(&agent->group.view);
		if (reached(agent, request->goal))
			break;
		enum status status = give_up(agent, leave, err);
		if (status == STATUS_OK)
			status = check_surroundings(agent, leave, err);
		if (status == STATUS_OK)
			status = check_time(agent, request->deadline, err);
		if (status != STATUS_OK)
			return status;
		agent_await(agent, clock_earlier(wake, request->deadline));
	}
	return STATUS_OK;
}

enum status ack_run(const struct ack_request *request, struct store *store,
	struct ack_answer *answer, struct error *err)
{
	struct agent agent = blank(request, -1, true);
	*answer = (struct ack_answer){0};
	enum status status = open_board(&agent, request, err);
	if (status == STATUS_OK)
		status = take_up(&agent, store, err);
	if (status == STATUS_OK)
		status = follow(&agent, store, err);
	if (agent.group.store_thread == NULL)
		store_close(store);
	if (status == STATUS_OK)
		status = take_up_order(&agent.tasks[0], err);
	if (status == STATUS_OK) {
		status = run_until(&agent, request, &answer->leave, err);
		answer->decision = agent.group.view.agreement.decision;
		answer->told = agent.tasks[0].agreement.told;
		answer->deadline = agent.group.view.agreement.deadline;
		answer->reported =
			agent.group.view.agreement.peers[agent.group.alone.first].reported;
	}
	if (status == STATUS_OK)
		remember_saves(&agent);
	release(&agent);
	return status;
}

/* ---- As long as the training lasts ---- */

static bool is_over(const struct agent *agent)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	return served_is_gone(agent->served) || view->closed ||
	       view->peers[agent->options->identity->task].left != REASON_NONE ||
	       board_vanished(&agent->tasks[0].board);
}

static int64_t time_left(const struct notice *notice)
{
	return notice->deadline == CLOCK_NEVER ? -1 : notice->deadline - notice->received;
}

/*
 * Take a notice from the board: a later one may have an earlier deadline. Each is taken once,
 * because its deadline would change if it was read again after the wall clock was set.
 */
static void look_for_notice(struct agent *agent, struct notice *taken)
{
	struct notice notice;
	struct error unused;
	if (board_read_notice(agent->tasks[0].board.path, &notice, &unused) != STATUS_OK ||
		(notice.received_utc == taken->received_utc &&
			time_left(&notice) == time_left(taken)))
		return;
	*taken = notice;
	agent_take_notice(agent, &notice);
}

/*
 * The process that stands for the task was killed: declare the task dead, so that the others need
 * not wait until it counts as silent. preempt-heartbeat does the same, unless it was killed, too.
 */
static void declare_dead(struct agent *agent)
{
	int64_t until = clock_after(agent->store_away ? 0 : GOODBYE);
	struct death death = {.task = agent->options->identity->task,
		.cause = DEATH_GONE,
		.since_utc = clock_utc()};
	agent_declare(&agent->group, BY_NO_TASK, &death, 1);
	while (agent->group.deaths_asked && clock_now() < until)
		agent_await(agent, until);
}

int ack_serve(const struct ack_request *request, int served)
{
	struct agent agent = blank(request, served, false);
	struct notice taken = {0};
	struct error err;
	int code = STATUS_OK;
	enum status status = open_board(&agent, request, &err);
	if (status == STATUS_OK) {
		recall_saves(&agent);
		status = follow(&agent, NULL, &err);
	}
	if (status != STATUS_OK) {
		code = message_fail(&err);
	} else {
		while (!is_over(&agent)) {
			look_for_notice(&agent, &taken);
			agent_advance(&agent);
		}
		loop_forget(&agent.loop, served); /* seen */
		if (served_is_gone(served) && !agent.group.view.agreement.closed)
			declare_dead(&agent);
		else if (!board_vanished(&agent.tasks[0].board)) {
			remember_saves(&agent);
			agent_say_goodbye(&agent, CODE_PREEMPTED);
		}
	}
	release(&agent);
	/* The served process is the board's agent: after its end no other removes the board. */
	if (served_is_gone(served))
		board_remove_joined(request->board);
	return code;
}
