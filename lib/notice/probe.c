/* SPDX-License-Identifier: MIT */
#include "notice/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

static void close_descriptor(int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
}

static void attend(const struct probe *probe, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN};
	(void)epoll_ctl(probe->epoll, EPOLL_CTL_ADD, descriptor, &event);
}

/* Closing alone does not remove it while a child between fork and exec has it open, too. */
static void dismiss(const struct probe *probe, int *descriptor)
{
	if (*descriptor >= 0)
		(void)epoll_ctl(probe->epoll, EPOLL_CTL_DEL, *descriptor, NULL);
	close_descriptor(descriptor);
}

/* Read the output that has come, without waiting. */
static void drain(const struct probe *probe, struct probe_capture *capture)
{
	char buffer[4096];
	ssize_t n;
	/* Stop at some point: the command may write faster than we read. */
	for (int round = 0; round < 64 && capture->descriptor >= 0; round++) {
		n = read(capture->descriptor, buffer, sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			dismiss(probe, &capture->descriptor);
		if (n <= 0)
			return;
		size_t room = sizeof(capture->text) - 1 - capture->length;
		size_t take = (size_t)n < room ? (size_t)n : room;
		memcpy(capture->text + capture->length, buffer, take);
		capture->length += take;
	}
}

static void keep_first_line(struct probe_capture *capture)
{
	capture->text[capture->length] = '\0';
	capture->text[strcspn(capture->text, "\r\n")] = '\0';
}

static void end(struct probe *probe)
{
	dismiss(probe, &probe->pidfd);
	dismiss(probe, &probe->output.descriptor);
	dismiss(probe, &probe->errors.descriptor);
	probe->pid = 0;
}

enum status probe_init(struct probe *probe, struct error *err)
{
	*probe = (struct probe){.pidfd = -1, .output.descriptor = -1, .errors.descriptor = -1};
	probe->epoll = epoll_create1(EPOLL_CLOEXEC);
	return probe->epoll >= 0 ? STATUS_OK
				 : error_set(err, STATUS_TEMPORARY,
					   "no descriptor for a command: %s", strerror(errno));
}

void probe_release(struct probe *probe)
{
	if (probe->pid > 0) {
		struct pollfd ended = {.fd = probe->pidfd, .events = POLLIN};
		kill(-probe->pid, SIGKILL);
		/* This returns at once, unless the process hangs in the kernel (a dead network
		 * filesystem). */
		if (poll(&ended, 1, 1000) == 1)
			waitpid(probe->pid, NULL, 0);
	}
	end(probe);
	close_descriptor(&probe->epoll);
}

enum status probe_start(
	struct probe *probe, char *const *argv, int64_t timeout, int64_t now, struct error *err)
{
	int output[2] = {-1, -1}, errors[2] = {-1, -1}, nothing = -1;
	enum status status = STATUS_TEMPORARY;

	nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nothing < 0 || pipe2(output, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0 ||
		fcntl(output[0], F_SETFL, O_NONBLOCK) < 0 ||
		fcntl(errors[0], F_SETFL, O_NONBLOCK) < 0) {
		error_set(err, STATUS_TEMPORARY, "cannot make a pipe: %s", strerror(errno));
		goto out;
	}
	struct process_command command = {.argv = argv,
		.own_group = true,
		.die_with_parent = true,
		.standard_input = nothing,
		.standard_output = output[1],
		.standard_error = errors[1]};
	sigemptyset(&command.ignored);
	status = process_start(&command, &probe->pid, err);
	if (status != STATUS_OK)
		goto out;
	probe->killed = false;
	probe->pidfd = pidfd_open(probe->pid, 0);
	if (probe->pidfd < 0) {
		status = error_set(err, STATUS_TEMPORARY, "cannot watch it: %s", strerror(errno));
		kill(-probe->pid, SIGKILL);
		waitpid(probe->pid, NULL, 0);
		probe->pid = 0;
		goto out;
	}
	probe->timeout = timeout;
	probe->overdue = now + timeout;
	probe->output = (struct probe_capture){.descriptor = output[0]};
	probe->errors = (struct probe_capture){.descriptor = errors[0]};
	output[0] = errors[0] = -1;
	attend(probe, probe->pidfd);
	attend(probe, probe->output.descriptor);
	attend(probe, probe->errors.descriptor);
out:
	close_descriptor(&nothing);
	for (int i = 0; i < 2; i++) {
		close_descriptor(&output[i]);
		close_descriptor(&errors[i]);
	}
	return status;
}

enum probe_state probe_check(struct probe *probe, int64_t now, int *code, struct error *err)
{
	siginfo_t info = {0};
	int wait_status = 0;
	if (probe->pid <= 0)
		return PROBE_IDLE;
	int waited = waitid(P_PID, (id_t)probe->pid, &info, WEXITED | WNOHANG | WNOWAIT);
	drain(probe, &probe->output);
	drain(probe, &probe->errors);
	if (waited < 0) {
		error_set(err, STATUS_TEMPORARY,
			"its exit code was taken by another wait in "
			"this process");
		end(probe);
		return PROBE_FAILED;
	}
	if (info.si_pid == probe->pid) {
		kill(-probe->pid, SIGKILL); /* what it left behind */
		waitpid(probe->pid, &wait_status, 0);
		end(probe);
		keep_first_line(&probe->output);
		keep_first_line(&probe->errors);
		*code = process_exit_code(wait_status);
		return probe->killed ? PROBE_IDLE : PROBE_ENDED;
	}
	if (now < probe->overdue)
		return PROBE_RUNNING;
	/* It is under way until it is really gone. */
	kill(-probe->pid, SIGKILL);
	probe->overdue = now + probe->timeout;
	if (probe->killed)
		return PROBE_RUNNING;
	probe->killed = true;
	error_set(err, STATUS_TEMPORARY, "it took longer than %lld ms and was killed",
		(long long)probe->timeout);
	return PROBE_FAILED;
}
