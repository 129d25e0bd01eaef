/* SPDX-License-Identifier: MIT */
#include "base/process/ending.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/clock.h"

/* Signals that end us. They are blocked except in ending_wait, so that none is missed. */
static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static volatile sig_atomic_t ended_by;
static sigset_t waiting_mask;

static void end(int number)
{
	ended_by = number;
}

/* Sets handlers, not SIG_IGN, which the commands that we start would inherit. */
void ending_catch(void)
{
	struct sigaction old, action = {.sa_handler = end};
	sigset_t block;
	sigemptyset(&block);
	sigprocmask(SIG_SETMASK, NULL, &waiting_mask);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		/* Skip a signal that our parent ignored or that a notice source handles. */
		if (sigaction(endings[i], NULL, &old) < 0 || old.sa_handler != SIG_DFL)
			continue;
		sigaction(endings[i], &action, NULL);
		sigaddset(&block, endings[i]);
		sigdelset(&waiting_mask, endings[i]);
	}
	sigprocmask(SIG_BLOCK, &block, NULL);
	/* With SIGPIPE caught, the write fails with EPIPE, and this program can end its commands
	 * before it exits. */
	if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		sigaction(SIGPIPE, &action, NULL);
}

int ending_signal(void)
{
	return ended_by;
}

void ending_set(int number)
{
	ended_by = number;
}

int ending_descriptor(void)
{
	sigset_t blocked, ours;
	sigemptyset(&ours);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (sigismember(&blocked, endings[i]))
			sigaddset(&ours, endings[i]);
	return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

int ending_die(int number)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t only;
	sigemptyset(&only);
	sigaddset(&only, number);
	sigaction(number, &action, NULL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	return 128 + number;
}

void ending_wait(struct pollfd *polls, size_t count, int64_t deadline)
{
	int64_t left = deadline == CLOCK_NEVER ? 0 : deadline - clock_now();
	struct timespec limit = {.tv_sec = left > 0 ? (time_t)(left / 1000) : 0,
		.tv_nsec = left > 0 ? (long)(left % 1000) * 1000000 : 0};
	for (size_t i = 0; i < count; i++)
		polls[i].revents = 0;
	if (ended_by)
		return;
	if (ppoll(polls, count, deadline == CLOCK_NEVER ? NULL : &limit, &waiting_mask) < 0)
		for (size_t i = 0; i < count; i++)
			polls[i].revents = 0;
}
