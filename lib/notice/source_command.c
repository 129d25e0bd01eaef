/* SPDX-License-Identifier: MIT */
/*
 * command:TEXT. A process for each look, in a group of its own; its output comes through pipes, its
 * end through a pidfd, all three behind one epoll descriptor. The group is killed when the command
 * has ended (before it is reaped, while its number is surely still ours) or has taken too long.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "notice/source.h"

/* The start of what the command writes; the rest is read and dropped. */
struct capture {
	int descriptor; /* -1: none */
	char text[256];
	size_t length;
};

struct command_source {
	struct source source;
	char *command;
	int64_t grace, period, timeout;
	int64_t next;	 /* start of the next look */
	int64_t overdue; /* end of the present one */
	int epoll;	 /* one for good: a caller may keep polling it */
	int pidfd;	 /* -1: no look under way */
	pid_t pid;
	struct capture output, errors;
	bool killed; /* this look took too long; its answer was given */
	bool given;
	char given_reason[256];
};

static void close_descriptor(int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
}

static void attend(const struct command_source *self, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN};
	(void)epoll_ctl(self->epoll, EPOLL_CTL_ADD, descriptor, &event);
}

/* Closing alone would not do while a child between fork and exec has it open, too. */
static void dismiss(const struct command_source *self, int *descriptor)
{
	if (*descriptor >= 0)
		(void)epoll_ctl(self->epoll, EPOLL_CTL_DEL, *descriptor, NULL);
	close_descriptor(descriptor);
}

/* Read what there is, without waiting. */
static void drain(const struct command_source *self, struct capture *capture)
{
	char buffer[4096];
	ssize_t n;
	/* A command that writes faster than we read must not keep us here. */
	for (int round = 0; round < 64 && capture->descriptor >= 0; round++) {
		n = read(capture->descriptor, buffer, sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			dismiss(self, &capture->descriptor);
		if (n <= 0)
			return;
		size_t room = sizeof(capture->text) - 1 - capture->length;
		size_t take = (size_t)n < room ? (size_t)n : room;
		memcpy(capture->text + capture->length, buffer, take);
		capture->length += take;
	}
}

static const char *first_line(struct capture *capture)
{
	capture->text[capture->length] = '\0';
	capture->text[strcspn(capture->text, "\r\n")] = '\0';
	return capture->text;
}

static void end_look(struct command_source *self)
{
	dismiss(self, &self->pidfd);
	dismiss(self, &self->output.descriptor);
	dismiss(self, &self->errors.descriptor);
	self->pid = 0;
}

static void command_close(struct source *source)
{
	struct command_source *self = (struct command_source *)source;
	if (self->pid > 0) {
		struct pollfd ended = {.fd = self->pidfd, .events = POLLIN};
		kill(-self->pid, SIGKILL);
		/* At once, unless the kernel holds it (a dead network filesystem). */
		if (poll(&ended, 1, 1000) == 1)
			waitpid(self->pid, NULL, 0);
	}
	end_look(self);
	close_descriptor(&self->epoll);
	free(self->command);
	free(self);
}

static enum status command_open(struct source **source, const char *rest,
	const struct source_options *options, struct error *err)
{
	struct command_source *self = calloc(1, sizeof(*self));
	if (!self)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	self->command = strdup(rest);
	self->grace = options->grace;
	self->period = options->period ? options->period : 1000;
	self->timeout = options->timeout ? options->timeout : 10000;
	self->pidfd = self->output.descriptor = self->errors.descriptor = -1;
	self->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!self->command || self->epoll < 0) {
		error_set(err, STATUS_TEMPORARY, "source command: %s", strerror(errno));
		command_close(&self->source);
		return STATUS_TEMPORARY;
	}
	*source = &self->source;
	return STATUS_OK;
}

static int command_descriptor(const struct source *source)
{
	return ((const struct command_source *)source)->epoll;
}

static int64_t command_due(const struct source *source)
{
	const struct command_source *self = (const struct command_source *)source;
	return self->pid > 0 ? self->overdue : self->next;
}

static enum status start_look(struct command_source *self, int64_t now, struct error *err)
{
	int output[2] = {-1, -1}, errors[2] = {-1, -1}, nothing = -1;
	char shell[] = "/bin/sh", option[] = "-c";
	char *argv[] = {shell, option, self->command, NULL};
	enum status status = STATUS_TEMPORARY;

	self->next = now + self->period;
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
	status = process_start(&command, &self->pid, err);
	if (status != STATUS_OK)
		goto out;
	self->killed = false;
	self->pidfd = pidfd_open(self->pid, 0);
	if (self->pidfd < 0) {
		status = error_set(err, STATUS_TEMPORARY, "cannot watch it: %s", strerror(errno));
		kill(-self->pid, SIGKILL);
		waitpid(self->pid, NULL, 0);
		self->pid = 0;
		goto out;
	}
	self->overdue = now + self->timeout;
	self->output = (struct capture){.descriptor = output[0]};
	self->errors = (struct capture){.descriptor = errors[0]};
	output[0] = errors[0] = -1;
	attend(self, self->pidfd);
	attend(self, self->output.descriptor);
	attend(self, self->errors.descriptor);
out:
	close_descriptor(&nothing);
	for (int i = 0; i < 2; i++) {
		close_descriptor(&output[i]);
		close_descriptor(&errors[i]);
	}
	return status;
}

static enum source_answer judge(
	struct command_source *self, int wait_status, struct notice *notice, struct error *err)
{
	const char *reason = first_line(&self->output);
	const char *complaint = first_line(&self->errors);
	int code = process_exit_code(wait_status);
	if (code == 1) {
		self->given = false;
		return SOURCE_NONE;
	}
	if (code != 0) {
		error_set(err, STATUS_TEMPORARY, "it ended with %d%s%s", code,
			*complaint ? ": " : "", complaint);
		return SOURCE_CANNOT_ASK;
	}
	if (self->given && !strcmp(self->given_reason, reason))
		return SOURCE_NONE;
	self->given = true;
	strcpy(self->given_reason, reason);
	notice_set(notice, self->source.name, reason, notice_time(), self->grace);
	return SOURCE_NOTICE;
}

static enum source_answer command_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct command_source *self = (struct command_source *)source;
	siginfo_t info = {0};

	if (self->pid <= 0) {
		if (now < self->next)
			return SOURCE_PENDING;
		return start_look(self, now, err) == STATUS_OK ? SOURCE_PENDING : SOURCE_CANNOT_ASK;
	}
	int waited = waitid(P_PID, (id_t)self->pid, &info, WEXITED | WNOHANG | WNOWAIT);
	drain(self, &self->output);
	drain(self, &self->errors);
	if (waited < 0) {
		error_set(err, STATUS_TEMPORARY, "somebody else took its exit code");
		end_look(self);
		return SOURCE_CANNOT_ASK;
	}
	if (info.si_pid == self->pid) {
		int wait_status = 0;
		kill(-self->pid, SIGKILL); /* what it left behind */
		waitpid(self->pid, &wait_status, 0);
		end_look(self);
		return self->killed ? SOURCE_PENDING : judge(self, wait_status, notice, err);
	}
	if (now < self->overdue)
		return SOURCE_PENDING;
	/* The next look starts when it is really gone. */
	kill(-self->pid, SIGKILL);
	self->killed = true;
	self->overdue = now + self->timeout;
	error_set(err, STATUS_TEMPORARY, "it took longer than %lld ms and was killed",
		(long long)self->timeout);
	return SOURCE_CANNOT_ASK;
}

static pid_t command_child(const struct source *source)
{
	return ((const struct command_source *)source)->pid;
}

const struct source_kind source_command = {"command", "command:TEXT", command_open, command_close,
	command_descriptor, command_due, command_check, command_child};
