/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/environment.h"
#include "agent/loop/loop.h"
#include "agent/loop/say.h"
#include "agent/loop/start.h"
#include "agent/loop/terminal.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/process/process.h"
#include "base/xalloc.h"

/* ms to wait for the store thread after a join was cancelled */
#define CANCEL_LEAST 500
#define CANCEL_MOST  60000
#define LOOK_EVERY   1000 /* ms between looks whether the store answers */

void agent_hold_signals(const char *const *sources, size_t count)
{
	sigset_t set = source_signal_set(sources, count);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void do_nothing(int number)
{
	(void)number;
}

enum status agent_open_signals(struct agent *agent, struct error *err)
{
	/* INT, HUP and QUIT are passed on. The last two are taken only if there is a terminal. */
	static const int numbers[] = {SIGCHLD, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT};
	size_t count = sizeof(numbers) / sizeof(numbers[0]);
	terminal_open(&agent->terminal);
	/* If the reader of our stderr ends, we go on. The command does not inherit the handler. */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = do_nothing}, NULL);
	enum status status = loop_open(&agent->loop, err);
	if (status != STATUS_OK)
		return status;
	return loop_open_signals(
		&agent->loop, numbers, agent->terminal.descriptor < 0 ? count - 2 : count, err);
}

enum status agent_watch_sources(
	const struct agent_options *options, struct source_set *watch, struct error *err)
{
	struct source_options how = {.grace = options->grace, .since = options->began};
	enum status status = STATUS_OK;
	for (size_t i = 0; i < options->source_count && status == STATUS_OK; i++) {
		struct source *source;
		status = source_open(&source, options->sources[i], &how, err);
		if (status != STATUS_OK && i + options->sources_found >= options->source_count) {
			message_error(
				"warning: no notices from %s: %s", options->sources[i], err->text);
			status = STATUS_OK;
		} else if (status == STATUS_OK)
			status = source_set_add(watch, source, err);
	}
	return status;
}

static enum status make_boards(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	enum status status = STATUS_OK;
	pid_t self = getpid();
	if (options->ranks) {
		status = board_create(
			&agent->boards, options->board_parent, self, &agent->reaper, err);
		if (status != STATUS_OK)
			return status;
	}
	for (size_t i = 0; i < agent->task_count && status == STATUS_OK; i++) {
		status = options->ranks ? board_create_rank(&agent->tasks[i].board,
						  agent->boards.path, i, self, err)
					: board_create(&agent->tasks[i].board,
						  options->board_parent, self, &agent->reaper, err);
	}
	return status;
}

static enum status start_command(struct agent *agent, size_t index, struct error *err)
{
	const struct agent_options *options = agent->options;
	struct command *command = &agent->commands[index];
	struct agent_task *task = &agent->tasks[index];
	struct command_environment what = {.identity = options->identity,
		.attempt = &agent->group.view.attempt,
		.store = options->store,
		.mark = agent->reaper.mark,
		.board = options->ranks ? agent->boards.path : task->board.path,
		.task = task->number,
		.local = index,
		.ranks = options->ranks,
		.spread = agent->command_count > 1 || options->identity->count > 1,
		.resume = options->find_checkpoint ? agent->group.view.resume : NULL,
		.sources = options->sources,
		.source_count = options->source_count};
	struct subprocess_options start = {.argv = options->command,
		.terminal = agent_terminal_for(agent),
		.standard[2] = agent->relay ? stderr_relay_input(agent->relay, index) : 0,
		.ignored = &options->shield,
		.reaper = &agent->reaper};
	char **environment = environment_build(&what);
	start.environment = environment;
	enum status status = subprocess_start(&command->process, &start, err);
	environment_free(environment);
	if (agent->relay)
		stderr_relay_started(agent->relay, index);
	if (status != STATUS_OK)
		terminal_take_back(&agent->terminal, 0);
	return status;
}

enum status agent_start(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	enum status status = make_boards(agent, err);
	if (status == STATUS_OK && !isatty(STDERR_FILENO))
		status = stderr_relay_start(&agent->relay, agent->command_count, err);
	int64_t now = clock_now();
	struct agreement_alone *alone = &agent->group.alone;
	alone->first = options->identity->task;
	alone->count = agent->task_count;
	alone->view.peers = xcalloc(options->identity->tasks, sizeof(*alone->view.peers));
	for (size_t i = 0; i < agent->task_count && status == STATUS_OK; i++) {
		agent_task_init(&agent->tasks[i], &agent->group, options->identity->task + i,
			&agent->commands[options->ranks ? 0 : i], now);
		if (agent->group.noticed)
			agreement_noticed(&agent->tasks[i].agreement, agent->group.own_deadline);
	}
	for (size_t i = 0; i < agent->command_count && status == STATUS_OK; i++)
		status = start_command(agent, i, err);
	return status;
}

/*
 * For how long to wait for the store thread after a join was cancelled, in ms: for half of the time
 * that is left, so that this program leaves before its machine goes away.
 */
static int64_t cancel_patience(const struct group *group)
{
	int64_t half = (group->own_deadline - clock_now()) / 2;
	return half < CANCEL_LEAST ? CANCEL_LEAST : half < CANCEL_MOST ? half : CANCEL_MOST;
}

enum status agent_join(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	struct group *group = &agent->group;
	struct attempt_entry entry = {.run = options->identity->run,
		.number = agent->asked,
		.tasks = options->identity->tasks,
		.first = options->identity->task,
		.count = options->identity->count,
		.launch = options->identity->launch,
		.beatless = !group->pulse,
		.deadline = clock_after(options->join_timeout)};
	enum status status = process_identify(0, &entry.agent, err);
	if (status != STATUS_OK)
		return status;
	store_thread_join(group->store_thread, &entry, options, group->pulse);
	for (int64_t give_up = CLOCK_NEVER;;) {
		agent_wait_for_events(agent, clock_earlier(give_up, clock_after(LOOK_EVERY)));
		agent_say_silence(agent, clock_now());
		if (group->noticed || agent->passed_on) {
			store_thread_cancel(group->store_thread);
			give_up = clock_earlier(give_up, clock_after(cancel_patience(group)));
		}
		struct result *result = store_thread_take(group->store_thread);
		if (!result && clock_now() < give_up)
			continue;
		if (!result) {
			agent->gave_up_joining = true;
			message_error(
				"warning: the store or the search for a checkpoint does not "
				"answer: this program leaves without telling the other tasks");
			return error_set(err, STATUS_NO, "interrupted before the start");
		}
		status = result->status;
		*err = result->error;
		group->view = *result->view;
		*result->view = (struct view){0};
		group->view.agreement.longest_save = result->longest_save;
		result_free(result);
		/* The signal may have come after the last look at the cancellation. */
		return status == STATUS_OK && agent->passed_on
			       ? error_set(err, STATUS_NO, "interrupted before the start")
			       : status;
	}
}

static void write_unstarted(struct agent *agent, enum agreement_write what, uint64_t task,
	enum agreement_reason reason, const struct write_details *details)
{
	struct agreement_plan plan = {.reason = reason};
	struct write write;
	plan.write[what] = 1;
	write_build(&write, &agent->group.view, what, task, &plan, details);
	store_thread_write(agent->group.store_thread, &write);
	agent->unstarted_writes++;
}

void agent_leave_unstarted(
	struct agent *agent, enum agreement_reason reason, int code, const char *why)
{
	struct group *group = &agent->group;
	const struct identity *identity = agent->options->identity;
	struct write_details details = {.notice = &group->notice,
		.deadline = group->own_deadline,
		.code = code,
		.line = why};
	if (group->view.attempt.number == 0)
		return; /* no attempt was joined */
	agent->unstarted = true;
	if (!*group->view.seal && group->noticed)
		write_unstarted(agent, WRITE_CLAIM, identity->task, reason, &details);
	else if (!*group->view.seal && reason == REASON_FAILED)
		write_unstarted(agent, WRITE_ERROR, identity->task, reason, &details);
	for (uint64_t i = 0; i < identity->count; i++)
		write_unstarted(agent, WRITE_LEFT, identity->task + i, reason, &details);
	agent_say_goodbye(agent, code);
}

int agent_not_joined(struct agent *agent, enum status status, const struct error *err)
{
	int code = status;
	enum announce_by by = agent_speaks(agent);
	enum agreement_reason reason = status == STATUS_BROKEN ? REASON_PEER : REASON_FAILED;
	const char *why = err->text;
	if (agent->group.noticed ||
		(status == STATUS_NO && attempt_is_preempted(&agent->group.view))) {
		code = agent->options->exit_code;
		reason = REASON_PREEMPTED;
		if (agent->group.noticed && by == ANNOUNCE_OTHERS)
			by = ANNOUNCE_OWN;
		if (agent->group.noticed)
			agent_say_notice(agent, by);
		announce(agent->options->on_event, ANNOUNCE_END, by, NULL,
			"stopped before the start: nothing to save, run me again");
	} else if (agent->passed_on) {
		code = 128 + agent->passed_on;
		why = "interrupted before the start";
	} else {
		/* The reason for a seal concerns all tasks; only this agent knows other errors. */
		announce(agent->options->on_event, ANNOUNCE_BROKEN,
			*agent->group.view.seal ? by : ANNOUNCE_OWN, NULL, "%s", err->text);
	}
	agent->said_broken = true;
	agent_leave_unstarted(agent, reason, code, why);
	return code;
}
