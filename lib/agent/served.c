/* SPDX-License-Identifier: MIT */
#include "agent/served.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/message.h"
#include "base/parse.h"
#include "base/process/descriptor.h"
#include "notice/source.h"

/*
 * preempt-store join sets PREEMPT_AGENT to "PID"; preempt-run sets it to "PID.START" (REAPER_MARK).
 * A process with that mark is not served: preempt-run itself does what the small programs do, and
 * inside a container its PID may be that of another process.
 */
enum status served_agent(pid_t *pid, struct error *err)
{
	const char *text = getenv("PREEMPT_AGENT");
	char *end = NULL;
	*pid = 0;
	if (!text || !*text)
		return STATUS_OK;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (*text < '1' || *text > '9' || errno || number > INT32_MAX || (*end && *end != '.'))
		return error_set(
			err, STATUS_USAGE, "$PREEMPT_AGENT: \"%s\" is not a process id", text);
	*pid = *end || number == getpid() ? 0 : (pid_t)number;
	return STATUS_OK;
}

enum status served_open_agent(int *descriptor, struct error *err)
{
	pid_t pid;
	*descriptor = -1;
	enum status status = served_agent(&pid, err);
	return status == STATUS_OK ? served_open(pid, descriptor, err) : status;
}

static enum status missing(pid_t pid, struct error *err)
{
	pid_t agent;
	if (served_agent(&agent, NULL) == STATUS_OK && agent == pid)
		return error_set(err, STATUS_NO,
			"process %d (PREEMPT_AGENT) does not exist: unset PREEMPT_AGENT, or join again",
			(int)pid);
	return error_set(err, STATUS_NO, "process %d does not exist", (int)pid);
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
		return missing(pid, err);
	return error_set(
		err, STATUS_TEMPORARY, "cannot watch process %d: %s", (int)pid, strerror(errno));
}

/* A process that does not exist was killed, or is outside of this container: go on without it. */
enum status served_open_task(int *descriptor, const char **board, struct error *err)
{
	pid_t pid;
	*descriptor = -1;
	enum status status = served_agent(&pid, err);
	*board = pid ? getenv("PREEMPT_DIR") : NULL;
	if (*board && !**board)
		*board = NULL;
	if (status == STATUS_OK)
		status = served_open(pid, descriptor, err);
	if (status != STATUS_NO)
		return status;
	message_info("%s; still watching%s", err->text, *board ? " until its board is gone" : "");
	return STATUS_OK;
}

bool served_is_over(int descriptor, const char *board)
{
	return served_is_gone(descriptor) || (board && access(board, F_OK) < 0 && errno == ENOENT);
}

bool served_is_gone(int descriptor)
{
	return descriptor_is_ready(descriptor);
}

/* The signals that served.h names. In PREEMPT_SIGNALS, all after an unknown name is ignored. */
static sigset_t notices(void)
{
	sigset_t set;
	sigemptyset(&set);
	(void)parse_signals(NOTICE_SIGNALS, &set, "", NULL);
	(void)parse_signals(getenv("PREEMPT_SIGNALS"), &set, "PREEMPT_SIGNALS", NULL);
	return set;
}

void served_ignore_notices(void)
{
	sigset_t set = notices();
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&set, number) == 1)
			signal(number, SIG_IGN);
}

void served_block_notices(bool block)
{
	sigset_t set = notices();
	sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

bool served_is_notice(int number)
{
	sigset_t set = notices();
	return sigismember(&set, number) == 1;
}
