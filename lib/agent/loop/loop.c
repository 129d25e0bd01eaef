/* SPDX-License-Identifier: MIT */
/* The loop of the agent, and what the agent does before and after it. */
#include "agent/agent.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/loop/events.h"
#include "agent/loop/heart.h"
#include "agent/loop/loop.h"
#include "agent/loop/rehearse.h"
#include "agent/loop/say.h"
#include "agent/loop/start.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "base/xalloc.h"

#define SAMPLE_EVERY 1000  /* ms between looks at how far the tasks are */
#define SAFETY_LOOK  15000 /* ms after which the news is read even if there seems to be none */
#define GOODBYE	     10000 /* ms for the last writes and for closing the attempt */

void agent_wait_for_events(struct agent *agent, int64_t wake)
{
	if (agent->group.store_thread)
		store_thread_begin(agent->group.store_thread);
	source_set_watch(&agent->watch, &agent->loop);
	loop_wake_at(&agent->loop, wake);
	loop_wait(&agent->loop);
	int64_t now = clock_now();
	agent_check_sources(agent);
	agent_take_signals(agent, now);
}

void agent_await(struct agent *agent, int64_t wake)
{
	agent_wait_for_events(agent, wake);
	for (struct result *result; (result = store_thread_take(agent->group.store_thread));) {
		agent_take_result(agent, result);
		result_free(result);
	}
}

bool agent_is_through(const struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++)
		if (!agent->tasks[i].finished)
			return false;
	return true;
}

static void count_lost(struct agent *agent, int64_t now)
{
	const struct agent_task *first = &agent->tasks[0];
	const struct agreement *a = &first->agreement;
	bool trains = a->told.order == ORDER_RUN && !a->ended && !first->command->end_not_before;
	bool preempted = agent->group.noticed || agent->group.view.agreement.claimed;
	if (agent->lost_since)
		agent->lost += now - agent->lost_since;
	agent->lost_since = preempted && !trains ? now : 0;
}

int64_t agent_act(struct agent *agent)
{
	int64_t now = clock_now();
	int64_t wake = CLOCK_NEVER;
	struct store_wants wants = {.look = CLOCK_NEVER, .count = CLOCK_NEVER, .read = CLOCK_NEVER};
	if (now >= agent->sample_at) {
		for (size_t i = 0; i < agent->task_count; i++)
			agent_task_sample(&agent->tasks[i], now);
		agent_check_progress(agent, now);
		agent_keep_reaper(agent);
		agent_say_waiting(agent, now);
		agent_say_silence(agent, now);
		agent->sample_at = now + SAMPLE_EVERY;
	}
	agent_check_gone(agent, now);
	agent_rehearse(agent, now, &wake);
	for (size_t i = 0; i < agent->command_count; i++)
		signal_only_tell(&agent->commands[i], &agent->group, now);
	if (agent->options->on_event)
		on_event_advance(agent->options->on_event, now, &wake);
	agent_tell_ends(agent, now, &wake);
	for (size_t i = 0; i < agent->task_count; i++)
		agent_task_advance(&agent->tasks[i], &agent->group, now, &wake, &wants);
	count_lost(agent, now);
	agent_say_saves(agent);
	if (agent_is_through(agent))
		return now;
	/* preempt-ack --serve did not start the command: only the store shows it that its task has
	 * left. */
	bool departed = agent->served >= 0 && agent->group.view.agreement.departed;
	if (agent->served >= 0)
		wants.count = 0;
	if (agent->group.deaths_unseen || departed)
		wants.read = now;
	wants.awaits = wants.look != CLOCK_NEVER || wants.read != CLOCK_NEVER;
	wants.look = clock_earlier(wants.look, agent->group.looked_at + SAFETY_LOOK);
	view_request_counts(&agent->group.view, &wants.counts);
	store_thread_want(agent->group.store_thread, &wants);
	return agent->sample_at < wake ? agent->sample_at : wake;
}

void agent_advance(struct agent *agent)
{
	int64_t wake = agent_act(agent);
	if (agent_is_through(agent))
		return;
	agent_await(agent, wake);
}

void agent_say_goodbye(struct agent *agent, int code)
{
	int64_t until = clock_after(agent->store_away ? 0 : GOODBYE);
	const struct view *view = &agent->group.view;
	while (agent->unstarted_writes && clock_now() < until)
		agent_await(agent, until);
	/* The view of an agent that did not start may be old: rely on it only if the attempt is
	 * sealed and all writes of this agent were made. */
	bool certain = !agent->unstarted ||
		       (*view->seal && !agent->unstarted_writes && !agent->unstarted_unsure);
	if (certain && !view_may_be_through(view))
		return;
	store_thread_close(agent->group.store_thread, &agent->group.view.attempt, agent->options,
		code == STATUS_OK);
	/* If the store is slow now, another task closes the attempt. */
	until = clock_earlier(until, agent->group.own_deadline);
	while (!agent->goodbye_done && clock_now() < until)
		agent_await(agent, until);
}

/* A checkpoint may have become complete after a task here had left without one. */
static void choose_codes(struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++) {
		struct agent_task *task = &agent->tasks[i];
		if (task->code == CODE_PREEMPTED && task->agreement.code == CODE_PREEMPTED &&
			agreement_choose_code(&task->agreement) == CODE_SAVED) {
			task->code = CODE_SAVED;
			task->has_complete = task->agreement.has_complete;
			task->complete_step = task->agreement.complete_step;
		}
	}
}

/* The most severe code of the tasks: own failure, 44, 43, 93, 42 (as --exit-code), 0. */
static int combined_code(const struct agent *agent)
{
	enum { KINDS = 5 };
	static const int weight[KINDS] = {
		STATUS_OK, CODE_SAVED, CODE_DECIDED, CODE_PREEMPTED, CODE_BROKEN};
	size_t heaviest = 0;
	for (size_t i = 0; i < agent->task_count; i++) {
		size_t rank = 0;
		while (rank < KINDS && weight[rank] != agent->tasks[i].code)
			rank++;
		if (rank == KINDS)
			return agent->tasks[i].code; /* its own failure */
		if (rank > heaviest)
			heaviest = rank;
	}
	int code = weight[heaviest];
	return code == CODE_SAVED ? agent->options->exit_code : code;
}

static void end_commands(struct agent *agent)
{
	for (size_t i = 0; i < agent->command_count; i++) {
		subprocess_release(&agent->commands[i].on_notice.process);
		subprocess_release(&agent->commands[i].done_if.process);
		subprocess_release(&agent->commands[i].process);
		free(agent->commands[i].signalled);
	}
}

void agent_end_attempt(struct agent *agent)
{
	struct group *group = &agent->group;
	bool stopped = true;
	end_commands(agent);
	for (size_t i = 0; i < agent->task_count; i++)
		agent_task_release(&agent->tasks[i]);
	board_release(&agent->boards, true);
	stderr_relay_stop(agent->relay);
	if (group->store_thread) {
		loop_forget(&agent->loop, store_thread_descriptor(group->store_thread));
		stopped = store_thread_stop(group->store_thread, 1000);
	}
	agent->hangs |= !stopped;
	group->store_thread = NULL;
	/* A join that was given up may still use the pulse. */
	if (!stopped && agent->gave_up_joining)
		group->pulse = NULL;
	reaper_stop(&agent->reaper);
	view_release(&group->view);
}

static void release_attempt(struct agent *agent)
{
	struct agent_end *end = &agent->end;
	/* Send no farewell beat for tasks without LEFT: the silence shows the others that these
	 * are gone. */
	if (end->unwritten_count || agent->unstarted_writes || agent->unstarted_unsure ||
		agent->gave_up_joining)
		pulse_fall_silent(agent->group.pulse);
	pulse_stop(agent->group.pulse, 1000);
	view_release(&agent->group.view);
	free(agent->group.alone.view.peers);
	free(agent->commands);
	free(agent->tasks);
	for (size_t i = 0; i < end->unwritten_count; i++)
		write_release(&end->unwritten[i]);
	free(end->unwritten);
}

bool agent_close(struct agent *agent)
{
	release_attempt(agent);
	source_set_release(&agent->watch);
	loop_close(&agent->loop);
	terminal_close(&agent->terminal);
	return !agent->hangs;
}

static void keep_goodbyes(struct agent *agent, struct agent_end *end)
{
	end->unwritten = xcalloc(2 * agent->task_count, sizeof(*end->unwritten));
	for (size_t i = 0; i < agent->task_count; i++)
		end->unwritten_count += agent_task_unwritten(
			&agent->tasks[i], &agent->group, &end->unwritten[end->unwritten_count]);
}

void agent_block_signals(const struct agent *agent, bool block)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, block ? &all : &agent->mask, NULL);
}

enum status agent_open(struct agent *agent, const struct agent_options *options, struct error *err)
{
	*agent = agent_blank(options);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	enum status status = agent_open_signals(agent, err);
	if (status == STATUS_OK)
		status = agent_watch_sources(options, &agent->watch, err);
	sigprocmask(SIG_SETMASK, NULL, &agent->mask);
	if (status == STATUS_OK && options->rehearsal.signal &&
		!agent_watches_signal(agent, options->rehearsal.signal))
		status = error_set(err, STATUS_USAGE,
			"--rehearse: no source of notices watches %s: see --notice",
			sigabbrev_np(options->rehearsal.signal));
	agent->asked = options->attempt;
	return status;
}

struct agent agent_blank(const struct agent_options *options)
{
	return (struct agent){.options = options,
		.group = {.options = options, .own_deadline = CLOCK_NEVER},
		.loop = LOOP_CLOSED,
		.served = -1,
		.terminal = {.descriptor = -1},
		.boards = {.directory = -1},
		.end = {.deadline = CLOCK_NEVER}};
}

void agent_next(struct agent *agent)
{
	struct agent next = agent_blank(agent->options);
	release_attempt(agent);
	next.watch = agent->watch;
	next.loop = agent->loop;
	next.terminal = agent->terminal;
	next.mask = agent->mask;
	next.asked = agent->asked;
	next.hangs = agent->hangs;
	/* A notice that came with the end of an attempt that was superseded. */
	next.group.noticed = agent->group.noticed;
	next.group.notice = agent->group.notice;
	next.group.own_deadline = agent->group.own_deadline;
	*agent = next;
	agent_block_signals(agent, false);
}

static enum status begin_attempt(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	struct group *group = &agent->group;
	agent->task_count = options->identity->count;
	agent->command_count = options->ranks ? 1 : agent->task_count;
	agent->tasks = xcalloc(agent->task_count, sizeof(*agent->tasks));
	agent->commands = xcalloc(agent->command_count, sizeof(*agent->commands));
	group->reaper = &agent->reaper;
	for (size_t i = 0; i < agent->task_count; i++)
		agent->tasks[i].board = (struct board){.directory = -1};
	enum status status = reaper_start(&agent->reaper, err);
	if (status == STATUS_OK)
		status = store_thread_start(&group->store_thread, options->store, NULL, err);
	if (status != STATUS_OK)
		return status;
	loop_watch(&agent->loop, store_thread_descriptor(group->store_thread));
	return agent_start_pulse(options, &group->pulse, err);
}

/* Join, run the commands, and leave. Returns the exit code. */
static int run_attempt(struct agent *agent, struct agent_end *end)
{
	const struct agent_options *options = agent->options;
	struct error err = {0};
	enum status status = begin_attempt(agent, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	status = agent_join(agent, &err);
	agent->joined = true;
	message_attempt(agent->group.view.attempt.number);
	if (options->on_event)
		options->on_event->attempt = agent->group.view.attempt.number;
	if (status != STATUS_OK) {
		end->superseded = status == STATUS_BROKEN && !agent->asked &&
				  !agent->group.noticed &&
				  attempt_is_superseded(&agent->group.view);
		return agent_not_joined(agent, status, &err);
	}
	status = agent_start(agent, &err);
	if (status != STATUS_OK) {
		int code = message_fail(&err);
		agent_leave_unstarted(agent, REASON_FAILED, code, err.text);
		return code;
	}
	/* Without other agents there is no task to watch: the beats only serve status queries. */
	if (options->identity->tasks > options->identity->count)
		pulse_watch(agent->group.pulse);
	end->started = true;
	agent_say_joined(agent);
	store_thread_follow(agent->group.store_thread, &agent->group.view);
	while (!agent_is_through(agent))
		agent_advance(agent);
	store_thread_unfollow(agent->group.store_thread);
	choose_codes(agent);
	int code = combined_code(agent);
	agent_say_goodbye(agent, code);
	if (options->rehearsal.signal)
		end->rehearsed_well = agent_check_rehearsal(agent, code);
	return code;
}

int agent_attempt(struct agent *agent)
{
	struct agent_end *end = &agent->end;
	int code = run_attempt(agent, end);
	/* The code is decided: a signal that comes now (srun -K) must not change it. */
	agent_block_signals(agent, true);
	agent_take_held(agent);
	end->attempt = agent->group.view.attempt;
	end->claimed = agent->group.view.agreement.claimed;
	end->deadline = group_deadline(&agent->group);
	if (end->started) {
		agent_say_end(agent, code, end);
		keep_goodbyes(agent, end);
	}
	agent_end_attempt(agent);
	return code;
}
