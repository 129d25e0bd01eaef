/* SPDX-License-Identifier: MIT */
#include "notice/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ending.h"
#include "base/file.h"
#include "base/process.h"

/* The notice as standard input of a command: it fits into a pipe. */
static int notice_pipe(const struct notice *notice)
{
	struct text line = {0};
	int ends[2];
	notice_write_json(notice, &line);
	text_add(&line, "\n");
	if (pipe2(ends, O_CLOEXEC) < 0) {
		text_release(&line);
		return -1;
	}
	(void)file_write_all(ends[1], line.data, line.length);
	close(ends[1]);
	text_release(&line);
	return ends[0];
}

static bool describe_notice(const struct notice *notice)
{
	char utc[32], left[32] = "";
	clock_format_utc(notice->received_utc, utc);
	if (notice->deadline != CLOCK_NEVER) {
		int64_t now = clock_now();
		snprintf(left, sizeof(left), "%lld",
			(long long)(notice->deadline > now ? notice->deadline - now : 0));
	}
	return setenv("PREEMPT_NOTICE_SOURCE", notice->source, 1) == 0 &&
	       setenv("PREEMPT_NOTICE_REASON", notice->reason, 1) == 0 &&
	       setenv("PREEMPT_NOTICE_UTC", utc, 1) == 0 &&
	       setenv("PREEMPT_NOTICE_LEFT_MS", left, 1) == 0;
}

/* Wait for a child; signals that end us are passed on to its group, and end us after it. */
static int wait_for_command(pid_t pid)
{
	int wait_status = 0, asked = 0;
	struct pollfd ended = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	while (waitpid(pid, &wait_status, WNOHANG) == 0) {
		ending_wait(&ended, 1, ended.fd < 0 ? clock_after(50) : CLOCK_NEVER);
		if (ending_signal()) {
			asked = ending_signal();
			ending_set(0);
			kill(-pid, asked);
		}
	}
	if (ended.fd >= 0)
		close(ended.fd);
	if (asked)
		ending_set(asked);
	return process_exit_code(wait_status);
}

enum status notice_exec(const struct notice *notice, const char *text, int *code, struct error *err)
{
	char shell[] = "/bin/sh", option[] = "-c";
	char *copy = strdup(text);
	char *argv[] = {shell, option, copy, NULL};
	int input = notice_pipe(notice);
	struct process_command child = {
		.argv = argv, .own_group = true, .die_with_parent = true, .standard_input = input};
	enum status status;
	pid_t pid;

	sigemptyset(&child.ignored);
	if (!copy || input < 0 || !describe_notice(notice))
		status = error_set(err, STATUS_TEMPORARY, "cannot run the command of --exec: %s",
			strerror(errno));
	else
		status = process_start(&child, &pid, err);
	free(copy);
	if (input >= 0)
		close(input);
	if (status == STATUS_OK)
		*code = wait_for_command(pid);
	return status;
}
