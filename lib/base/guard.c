/* SPDX-License-Identifier: MIT */
#include "base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define GROUPS_MAX 1024

/* Positive numbers are groups to know, negative ones groups to forget. */
static void watch_over(int pipe)
{
	pid_t groups[GROUPS_MAX];
	pid_t message;
	size_t count = 0;
	ssize_t n;
	while ((n = read(pipe, &message, sizeof(message))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(message))
			break;
		for (size_t i = 0; message < 0 && i < count; i++)
			if (groups[i] == -message)
				groups[i--] = groups[--count];
		if (message > 1 && count < GROUPS_MAX)
			groups[count++] = message;
	}
	for (size_t i = 0; i < count; i++)
		kill(-groups[i], SIGKILL);
	_exit(0);
}

enum status guard_start(struct guard *guard, struct error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, STATUS_TEMPORARY, "cannot make a pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return error_set(
			err, STATUS_TEMPORARY, "cannot start a guard: %s", strerror(errno));
	}
	if (pid == 0) {
		/* Out of reach of whoever signals our group or session; holding nothing of ours. */
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		setsid();
		prctl(PR_SET_NAME, "preempt-guard");
		dup2(ends[0], 0);
		close_range(1, ~0u, 0);
		(void)!chdir("/");
		watch_over(0);
	}
	close(ends[0]);
	*guard = (struct guard){.pipe = ends[1], .pid = pid};
	return STATUS_OK;
}

void guard_add(const struct guard *guard, pid_t group)
{
	(void)file_write_all(guard->pipe, &group, sizeof(group));
}

void guard_remove(const struct guard *guard, pid_t group)
{
	guard_add(guard, -group);
}

void guard_stop(struct guard *guard)
{
	if (guard->pid <= 0)
		return;
	close(guard->pipe);
	waitpid(guard->pid, NULL, 0);
	*guard = (struct guard){0};
}
