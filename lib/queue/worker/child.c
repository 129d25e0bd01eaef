/* SPDX-License-Identifier: MIT */
#include "queue/worker/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define KILL_TIME 1000 /* ms that a killed one may take to be gone: the kernel may hold it */

enum status child_start(struct child *child, struct process_command *command,
	const struct reaper *reaper, struct error *err)
{
	pid_t pid;
	command->own_group = true;
	command->die_with_parent = true;
	enum status status = process_start(command, &pid, err);
	if (status != STATUS_OK)
		return status;
	reaper_add(reaper, pid);
	int descriptor = pidfd_open(pid, 0);
	int number = errno;
	if (descriptor >= 0) {
		*child = (struct child){.pid = pid, .descriptor = descriptor};
		return STATUS_OK;
	}
	kill(-pid, SIGKILL);
	reaper_remove(reaper, pid);
	waitpid(pid, NULL, 0);
	return error_set(
		err, STATUS_TEMPORARY, "cannot watch %s: %s", command->argv[0], strerror(number));
}

bool child_has_ended(const struct child *child, siginfo_t *info)
{
	*info = (siginfo_t){0};
	return waitid(P_PID, (id_t)child->pid, info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info->si_pid == child->pid;
}

void child_signal(const struct child *child, int signal)
{
	if (kill(-child->pid, signal) < 0 || signal == SIGKILL || getpgid(child->pid) != child->pid)
		kill(child->pid, signal);
}

void child_reap(struct child *child, const struct reaper *reaper, struct rusage *usage)
{
	reaper_remove(reaper, child->pid);
	while (wait4(child->pid, NULL, 0, usage) < 0 && errno == EINTR)
		;
	close(child->descriptor);
	*child = (struct child){.descriptor = -1};
}

void child_kill(struct child *child, const struct reaper *reaper)
{
	struct pollfd ended = {.fd = child->descriptor, .events = POLLIN};
	int64_t deadline = clock_after(KILL_TIME);
	child_signal(child, SIGKILL);
	while (poll(&ended, 1, clock_poll_timeout(deadline)) < 0 && errno == EINTR)
		;
	if (waitpid(child->pid, NULL, WNOHANG) == child->pid)
		reaper_remove(reaper, child->pid);
	close(child->descriptor);
	*child = (struct child){.descriptor = -1};
}

/* What is the file's, or its owner's, and not the machine's. */
static bool stays(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case EACCES:
	case EPERM:
	case ELOOP:
	case ENAMETOOLONG:
	case ENXIO: return true;
	default: return false;
	}
}

int child_open_input(const char *path, struct error *err)
{
	struct stat st;
	const char *name = path ? path : "/dev/null";
	int descriptor = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int number = errno;
	if (descriptor >= 0 && descriptor <= STDERR_FILENO) {
		int raised = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		number = errno;
		close(descriptor);
		descriptor = raised;
	}
	if (descriptor >= 0 && fstat(descriptor, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(descriptor);
		descriptor = -1;
		number = EISDIR;
	}
	if (descriptor >= 0)
		(void)fcntl(descriptor, F_SETFL, 0);
	else
		error_set(err, stays(number) ? STATUS_NO : STATUS_TEMPORARY,
			"cannot open %s as stdin: %s", name, strerror(number));
	return descriptor;
}
