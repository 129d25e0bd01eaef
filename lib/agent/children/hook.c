/* SPDX-License-Identifier: MIT */
#include "agent/children/hook.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/message.h"
#include "base/process.h"

#define REAP_PATIENCE 1000 /* ms between looks for one that was killed */

void hook_start(struct hook *hook, const char *option, const char *text, int64_t limit,
	const struct reaper *reaper)
{
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)text, NULL};
	struct process_command command = {.argv = argv, .own_group = true, .die_with_parent = true};
	struct error err;
	pid_t pid;
	sigemptyset(&command.ignored);
	*hook = (struct hook){.option = option, .started = true, .limit = limit};
	enum status status = process_start(&command, &pid, &err);
	if (status != STATUS_OK) {
		message_error("%s: %s", option, err.text);
		hook->code = STATUS_NOT_FOUND;
		return;
	}
	hook->pid = pid;
	reaper_add(reaper, pid);
}

bool hook_is(const struct hook *hook, pid_t pid)
{
	return hook->pid && hook->pid == pid;
}

void hook_ended(struct hook *hook, int wait_status)
{
	hook->pid = 0;
	hook->code = process_exit_code(wait_status);
}

bool hook_runs(struct hook *hook, int64_t now, int64_t *wake)
{
	if (!hook->pid)
		return false;
	int64_t again = hook->limit;
	if (now >= hook->limit) {
		if (!hook->late)
			message_error("%s: the command has not ended in time", hook->option);
		hook->late = true;
		kill(-hook->pid, SIGKILL);
		again = now + REAP_PATIENCE;
	}
	*wake = again < *wake ? again : *wake;
	return true;
}

void hook_end(struct hook *hook)
{
	if (!hook->pid)
		return;
	kill(-hook->pid, SIGKILL);
	waitpid(hook->pid, NULL, 0);
	hook->pid = 0;
}
