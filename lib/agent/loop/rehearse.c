/* SPDX-License-Identifier: MIT */
/*
 * A rehearsal: after a while the agent sends itself a signal, as a launcher would, to show that all
 * parts work together before a machine really goes away.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/loop/events.h"
#include "agent/loop/loop.h"
#include "agent/loop/rehearse.h"
#include "agent/signal_only.h"
#include "base/clock.h"
#include "base/message.h"

/* The signal that the commands get, or may get from a launcher that signals all processes. */
static int signal_that_counts(const struct agent_options *options)
{
	return options->notice_signal ? options->notice_signal : options->rehearsal.signal;
}

/*
 * Whether the first of these processes handles the signal, and may be the launcher of another one
 * that does not die of it either.
 */
static bool may_be_launcher(const struct tree_process *processes, size_t count)
{
	for (size_t i = 1; i < count && processes->disposition == TREE_CATCHES; i++)
		if (processes[i].parent == processes->pid && processes[i].disposition != TREE_DIES)
			return true;
	return false;
}

/* Whether a command failed by itself. */
static bool one_failed(const struct agent *agent)
{
	for (size_t i = 0; i < agent->command_count; i++)
		if (agent->commands[i].process.code != 0 && !agent->commands[i].ending)
			return true;
	return false;
}

/* Report what each process of a command would do with the signal; find what may be a launcher. */
static void look_at(struct agent *agent, const struct command *command, int number)
{
	static const char *const would[] = {[TREE_DIES] = "would die of",
		[TREE_CATCHES] = "would handle",
		[TREE_IGNORES] = "would ignore"};
	struct tree_process *processes = NULL;
	size_t count = 0;
	struct error err;
	if (tree_list(command->process.pid, number, &processes, &count, &err) != STATUS_OK)
		message_error("rehearsal: %s", err.text);
	for (size_t i = 0; i < count; i++) {
		const struct tree_process *process = &processes[i];
		message_info("rehearsal: process %d (%s) %s %s", (int)process->pid, process->name,
			would[process->disposition], sigabbrev_np(number));
		if (!agent->launcher.pid && number == signal_that_counts(agent->options) &&
			may_be_launcher(process, count - i))
			agent->launcher = *process;
	}
	free(processes);
}

/* Note which checkpoint is complete before the signal: a newer one was saved because of it. */
static void look_at_checkpoints(struct agent *agent)
{
	struct agent_checkpoint found;
	struct error err;
	if (!agent->options->find_checkpoint)
		return;
	enum status status = agent->options->find_checkpoint(NULL, &found, &err);
	if (status != STATUS_OK && status != STATUS_NO)
		message_error("rehearsal: %s", err.text);
	agent->rehearsed_from = status == STATUS_OK   ? found.step + 1
				: status == STATUS_NO ? 0
						      : UINT64_MAX;
}

void agent_rehearse(struct agent *agent, int64_t now, int64_t *wake)
{
	const struct agent_rehearsal *rehearsal = &agent->options->rehearsal;
	if (!rehearsal->signal || agent->rehearsed_at)
		return;
	if (!agent->rehearse_at)
		agent->rehearse_at = now + rehearsal->after;
	/* The rehearsal of another agent of the run begins this one, too. */
	if (now < agent->rehearse_at && !agent->group.view.agreement.claimed) {
		*wake = agent->rehearse_at < *wake ? agent->rehearse_at : *wake;
		return;
	}
	char utc[32];
	agent->rehearsed_at = now;
	clock_format_utc(clock_utc(), utc);
	message_info("rehearsal: %s at %s to preempt-run, process %d",
		sigabbrev_np(rehearsal->signal), utc, (int)getpid());
	for (size_t i = 0; i < agent->command_count; i++) {
		look_at(agent, &agent->commands[i], rehearsal->signal);
		if (rehearsal->signal != signal_that_counts(agent->options))
			look_at(agent, &agent->commands[i], signal_that_counts(agent->options));
	}
	look_at_checkpoints(agent);
	kill(getpid(), rehearsal->signal);
}

/* A task with a complete checkpoint that was saved after the signal; NULL: there is none. */
static const struct agent_task *saved_since(const struct agent *agent)
{
	for (size_t i = 0; i < agent->task_count; i++) {
		const struct agent_task *task = &agent->tasks[i];
		/* What the tasks agreed on after the signal may have been saved just before. */
		uint64_t least = task->agreement.has_complete ? task->agreement.complete_step
							      : agent->rehearsed_from;
		if (task->has_complete && task->complete_step >= least)
			return task;
	}
	return NULL;
}

/* Why the commands did not end as they should after they were told; NULL: they did. */
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
static const char *what_failed(const struct agent *agent, int code, char text[512])
{
	const struct agent_options *options = agent->options;
	bool told = signal_only_is_told(options);
	int64_t late = clock_now() - group_deadline(&agent->group);
	const char *disobedient = told ? which_did_not_obey(agent) : NULL;
	if (!agent->rehearsed_at)
		return "the run was over before it began";
	if (!agent->group.noticed)
		return "the signal was no notice";
	if (disobedient)
		return disobedient;
	for (size_t i = 0; i < agent->task_count && !told && !options->find_checkpoint; i++)
		if (!agent->tasks[i].agreement.called)
			return "a task has never called preempt_step: does its program get PREEMPT_DIR?";
	if (code != options->exit_code && code != CODE_PREEMPTED)
		return "it ended in another way";
	if (late > 0) {
		snprintf(text, 512, "it was left %.1f s after the grace period",
			(double)late / 1000);
		return text;
	}
	if ((options->notice_signal || options->forward) && agent->launcher.pid &&
		one_failed(agent)) {
		snprintf(text, 512,
			"%s (process %d) ended on %s, and with it all processes below it. A "
			"launcher kills its ranks (torchrun does, 30 s after TERM); tell only the "
			"ranks: --on-notice signal:USR1 --signal-to ranks --shield USR1",
			agent->launcher.name, (int)agent->launcher.pid,
			sigabbrev_np(signal_that_counts(options)));
		return text;
	}
	if (saved_since(agent))
		return code == CODE_PREEMPTED ? "a task did not save" : NULL;
	if (told && !options->find_checkpoint)
		return "whether it saved is not known: name its directory with --checkpoints";
	return "no complete checkpoint was saved after the signal";
}

bool agent_check_rehearsal(const struct agent *agent, int code)
{
	char text[512];
	const char *failed = what_failed(agent, code, text);
	double seconds = (double)(clock_now() - agent->rehearsed_at) / 1000;
	if (failed)
		message_error("rehearsal: FAILED: %s (%d)", failed, code);
	else
		message_info("rehearsal: passed: saved step %llu, and left %.1f s after the signal "
			     "(exit code in earnest: %d)",
			(unsigned long long)saved_since(agent)->complete_step, seconds, code);
	return !failed;
}
