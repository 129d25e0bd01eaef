/* SPDX-License-Identifier: MIT */
/* What a loop waits for: descriptors, signals, processes, instants, and all of them at once. */
#include "base/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static struct loop_watch reading(int descriptor)
{
	return (struct loop_watch){.descriptor = descriptor, .due = CLOCK_NEVER};
}

static void descriptors(void)
{
	struct loop loop;
	struct error err;
	struct loop_watch both = {.descriptor = -1, .due = CLOCK_NEVER};
	int ends[2], other[2];
	CHECK(pipe(ends) == 0 && pipe(other) == 0 && loop_open(&loop, &err) == STATUS_OK);
	struct loop_watch first = reading(ends[0]), second = reading(other[0]);
	first.parent = second.parent = &both;
	TEST("a descriptor is ready until it was read, its parent with it")
	{
		loop_add(&loop, &first);
		loop_add(&loop, &second);
		CHECK(!loop_wait(&loop, 0) && !first.ready && !both.ready);
		CHECK(write(ends[1], "xy", 2) == 2);
		for (int i = 0; i < 2; i++) {
			char byte;
			CHECK(loop_is_ready(loop_descriptor(&loop)));
			CHECK(loop_wait(&loop, CLOCK_NEVER));
			CHECK(first.ready && !second.ready && both.ready);
			CHECK(read(ends[0], &byte, 1) == 1);
		}
		CHECK(!loop_wait(&loop, 0) && !first.ready && !both.ready);
	}
	TEST("what was taken out, or has another descriptor, is not waited for")
	{
		CHECK(write(ends[1], "x", 1) == 1 && write(other[1], "x", 1) == 1);
		loop_remove(&loop, &second);
		loop_remove(&loop, &second);
		CHECK(loop_wait(&loop, 0) && first.ready && !second.ready);
		loop_change(&loop, &first, -1);
		CHECK(!loop_wait(&loop, 0));
		loop_change(&loop, &first, other[0]);
		CHECK(loop_wait(&loop, 0) && first.ready);
	}
	TEST("a reader that goes away")
	{
		struct loop_watch out = {
			.descriptor = ends[1], .due = CLOCK_NEVER, .errors_only = true};
		loop_remove(&loop, &first);
		loop_add(&loop, &out);
		CHECK(!loop_wait(&loop, 0));
		close(ends[0]);
		CHECK(loop_wait(&loop, 0) && out.ready);
		loop_remove(&loop, &out);
	}
	TEST("a regular file can always be read")
	{
		struct loop_watch file = reading(open("/proc/self/exe", O_RDONLY));
		loop_add(&loop, &file);
		CHECK(file.always && loop_wait(&loop, CLOCK_NEVER) && file.ready);
		CHECK_EQ(loop_due(&loop), 0);
		loop_remove(&loop, &file);
		CHECK_EQ(loop_due(&loop), CLOCK_NEVER);
		close(file.descriptor);
	}
	loop_close(&loop);
	loop_close(&loop);
}

static void instants(void)
{
	struct loop loop;
	struct error err;
	TEST("the earliest due, and until")
	{
		struct loop_watch soon = {.descriptor = -1, .due = clock_after(50)};
		struct loop_watch late = {.descriptor = -1, .due = clock_after(60000)};
		CHECK(loop_open(&loop, &err) == STATUS_OK);
		loop_add(&loop, &soon);
		loop_add(&loop, &late);
		CHECK_EQ(loop_due(&loop), soon.due);
		CHECK(!loop_wait(&loop, clock_now() - 1) || clock_now() >= soon.due);
		while (!loop_wait(&loop, CLOCK_NEVER))
			;
		CHECK(soon.ready && !late.ready && clock_now() >= soon.due);
		soon.due = CLOCK_NEVER;
		int64_t until = clock_after(50);
		while (clock_now() < until)
			CHECK(!loop_wait(&loop, until));
		CHECK(!soon.ready);
		loop_close(&loop);
	}
}

static void ignore_it(int number)
{
	(void)number;
}

static void signals_and_ends(void)
{
	static const int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGCHLD};
	struct loop loop;
	struct error err;
	struct signalfd_siginfo info;
	TEST("signals are read, unless they are ignored or handled")
	{
		signal(SIGHUP, SIG_IGN);
		signal(SIGUSR2, ignore_it);
		CHECK(loop_open(&loop, &err) == STATUS_OK && loop_signal(&loop, NULL) == 0);
		CHECK(loop_catch(&loop, numbers, 1, &err) == STATUS_OK);
		CHECK(loop_catch(&loop, numbers, 4, &err) == STATUS_OK);
		for (size_t i = 0; i < 3; i++)
			kill(getpid(), numbers[i]);
		CHECK(loop_wait(&loop, CLOCK_NEVER) && loop.signals.ready);
		CHECK(loop_signal(&loop, &info) == SIGUSR1 && info.ssi_pid == (uint32_t)getpid());
		CHECK(loop_signal(&loop, &info) == 0 && !loop_wait(&loop, 0));
	}
	TEST("the end of a process")
	{
		pid_t pid = fork();
		if (pid == 0)
			_exit(3);
		struct loop_watch end = reading(pidfd_open(pid, 0));
		loop_add(&loop, &end);
		do
			CHECK(loop_wait(&loop, CLOCK_NEVER));
		while (!end.ready && loop_signal(&loop, NULL) == SIGCHLD);
		CHECK(end.ready && waitpid(pid, NULL, 0) == pid);
		loop_remove(&loop, &end);
		close(end.descriptor);
	}
	TEST("closed, it keeps its signals blocked")
	{
		sigset_t blocked;
		CHECK(loop_catch_endings(&loop, &err) == STATUS_OK);
		loop_close(&loop);
		sigprocmask(SIG_SETMASK, NULL, &blocked);
		CHECK(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGUSR1));
		CHECK(!sigismember(&blocked, SIGHUP) && !sigismember(&blocked, SIGUSR2));
	}
}

int main(void)
{
	descriptors();
	instants();
	signals_and_ends();
	return unit_end();
}
