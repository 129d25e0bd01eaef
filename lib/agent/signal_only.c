/* SPDX-License-Identifier: MIT */
#include "agent/signal_only.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "run/budget.h"
#include "run/history.h"
#include "store/builder.h"

#define LOOK_AGAIN                                                                                 \
	500 /* ms, at least, between two looks for processes that handle the signal now */
#define DONE_IF_LEAST 1000 /* ms that --done-if gets near a deadline, even if they end after it */

/*
 * Find the checkpoint to resume from, by options->find_checkpoint. When max_bad_restarts restarts
 * from a checkpoint have failed, mark it as bad and look for the next one. The attempts in the
 * store show which restarts have failed, so no counter is kept.
 */
static enum status find_resume(const struct history *history, const struct saved *known,
	const struct agent_options *options, struct agent_checkpoint *found, struct error *err)
{
	for (uint64_t last = UINT64_MAX;; last = found->step) {
		enum status status = options->find_checkpoint(known, found, err);
		if (status == STATUS_OK && *found->note)
			message_error("%s%s", found->note,
				found->doubtful ? "; the tasks resume from it, because no "
						  "checkpoint is known to be complete"
						: "");
		if (status != STATUS_OK || options->max_bad_restarts == 0)
			return status;
		/* A checkpoint that any task has marked as bad must not be found again. */
		if (found->step == last)
			return error_set(err, STATUS_TEMPORARY,
				"%s was marked as bad, but is still found", found->path);
		uint64_t failed = budget_failed_from(
			history->past, history->count, found->step, outcome_from(found->path));
		if (failed < options->max_bad_restarts)
			return STATUS_OK;
		status = options->give_up_checkpoint(found->step, failed, err);
		if (status == STATUS_NO) {
			message_error("%s: %llu restarts from it have failed, but %s", found->path,
				(unsigned long long)failed, err->text);
			return STATUS_OK;
		}
		if (status != STATUS_OK)
			return status;
		message_error("%s: %llu restarts from it have failed; it is marked as bad",
			found->path, (unsigned long long)failed);
	}
}

/* Where a save is: the directory that the checkpoint is in. */
static void set_where(char where[4096], const char *checkpoint)
{
	char *directory = file_directory_of(checkpoint);
	saved_set_where(where, directory);
	free(directory);
}

/*
 * Write RESUME if it is absent, and refresh the view, which then has it. If another task has
 * written it first, its value counts.
 */
static enum status write_resume(struct store *store, struct view *view, const struct saved *known,
	const struct agent_checkpoint *found, struct error *err)
{
	char key[KEYS_MAX];
	struct transaction t = {0};
	bool older = known->kind != SAVED_STEP || known->step < found->step;
	struct saved saved = *known;
	struct json_object *json = json_object_new_object();
	json_put_text(json, "path", found->path);
	json_put_unsigned(json, "step", found->step);
	keys_of(&view->attempt, key, "RESUME");
	transaction_put_new(&t, transaction_own(&t, key), json);
	if (*found->path && older) {
		saved.step = found->step;
		saved.attempt = view->attempt.number;
		set_where(saved.where, found->path);
	}
	/* The layout that is chosen first is that of all later attempts. */
	if (*found->path && !*saved.layout)
		snprintf(saved.layout, sizeof(saved.layout), "%s", found->layout);
	if (*found->path && (older || !*known->layout)) {
		saved_put(view->attempt.run, &saved, &t);
	}
	enum status status = transaction_run(&t, store, err);
	transaction_release(&t);
	return status == STATUS_OK || status == STATUS_NO ? view_refresh_news(view, store, err)
							  : status;
}

/* Read what the run has saved. */
static enum status recall(struct store *store, const char *run, struct outage *outage,
	struct saved *saved, struct error *err)
{
	enum status status;
	do
		status = saved_read(store, run, saved, err);
	while (outage_retry(outage, &status, err));
	return status;
}

enum status signal_only_check(struct store *store, const char *run,
	const struct agent_options *options, struct outage *outage, struct error *err)
{
	struct agent_checkpoint found = {0};
	struct saved saved;
	if (!options->find_checkpoint)
		return STATUS_OK;
	enum status status = recall(store, run, outage, &saved, err);
	if (status != STATUS_OK || saved.kind != SAVED_STEP)
		return status;
	status = options->find_checkpoint(&saved, &found, err);
	return saved_judge(&saved, run,
		&(struct saved_search){
			.status = status, .step = found.step, .places = options->checkpoints},
		err);
}

enum status signal_only_resolve(struct store *store, struct view *view,
	const struct agent_options *options, struct outage *outage, struct error *err)
{
	struct agent_checkpoint found = {0};
	struct history history = {0};
	struct saved saved;
	const struct attempt *attempt = &view->attempt;
	if (view->resume_known)
		return STATUS_OK;
	enum status status = recall(store, attempt->run, outage, &saved, err);
	if (status == STATUS_OK && options->max_bad_restarts && attempt->number > 1)
		do
			status = history_read(
				store, attempt->run, attempt->number - 1, &history, err);
		while (outage_retry(outage, &status, err));
	if (status != STATUS_OK)
		return status;
	status = find_resume(&history, &saved, options, &found, err);
	status = saved_judge(&saved, attempt->run,
		&(struct saved_search){status, found.step, options->checkpoints,
			options->identity->task == 0 ? found.path : NULL},
		err);
	history_release(&history);
	if (status == STATUS_NO)
		found = (struct agent_checkpoint){0};
	else if (status != STATUS_OK)
		return status;
	do
		status = write_resume(store, view, &saved, &found, err);
	while (outage_retry(outage, &status, err));
	return status;
}

bool signal_only_is_told(const struct agent_options *options)
{
	return options->notice_signal || options->notice_command;
}

/* Whether there is a claim, or the store does not answer and the tasks here agree without it. */
static bool is_preempted(const struct group *group)
{
	return group->view.agreement.claimed || group->alone.begun;
}

/* The instant until which the training may save; always later than now. */
static int64_t save_until(const struct group *group, int64_t now)
{
	const struct agent_options *options = group->options;
	int64_t deadline = group_deadline(group);
	int64_t until = deadline != CLOCK_NEVER ? deadline - options->kill_after
						: now + options->agreement.save_timeout;
	return clock_later(until, now + 1);
}

/* Whether the process ignored the signal when the command was last looked at. */
static bool ignored_before(const struct command *command, pid_t pid)
{
	for (size_t i = 0; i < command->signalled_count; i++)
		if (command->signalled[i].pid == pid)
			return command->signalled[i].disposition == TREE_IGNORES;
	return false;
}

/*
 * Send the signal of --on-notice: to the process of the command, or to its group and to all below
 * it that have left the group, as the ranks of torchrun have. A program may ignore the signal
 * (--shield) until it has imported its libraries and installed its handler. So later calls send it
 * to each process that ignored it and handles it now.
 */
static void send_signal(struct command *command, const struct agent_options *options, int64_t now)
{
	bool first = !command->signal_again;
	pid_t root = command->process.pid;
	struct tree_process *processes = NULL;
	size_t count = 0;
	if (!root || now < command->signal_again)
		return;
	command->signal_again = now + LOOK_AGAIN;
	(void)tree_list(root, options->notice_signal, &processes, &count, NULL);
	if (first && options->signal_ranks)
		subprocess_signal(&command->process, options->notice_signal);
	else if (first)
		kill(root, options->notice_signal);
	for (size_t i = 0; i < count && (options->signal_ranks || i == 0); i++) {
		const struct tree_process *process = &processes[i];
		if (first ? i > 0 && getpgid(process->pid) != root
			  : process->disposition == TREE_CATCHES &&
					ignored_before(command, process->pid))
			kill(process->pid, options->notice_signal);
	}
	free(command->signalled);
	command->signalled = processes;
	command->signalled_count = count;
}

void signal_only_tell(struct command *command, const struct group *group, int64_t now)
{
	const struct agent_options *options = group->options;
	bool told = command->end_not_before != 0;
	if (!signal_only_is_told(options) || !is_preempted(group) ||
		(!told && !command->process.pid))
		return;
	if (options->notice_signal)
		send_signal(command, options, now);
	int64_t until = save_until(group, now);
	if (told && until < command->end_not_before) {
		command->end_not_before = until;
		subprocess_end(&command->on_notice.process, 0, until);
	}
	if (told)
		return;
	command->end_not_before = until;
	if (options->notice_command)
		hook_start(&command->on_notice, "--on-notice",
			&(struct subprocess_options){.shell = options->notice_command,
				.limit = command->end_not_before,
				.reaper = group->reaper});
}

uint64_t signal_only_others(const struct view *view, uint64_t task)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		count += i != task && view_has_joined(view, i) &&
			 agreement_counts(&view->agreement, i);
	return count;
}

/*
 * A complete checkpoint that is newer than the one the attempt began from. STATUS_NO: there is
 * none; found->note is "", or says which one does not count, and why.
 */
static enum status find_newer_one(const struct agent_options *options, const struct view *view,
	struct agent_checkpoint *found, struct error *err)
{
	*found = (struct agent_checkpoint){0};
	enum status status = options->find_checkpoint(NULL, found, err);
	bool old = found->doubtful || (*view->resume && found->step <= view->resume_step);
	return status == STATUS_OK && old ? STATUS_NO : status;
}

void signal_only_finding(const struct agent_options *options, const struct view *view,
	struct outcome_finding *finding)
{
	struct agent_checkpoint newer;
	struct error unused;
	if (!options->find_checkpoint || !view->resume_known ||
		find_newer_one(options, view, &newer, &unused) != STATUS_OK)
		return;
	finding->newer = true;
	finding->step = newer.step;
	set_where(finding->where, newer.path);
	snprintf(finding->layout, sizeof(finding->layout), "%s", newer.layout);
}

/*
 * Find a newer checkpoint for a task that has ended. A search can take seconds and blocks the
 * agent. So all commands that had ended before the last search began share its result, except with
 * an --on-notice command, which may have saved since.
 */
static const struct newer_search *find_newer(struct group *group, const struct command *command)
{
	struct newer_search *search = &group->newer;
	if (search->began > command->ended_at && !group->options->notice_command)
		return search;
	search->began = clock_now();
	search->status =
		find_newer_one(group->options, &group->view, &search->found, &search->error);
	return search;
}

/* The exit code of a finished task. done: --done-if exited with 0. */
static int judge(struct agent_task *task, struct group *group, int agreed, bool done)
{
	const struct agent_options *options = group->options;
	bool ended_well = task->agreement.end_code == 0;
	if (done || (ended_well && !options->done_if && !is_preempted(group)))
		return STATUS_OK;
	if (!options->find_checkpoint && agreed == CODE_SAVED && !signal_only_is_told(options))
		return CODE_SAVED; /* the boards show what is saved */
	if (!options->find_checkpoint)
		return agreed == STATUS_OK && !is_preempted(group) &&
				       !task->command->done_if.started
			       ? STATUS_OK
			       : CODE_PREEMPTED;
	const struct newer_search *newer = find_newer(group, task->command);
	if (newer->status == STATUS_OK)
		task->complete_step = newer->found.step;
	else if (newer->status != STATUS_NO)
		message_error("task %llu: %s", (unsigned long long)task->number, newer->error.text);
	else if (*newer->found.note)
		message_error("task %llu: %s; it does not count as a new complete checkpoint",
			(unsigned long long)task->number, newer->found.note);
	task->has_complete = newer->status == STATUS_OK;
	return task->has_complete ? CODE_SAVED : CODE_PREEMPTED;
}

/*
 * The instant at which --done-if is ended, so that the agent can leave before the deadline (but see
 * DONE_IF_LEAST).
 */
static int64_t done_if_until(const struct group *group, int64_t now)
{
	const struct agent_options *options = group->options;
	int64_t until = now + options->agreement.save_timeout, deadline = group_deadline(group);
	if (deadline == CLOCK_NEVER)
		return until;
	int64_t early = clock_earlier(options->kill_after, (deadline - now) / 2);
	return clock_earlier(until, clock_later(deadline - early, now + DONE_IF_LEAST));
}

bool signal_only_conclude(
	struct agent_task *task, struct group *group, int agreed, int64_t now, int64_t *wake)
{
	const struct agent_options *options = group->options;
	struct hook *on_notice = &task->command->on_notice, *done_if = &task->command->done_if;
	task->code = agreed;
	task->has_complete = task->agreement.has_complete;
	task->complete_step = task->agreement.complete_step;
	/* The command of --on-notice may be the one that saves. */
	if (hook_runs(on_notice, now, wake))
		return false;
	if ((!signal_only_is_told(options) && !options->find_checkpoint && !options->done_if) ||
		(agreed != STATUS_OK && agreed != CODE_SAVED && agreed != CODE_PREEMPTED &&
			agreed != CODE_DECIDED))
		return true;
	if (options->done_if && task->agreement.end_code == 0) {
		int64_t until = done_if_until(group, now);
		if (!done_if->started)
			hook_start(done_if, "--done-if",
				&(struct subprocess_options){.shell = options->done_if,
					.limit = until,
					.reaper = group->reaper});
		subprocess_end(&done_if->process, 0, until);
		if (hook_runs(done_if, now, wake))
			return false;
	}
	task->code = judge(task, group, agreed, done_if->started && done_if->process.code == 0);
	if (task->code != STATUS_OK &&
		(agreed == CODE_DECIDED || agreement_stops(&group->view.agreement)))
		task->code = CODE_DECIDED;
	return true;
}
