/* SPDX-License-Identifier: MIT */
#include "group/unaware.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/message.h"
#include "group/bad_restarts.h"
#include "group/transaction.h"

enum status unaware_resolve(struct store *store, struct view *view,
	const struct agent_options *options, struct error *err)
{
	char path[4096] = "", key[KEYS_MAX];
	uint64_t step = 0;
	struct transaction t = {0};
	if (view->resume_known)
		return STATUS_OK;
	enum status status = bad_restarts_find(store, &view->attempt, options, path, &step, err);
	if (status != STATUS_OK && status != STATUS_NO)
		return status;
	struct json_object *json = json_object_new_object();
	json_put_text(json, "path", status == STATUS_OK ? path : "");
	json_put_unsigned(json, "step", step);
	keys_of(&view->attempt, key, "RESUME");
	transaction_put_new(&t, transaction_own(&t, key), json);
	status = transaction_run(&t, store, err);
	transaction_release(&t);
	/* Somebody else may have been first: what stands there counts. */
	return status == STATUS_OK || status == STATUS_NO ? view_refresh(view, store, err) : status;
}

bool unaware_is(const struct agent_options *options)
{
	return options->notice_signal || options->notice_command;
}

static void run_detached(const char *text)
{
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)text, NULL};
	struct process_command command = {.argv = argv, .own_group = true};
	struct error err;
	pid_t pid;
	sigemptyset(&command.ignored);
	/* Reaped with the orphans. */
	if (process_start(&command, &pid, &err) != STATUS_OK)
		message_error("--on-notice: %s", err.text);
}

void unaware_tell(
	struct command *command, const struct agent_options *options, int64_t deadline, int64_t now)
{
	if (!command->running || command->end_not_before)
		return;
	command->end_not_before = deadline != CLOCK_NEVER ? deadline - options->kill_after
							  : now + options->agreement.save_timeout;
	if (command->end_not_before <= now)
		command->end_not_before = now + 1;
	if (options->notice_signal)
		kill(options->signal_ranks ? -command->pid : command->pid, options->notice_signal);
	if (options->notice_command)
		run_detached(options->notice_command);
}

bool unaware_others_through(const struct view *view, uint64_t task)
{
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		if (i != task && view->members[i].joined && agreement_counts(&view->agreement, i))
			return false;
	return true;
}

/* Whether the user's own test says that the training has finished. */
static bool is_done(const char *text)
{
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)text, NULL};
	struct process_command command = {.argv = argv};
	struct error err;
	int wait_status;
	pid_t pid;
	sigemptyset(&command.ignored);
	if (process_start(&command, &pid, &err) != STATUS_OK) {
		message_error("--done-if: %s", err.text);
		return false;
	}
	return waitpid(pid, &wait_status, 0) == pid && process_exit_code(wait_status) == 0;
}

int unaware_code(
	const struct agent_options *options, const struct view *view, int agreed, int command_code)
{
	char path[4096];
	uint64_t step;
	struct error err;
	if (agreed != STATUS_OK && agreed != STATUS_SAVED && agreed != STATUS_PREEMPTED)
		return agreed;
	if (command_code == 0 && options->done_if && is_done(options->done_if))
		return STATUS_OK;
	if (command_code == 0 && !options->done_if && !view->agreement.claimed)
		return STATUS_OK;
	if (!options->find_checkpoint)
		return agreed == STATUS_OK && !view->agreement.claimed ? STATUS_OK
								       : STATUS_PREEMPTED;
	enum status status = options->find_checkpoint(path, &step, &err);
	if (status != STATUS_OK && status != STATUS_NO)
		message_error("%s", err.text);
	bool newer = status == STATUS_OK && (!*view->resume || step > view->resume_step);
	return newer ? STATUS_SAVED : STATUS_PREEMPTED;
}
