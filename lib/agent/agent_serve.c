/* SPDX-License-Identifier: MIT */
/* The agent beside a training that another program has started (preempt-ack --serve). */
#include <stdlib.h>

#include "agent/agent_inside.h"
#include "agent/served.h"
#include "base/clock.h"
#include "base/message.h"
#include "proto/remembered.h"

#define RECALL	5000 /* ms to ask the store what earlier attempts have measured */
#define GOODBYE 5000 /* ms to write that the task is dead */

/* If the store cannot be asked, the first save counts as fast. */
static void recall_saves(struct agent *agent)
{
	struct store *store;
	struct error unused;
	if (store_open(&store, agent->options->store, 0, clock_after(RECALL), &unused) != STATUS_OK)
		return;
	store_set_patience(store, RECALL);
	struct remembered known;
	if (remembered_read(store, agent->group.view.attempt.run, &known, &unused) == STATUS_OK)
		agent->group.view.agreement.longest_save = known.longest_save;
	store_close(store);
}

static void remember_saves(const struct agent *agent)
{
	int64_t longest = agent->tasks[0].agreement.measure.longest_save;
	struct store *store;
	struct error unused;
	if (longest <= agent->group.view.agreement.longest_save || agent->store_away ||
		store_open(&store, agent->options->store, 0, clock_after(RECALL), &unused) !=
			STATUS_OK)
		return;
	store_set_patience(store, RECALL);
	(void)remembered_add(store, agent->group.view.attempt.run, longest, NULL, &unused);
	store_close(store);
}

static enum status begin(struct agent *agent, const struct attempt *attempt, const char *board,
	pid_t pid, struct error *err)
{
	struct group *group = &agent->group;
	struct agreement_alone *alone = &group->alone;
	agent->tasks = calloc(1, sizeof(*agent->tasks));
	agent->commands = calloc(1, sizeof(*agent->commands));
	alone->view.peers = calloc(attempt->tasks, sizeof(*alone->view.peers));
	if (!agent->tasks || !agent->commands || !alone->view.peers)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	agent->task_count = agent->command_count = 1;
	agent->commands[0].foreign = true;
	group->reaper = &agent->reaper;
	alone->first = agent->options->identity->task;
	alone->count = 1;
	enum status status = board_open(&agent->tasks[0].board, board, pid, err);
	if (status == STATUS_OK)
		status = view_init(&group->view, attempt, err);
	if (status == STATUS_OK)
		status = store_thread_start(&group->store_thread, agent->options->store, err);
	if (status != STATUS_OK)
		return status;
	recall_saves(agent);
	agent_task_init(&agent->tasks[0], group, alone->first, &agent->commands[0], clock_now());
	/* Whoever asks (preempt-ack) is told as soon as it is agreed. */
	agent->tasks[0].config.acknowledges = agent->tasks[0].agreement.config.acknowledges = true;
	store_thread_follow(group->store_thread, &group->view);
	return STATUS_OK;
}

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
 * A later notice may have an earlier deadline. The same one is taken once: its file counts by the
 * wall clock, which may have been set since.
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
 * The process that stands for the task was killed: the others need not wait for its silence.
 * preempt-heartbeat says so, too; either may have been killed with it.
 */
static void declare_dead(struct agent *agent)
{
	struct write write;
	bool written = false;
	int64_t until = clock_after(agent->store_away ? 0 : GOODBYE);
	struct death death = {.task = agent->options->identity->task,
		.cause = DEATH_GONE,
		.since_utc = clock_utc()};
	write_build_deaths(&write, &agent->group.view, BY_NO_TASK, &death, 1);
	store_thread_write(agent->group.store_thread, &write);
	while (!written && clock_now() < until) {
		struct pollfd ready = {
			.fd = store_thread_descriptor(agent->group.store_thread), .events = POLLIN};
		(void)poll(&ready, 1, clock_poll_timeout(until));
		for (struct result *result;
			(result = store_thread_take(agent->group.store_thread));) {
			written |=
				result->kind == RESULT_WROTE && result->write.what == WRITE_KINDS;
			result_free(result);
		}
	}
}

/* The training may write to it until the heartbeat has killed it. */
static void remove_board(const char *board)
{
	int64_t until = clock_after(GOODBYE);
	while (!board_remove_joined(board) && clock_now() < until)
		clock_sleep_until(clock_after(100));
}

int agent_serve(const struct agent_options *options, const struct attempt *attempt,
	const char *board, pid_t pid, int served)
{
	struct agent agent = {.options = options,
		.group = {.options = options, .own_deadline = CLOCK_NEVER},
		.signals = -1,
		.served = served,
		.terminal = {.descriptor = -1},
		.boards = {.directory = -1, .watch = -1}};
	struct notice taken = {0};
	struct error err;
	int code = STATUS_OK;
	if (begin(&agent, attempt, board, pid, &err) != STATUS_OK) {
		code = message_fail(&err);
	} else {
		while (!is_over(&agent)) {
			look_for_notice(&agent, &taken);
			agent_advance(&agent);
		}
		if (served_is_gone(served) && !agent.group.view.agreement.closed)
			declare_dead(&agent);
		else if (!board_vanished(&agent.tasks[0].board)) {
			remember_saves(&agent);
			agent_say_goodbye(&agent, CODE_PREEMPTED);
		}
	}
	/* The board is the agent's to remove; no other process does where that is gone. */
	if (agent.task_count)
		board_release(&agent.tasks[0].board, false);
	if (served_is_gone(served))
		remove_board(board);
	agent_release(&agent);
	return code;
}
