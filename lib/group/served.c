/* SPDX-License-Identifier: MIT */
#include "group/served.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

static const int notices[] = {SIGTERM, SIGUSR1, SIGUSR2};

/* "PID", or "PID.START" where preempt-run is the agent. */
pid_t served_agent(void)
{
	const char *text = getenv("PREEMPT_AGENT");
	char *end = NULL;
	if (!text || *text < '1' || *text > '9')
		return 0;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (errno || number > INT32_MAX || (*end && *end != '.') || number == getpid())
		return 0;
	return (pid_t)number;
}

enum status served_open(pid_t pid, int *descriptor, struct error *err)
{
	*descriptor = -1;
	if (!pid)
		return STATUS_OK;
	*descriptor = pidfd_open(pid, 0);
	if (*descriptor >= 0)
		return STATUS_OK;
	if (errno == ESRCH)
		return error_set(
			err, STATUS_NO, "process %d, which this would serve, is gone", (int)pid);
	return error_set(
		err, STATUS_TEMPORARY, "cannot watch process %d: %s", (int)pid, strerror(errno));
}

bool served_is_gone(int descriptor)
{
	struct pollfd poller = {.fd = descriptor, .events = POLLIN};
	return descriptor >= 0 && poll(&poller, 1, 0) > 0;
}

void served_ignore_notices(void)
{
	for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++)
		signal(notices[i], SIG_IGN);
}

void served_block_notices(bool block)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++)
		sigaddset(&set, notices[i]);
	sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

bool served_is_notice(int number)
{
	for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++)
		if (notices[i] == number)
			return true;
	return false;
}
