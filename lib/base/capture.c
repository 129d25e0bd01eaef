/* SPDX-License-Identifier: MIT */
#include "base/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"

#define KILL_LIMIT 1000 /* ms in which what was killed has ended */

/* Read what is there; false at the end. */
static bool read_some(int descriptor, struct text *output)
{
	char bytes[4096];
	ssize_t n = read(descriptor, bytes, sizeof(bytes));
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n > 0 && output->length + (size_t)n <= CAPTURE_LIMIT)
		text_add_bytes(output, bytes, (size_t)n);
	return n > 0;
}

/* Until the command has ended, what it started may hold the pipe; false: not in time. */
static bool follow(pid_t pid, int descriptor, int64_t deadline, struct text *output)
{
	struct pollfd polled[2] = {
		{.fd = pidfd_open(pid, 0), .events = POLLIN}, {.fd = descriptor, .events = POLLIN}};
	bool ended = false;
	while (!ended && clock_now() < deadline) {
		int64_t look = polled[0].fd < 0 ? clock_after(50) : deadline;
		(void)poll(polled, 2, clock_poll_timeout(look < deadline ? look : deadline));
		siginfo_t info = {0};
		ended = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
			info.si_pid == pid;
		if (polled[1].fd >= 0 && polled[1].revents && !read_some(descriptor, output))
			polled[1].fd = -1;
	}
	/* What it wrote before its end is in the pipe. */
	while (ended && polled[1].fd >= 0 && poll(&polled[1], 1, 0) > 0 &&
		read_some(descriptor, output))
		;
	if (polled[0].fd >= 0)
		close(polled[0].fd);
	return ended;
}

enum status capture_run(
	char *const *argv, int64_t deadline, struct text *output, int *code, struct error *err)
{
	int ends[2], wait_status = 0;
	pid_t pid;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || pipe2(ends, O_CLOEXEC) < 0) {
		enum status failed = error_set(
			err, STATUS_TEMPORARY, "cannot run %s: %s", argv[0], strerror(errno));
		if (null >= 0)
			close(null);
		return failed;
	}
	struct process_command command = {.argv = argv,
		.own_group = true,
		.die_with_parent = true,
		.standard_input = null,
		.standard_output = ends[1],
		.standard_error = ends[1]};
	sigemptyset(&command.ignored);
	enum status status = process_start(&command, &pid, err);
	close(null);
	close(ends[1]);
	if (status == STATUS_OK) {
		bool ended = follow(pid, ends[0], deadline, output);
		/* Not reaped yet: the number is its own. */
		kill(-pid, SIGKILL);
		/* One that hangs in the kernel does not die yet: it is left to our parent. */
		if (ended || follow(pid, ends[0], clock_after(KILL_LIMIT), output))
			waitpid(pid, &wait_status, 0);
		if (ended)
			*code = process_exit_code(wait_status);
		else
			status = error_set(
				err, STATUS_TIMEOUT, "%s has not answered in time", argv[0]);
	}
	close(ends[0]);
	return status;
}
