/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/loop/events.h"
#include "agent/loop/heart.h"
#include "agent/loop/loop.h"
#include "agent/loop/say.h"
#include "agent/loop/terminal.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/process/process.h"

#define STDERR_WAIT  500 /* ms for the last line of a command that has ended */
#define ROOT_FAILURE 200 /* ms in which a death elsewhere explains a failure here */
#define ROOT_LOOK    20	 /* ms between two looks for that death */

void agent_take_notice(struct agent *agent, const struct notice *notice)
{
	struct group *group = &agent->group;
	int64_t deadline = notice_deadline(notice);
	if (!group->noticed) {
		group->notice = *notice;
		group->notice.deadline = group->own_deadline = deadline;
		agent_say_notice(agent, agent_speaks(agent));
	}
	group->noticed = true;
	if (deadline < group->own_deadline)
		group->own_deadline = deadline;
	/* One task claims for all tasks of this machine; the others hold as soon as the claim
	 * shows in the store. */
	for (size_t i = 0; i < agent->task_count; i++)
		agreement_noticed(&agent->tasks[i].agreement, group->own_deadline);
	if (!agent->options->forward || !notice->signal)
		return;
	for (size_t i = 0; i < agent->command_count; i++)
		if (agent->commands[i].process.pid)
			subprocess_signal(&agent->commands[i].process, notice->signal);
}

void agent_check_sources(struct agent *agent)
{
	struct notice notice;
	while (source_set_take(&agent->watch, &notice))
		agent_take_notice(agent, &notice);
}

void agent_take_held(struct agent *agent)
{
	struct notice notice;
	while (source_set_take_held(&agent->watch, &notice))
		agent_take_notice(agent, &notice);
}

bool agent_watches_signal(const struct agent *agent, int number)
{
	const struct agent_options *options = agent->options;
	sigset_t set = source_signal_set(options->sources, options->source_count);
	return sigismember(&set, number) == 1;
}

/* The signal that killed the command; 0: none. */
static int killed_by(const struct command *command)
{
	return command->process.how.si_code != CLD_EXITED ? command->process.how.si_status : 0;
}

/* Tell the agreements of its tasks that a command has ended. */
static void tell_end(struct agent *agent, size_t index, int64_t now)
{
	struct command *command = &agent->commands[index];
	int64_t patience = command->ended_at + STDERR_WAIT - now;
	int number = killed_by(command);
	command->told = true;
	if (agent->relay)
		stderr_relay_line(agent->relay, index, patience > 0 ? patience : 0, command->line);
	/* If the signal of a notice killed the command, we get that notice soon: take it now. */
	if (number && agent_watches_signal(agent, number) && !command->ending &&
		!agent->group.noticed) {
		struct notice notice = {.signal = number,
			.received = now,
			.received_utc = clock_utc(),
			.deadline = agent->options->grace >= 0 ? now + agent->options->grace
							       : CLOCK_NEVER};
		snprintf(notice.source, sizeof(notice.source), "signal:%s", sigabbrev_np(number));
		snprintf(notice.reason, sizeof(notice.reason), "the command died of it");
		agent_take_notice(agent, &notice);
	}
	for (size_t i = 0; i < agent->task_count; i++) {
		struct agent_task *task = &agent->tasks[i];
		if (task->command != command)
			continue;
		agent_task_read_saved(task, now);
		agent_task_sample(
			task, now); /* the last reading of the board: what is said counts on it */
		agreement_ended(&task->agreement, command->process.code, now);
	}
}

/*
 * Until when the agent keeps the failure of this command to itself; 0: it reports it at once. When
 * one task dies, its peers fail within milliseconds because of it, and the error must name the task
 * that died first. So a killed command is reported at once, and a command that failed by itself
 * only after the death of another task had time to become known. While one failure is being written
 * to the store, others wait longer.
 */
static int64_t wait_with_failure(const struct agent *agent, const struct command *command)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	bool failed = command->process.code != 0 && !command->ending;
	if (!failed || view->tasks == 1 || view->claimed || view->broken || agent->group.noticed)
		return 0;
	if (agent->failure_told)
		return command->ended_at + 10 * ROOT_FAILURE;
	return killed_by(command) ? 0 : command->ended_at + ROOT_FAILURE;
}

void agent_tell_ends(struct agent *agent, int64_t now, int64_t *wake)
{
	for (;;) {
		size_t first = agent->command_count;
		int64_t first_until = CLOCK_NEVER;
		for (size_t i = 0; i < agent->command_count; i++) {
			struct command *command = &agent->commands[i];
			if (!command->process.ended || command->process.pid || command->told)
				continue;
			/* A source may hold back a notice that it received before this command
			 * ended: take it now. */
			agent_take_held(agent);
			int64_t until = wait_with_failure(agent, command);
			/* If a peer's agent was killed on this machine, our command failed because
			 * of that: declare the peer dead first. Its agent may end a moment later
			 * than its command: look again. */
			if (until && !command->root_found)
				command->root_found = agent_declare_gone(agent, false);
			if (until > now && !command->root_found && now + ROOT_LOOK < *wake)
				*wake = now + ROOT_LOOK;
			if (until < first_until) {
				first = i;
				first_until = until;
			}
		}
		if (first_until > now) {
			if (first_until < *wake)
				*wake = first_until;
			return;
		}
		agent->failure_told |= agent->commands[first].process.code != 0;
		tell_end(agent, first, now);
	}
}

void agent_keep_reaper(struct agent *agent)
{
	if (reaper_keep(&agent->reaper))
		message_error(
			"preempt-guard, which ends the command if this process is killed, was "
			"killed; a new one was started");
}

/* Reap our commands and hooks, and orphans below us, whose parent is this process now. */
static void reap(struct agent *agent, int64_t now)
{
	int64_t unused = CLOCK_NEVER;
	for (size_t i = 0; i < agent->command_count; i++) {
		struct command *command = &agent->commands[i];
		(void)hook_runs(&command->on_notice, now, &unused);
		(void)hook_runs(&command->done_if, now, &unused);
		if (subprocess_check(&command->process, now) != SUBPROCESS_ENDED)
			continue;
		command->ended_at = now;
		agent_terminal_ended(agent, command);
		subprocess_reap(&command->process, false);
	}
	if (agent->options->on_event)
		on_event_advance(agent->options->on_event, now, &unused);
	agent_keep_reaper(agent);
	subprocess_reap_others(&agent->reaper);
}

void agent_take_signals(struct agent *agent, int64_t now)
{
	for (int number; (number = loop_take_signal(&agent->loop, NULL));) {
		if (number == SIGCONT)
			agent_continued(agent);
		if (number == SIGTSTP)
			agent_stop(agent);
		if (number == SIGCHLD || number == SIGCONT || number == SIGTSTP)
			continue;
		agent->passed_on = number;
		for (size_t i = 0; i < agent->command_count; i++)
			if (agent->commands[i].process.pid)
				subprocess_signal(&agent->commands[i].process, number);
	}
	agent_check_stopped(agent);
	reap(agent, now);
}

/* Treat a store that accepts no writes as unavailable, even if it can be read. */
static void store_answered(struct agent *agent, const struct result *result)
{
	bool wrote = result->kind == RESULT_WROTE;
	bool right = wrote ? result->outcome != OUTCOME_UNKNOWN : result->status == STATUS_OK;
	if (wrote)
		agent->writes_away = !right;
	if (right && agent->writes_away)
		return;
	if (right && (agent->store_away || agent->said_silence))
		message_info("the store answers again");
	agent->said_silence = false;
	if (!right)
		agent->store_error = result->error;
	if (!right && !agent->store_away)
		message_error("%s%s", result->error.text, agent->unstarted ? "" : "; trying again");
	agent->store_away = !right;
}

/* Note how many records the view does not have yet, and how long the store took. */
static void learn_from(struct group *group, const struct result *result)
{
	group->view.agreement.unseen = view_unseen(&group->view, view_awaited_kind(&group->view));
	group->view.agreement.departed = view_unseen(&group->view, RECORD_LEFT);
	group->view.agreement.took = result->now - result->began;
}

static void take_look(struct agent *agent, const struct result *result)
{
	struct group *group = &agent->group;
	if (result->status != STATUS_OK)
		return;
	(result->whole ? view_feed : view_feed_news)(&group->view, &result->answer,
		&(struct view_reading){result->unchanged, result->began, result->now});
	if (result->counted)
		view_feed_counts(&group->view, &result->counts, result->answer.counted,
			result->answer.revision);
	learn_from(group, result);
	if (agent->commands[0].foreign)
		agent_task_keep_deadline(&agent->tasks[0], &group->view);
	group->looked_at = result->now;
	if (result->whole)
		group->deaths_unseen = false;
	for (size_t i = 0; i < agent->task_count; i++) {
		struct agreement *agreement = &agent->tasks[i].agreement;
		if (result->whole)
			agreement_saw(agreement, result->now);
		else
			agreement_looked(agreement, result->counted, result->now);
	}
}

static void take_write(struct agent *agent, const struct result *result)
{
	struct group *group = &agent->group;
	const struct write *write = &result->write;
	if (result->outcome == OUTCOME_DONE) {
		/* If no other change lies between what the view shows and this write, the view was
		 * up to date when the write began. */
		if (write->transaction.group && !result->news &&
			write->revision == group->view.seen + 1 &&
			result->began > group->view.unchanged)
			group->view.unchanged = result->began;
		write_feed(write, &group->view,
			&(struct view_reading){.began = result->began, .ended = result->now});
		learn_from(group, result);
	}
	if (agent->unstarted_writes) {
		agent->unstarted_writes--;
		agent->unstarted_unsure |= result->outcome != OUTCOME_DONE;
	}
	if (write->what == WRITE_KINDS) { /* deaths */
		group->deaths_asked--;
		group->deaths_unseen = result->outcome != OUTCOME_DONE;
	} else {
		group->shared[write->what] = false;
	}
	for (size_t i = 0; i < agent->task_count && !agent->unstarted; i++) {
		struct agreement *a = &agent->tasks[i].agreement;
		if (result->outcome == OUTCOME_DONE)
			agreement_took_in(a, result->now);
		if (write->what != WRITE_KINDS && agent->tasks[i].number == write->task)
			agreement_wrote(a, write->what, write->round, result->outcome, result->news,
				result->now);
	}
}

void agent_take_result(struct agent *agent, struct result *result)
{
	switch (result->kind) {
	case RESULT_SAW:
		store_answered(agent, result);
		take_look(agent, result);
		break;
	case RESULT_WROTE:
		store_answered(agent, result);
		take_write(agent, result);
		break;
	case RESULT_CLOSED: agent->goodbye_done = true; break;
	case RESULT_JOINED: break;
	}
	agent_say_news(agent);
}
