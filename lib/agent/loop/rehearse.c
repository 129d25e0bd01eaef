/* SPDX-License-Identifier: MIT */
/*
 * A rehearsal: after a while the agent sends itself a signal, as a launcher would, to show that all
 * parts work together before a machine really goes away.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/loop/events.h"
#include "agent/loop/loop.h"
#include "agent/loop/rehearse.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/process/tree.h"

/* With tree, send the signal to every process below us; else report what it would do there. */
static void reach_tree(const struct agent_rehearsal *rehearsal)
{
	static const char *const would[] = {[TREE_DIES] = "would die of",
		[TREE_CATCHES] = "would handle",
		[TREE_IGNORES] = "would ignore"};
	static const char *const does[] = {[TREE_DIES] = "gets and dies of",
		[TREE_CATCHES] = "gets and handles",
		[TREE_IGNORES] = "gets and ignores"};
	struct tree_process *processes = NULL;
	size_t count = 0;
	struct error err;
	if (tree_list(getpid(), rehearsal->signal, &processes, &count, &err) != STATUS_OK)
		message_error("rehearsal: %s", err.text);
	for (size_t i = 0; i < count; i++) {
		const struct tree_process *process = &processes[i];
		if (!rehearsal->tree || kill(process->pid, rehearsal->signal) == 0)
			message_info("rehearsal: process %d (%s) %s %s", (int)process->pid,
				process->name,
				(rehearsal->tree ? does : would)[process->disposition],
				sigabbrev_np(rehearsal->signal));
	}
	free(processes);
}

void agent_rehearse(struct agent *agent, int64_t now, int64_t *wake)
{
	const struct agent_rehearsal *rehearsal = &agent->options->rehearsal;
	if (!rehearsal->signal || agent->rehearsed_at)
		return;
	if (!agent->rehearse_at)
		agent->rehearse_at = now + rehearsal->after;
	if (now < agent->rehearse_at) {
		*wake = agent->rehearse_at < *wake ? agent->rehearse_at : *wake;
		return;
	}
	char utc[32];
	agent->rehearsed_at = now;
	clock_format_utc(clock_utc(), utc);
	message_info("rehearsal: %s at %s to preempt-run, process %d%s",
		sigabbrev_np(rehearsal->signal), utc, (int)getpid(),
		rehearsal->tree ? ", and to all below it" : "");
	if (!agent_watches_signal(agent, rehearsal->signal)) {
		message_error("rehearsal: no source of notices watches %s: see --notice",
			sigabbrev_np(rehearsal->signal));
		return;
	}
	reach_tree(rehearsal);
	kill(getpid(), rehearsal->signal);
}

/* Why the commands did not end by themselves after they were told; NULL: they did. */
static const char *which_did_not_obey(const struct agent *agent)
{
	for (size_t i = 0; i < agent->command_count; i++) {
		const struct command *command = &agent->commands[i];
		if (agent->options->notice_signal &&
			command->process.code == 128 + agent->options->notice_signal)
			return "the command died of the signal of --on-notice: does it handle it?";
		if (command->ending)
			return "the command was told to save, but did not end in time";
	}
	return NULL;
}

/* Why the rehearsal failed; NULL: it passed. */
static const char *what_failed(const struct agent *agent, int code)
{
	const struct agent_options *options = agent->options;
	bool told = options->notice_signal || options->notice_command;
	if (!agent->rehearsed_at)
		return "the run was over before it began";
	if (!agent->group.noticed)
		return "the signal was no notice";
	for (size_t i = 0; i < agent->task_count && !told && !options->find_checkpoint; i++)
		if (!agent->tasks[i].agreement.called)
			return "a task has never called preempt_step: does its program get PREEMPT_DIR?";
	/* Without --checkpoints nothing shows whether a signal-only program has saved. */
	if (told && !options->find_checkpoint)
		return which_did_not_obey(agent);
	if (code == CODE_PREEMPTED)
		return "no complete checkpoint was saved";
	return code == options->exit_code ? NULL : "it ended in another way";
}

bool agent_check_rehearsal(const struct agent *agent, int code)
{
	const struct agent_task *first = &agent->tasks[0];
	const char *failed = what_failed(agent, code);
	double seconds = (double)(clock_now() - agent->rehearsed_at) / 1000;
	if (failed)
		message_error("rehearsal: FAILED: %s (%d)", failed, code);
	else if (first->has_complete)
		message_info("rehearsal: passed: saved step %llu, and left %.1f s after the signal "
			     "(exit code in earnest: %d)",
			(unsigned long long)first->complete_step, seconds, code);
	else
		message_info(
			"rehearsal: passed: the command was told, and ended by itself %.1f s after "
			"the signal (exit code in earnest: %d); --checkpoints would say whether "
			"it saved",
			seconds, code);
	return !failed;
}
