/* SPDX-License-Identifier: MIT */
/*
 * signal:TERM,USR1. A handler stamps each signal with the time and writes it into a pipe: if the
 * caller is busy for seconds (a slow shared filesystem), the deadline still counts from the signal.
 * With a signalfd only the time of reading would be known.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "notice/source.h"

struct caught {
	int number, code; /* code: si_code; > 0: the kernel sent it */
	pid_t sender;
	uid_t user;
	struct notice_time time;
};

struct signal_source {
	struct source source;
	int ends[2];
	int64_t grace;
	sigset_t watched, unblocked; /* unblocked: blocked before signal_open; close restores it */
	struct sigaction old[NSIG];
};

/* By signal: the pipe that the handler writes to; 0: not watched. Signal handlers are global. */
static atomic_int writing_ends[NSIG];

static void catch (int number, siginfo_t *info, void *context)
{
	int kept = errno;
	int end = writing_ends[number];
	(void)context;
	struct caught caught = {.number = number, .code = info->si_code, .time = notice_time()};
	if (info->si_code <= 0) {
		caught.sender = info->si_pid;
		caught.user = info->si_uid;
	}
	/* If the pipe is full, about two thousand signals are unread: drop this one. */
	if (end)
		(void)!write(end, &caught, sizeof(caught));
	errno = kept;
}

static bool refused(int number)
{
	static const int never[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE, SIGSEGV, SIGBUS, SIGFPE,
		SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (never[i] == number)
			return true;
	return false;
}

static void signal_close(struct source *source)
{
	struct signal_source *self = (struct signal_source *)source;
	pthread_sigmask(SIG_BLOCK, &self->unblocked, NULL);
	for (int number = 1; number < SIGRTMIN; number++) {
		if (!sigismember(&self->watched, number))
			continue;
		sigaction(number, &self->old[number], NULL);
		writing_ends[number] = 0;
	}
	if (self->ends[0])
		close(self->ends[0]);
	if (self->ends[1])
		close(self->ends[1]);
	free(self);
}

/* A signal that another source catches stays with that one. */
static enum status watch_signal(struct signal_source *self, int number, struct error *err)
{
	const char *name = sigabbrev_np(number);
	if (refused(number))
		return error_set(err, STATUS_USAGE,
			"source signal: %s cannot be a notice; take TERM, USR1, ...", name);
	if (writing_ends[number])
		return STATUS_OK;
	struct sigaction action = {.sa_sigaction = catch, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigfillset(&action.sa_mask);
	writing_ends[number] = self->ends[1];
	if (sigaction(number, &action, &self->old[number]) < 0) {
		writing_ends[number] = 0;
		return error_set(err, STATUS_USAGE, "source signal: cannot catch %s: %s", name,
			strerror(errno));
	}
	sigaddset(&self->watched, number);
	return STATUS_OK;
}

static enum status signal_open(struct source **source, const char *rest,
	const struct source_options *options, struct error *err)
{
	struct signal_source *self = xcalloc(1, sizeof(*self));
	sigset_t named;
	sigemptyset(&named);
	sigemptyset(&self->watched);
	enum status status = parse_signals(rest, &named, "source signal", err);
	sigemptyset(&self->unblocked);
	self->grace = options->grace;
	if (status == STATUS_OK && pipe2(self->ends, O_CLOEXEC | O_NONBLOCK) < 0)
		status = error_errno(err, errno, "make a pipe");
	for (int number = 1; number < NSIG && status == STATUS_OK; number++)
		if (sigismember(&named, number) == 1)
			status = watch_signal(self, number, err);
	if (status != STATUS_OK) {
		signal_close(&self->source);
		return status;
	}
	sigset_t old;
	pthread_sigmask(SIG_UNBLOCK, &self->watched, &old);
	sigandset(&self->unblocked, &self->watched, &old);
	*source = &self->source;
	return STATUS_OK;
}

static int signal_descriptor(const struct source *source)
{
	return ((const struct signal_source *)source)->ends[0];
}

/* "sent by process 812 (slurmstepd) of user 0", or the part of it that is known. */
static void describe(const struct caught *caught, char *reason, size_t size)
{
	char path[64];
	struct text name = {0};
	if (caught->code > 0) {
		snprintf(reason, size, "sent by the kernel");
		return;
	}
	if (caught->sender == 0) {
		snprintf(reason, size, "sent from outside this container");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)caught->sender);
	if (file_read_whole(path, 256, &name, NULL) != STATUS_OK)
		text_release(&name);
	snprintf(reason, size, "sent by process %d%s%.*s%s of user %u", (int)caught->sender,
		name.length ? " (" : "", (int)strcspn(text_string(&name), "\n"), text_string(&name),
		name.length ? ")" : "", (unsigned)caught->user);
	text_release(&name);
}

static enum source_answer signal_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct signal_source *self = (struct signal_source *)source;
	struct caught caught;
	char name[32], reason[128];
	(void)now;
	(void)err;
	ssize_t n;
	do
		n = read(self->ends[0], &caught, sizeof(caught));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(caught))
		return SOURCE_NONE;
	snprintf(name, sizeof(name), "signal:%s", sigabbrev_np(caught.number));
	describe(&caught, reason, sizeof(reason));
	notice_set(notice, name, reason, caught.time, self->grace);
	notice->signal = caught.number;
	return SOURCE_NOTICE;
}

static bool signal_take_held(struct source *source, struct notice *notice)
{
	return signal_check(source, 0, notice, NULL) == SOURCE_NOTICE;
}

const struct source_kind source_signal = {.name = "signal",
	.example = "signal:TERM,USR1",
	.signals = "",
	.open = signal_open,
	.close = signal_close,
	.descriptor = signal_descriptor,
	.check = signal_check,
	.take_held = signal_take_held};
