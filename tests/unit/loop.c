/* SPDX-License-Identifier: MIT */
/* What ends a wait of base/loop, what it takes in, and what it does not lose. */
#include "base/loop.h"

#include <signal.h>
#include <unistd.h>

#include "unit.h"

#define LONG 60000 /* ms: a wait that lasts so long has failed */

/* How long the next wait lasts, in ms. */
static int64_t wait_once(struct loop *loop)
{
	int64_t began = clock_now();
	loop_wake_at(loop, clock_after(LONG));
	loop_wait(loop);
	return clock_now() - began;
}

static void timers(void)
{
	struct loop loop;
	CHECK_EQ(loop_open(&loop, NULL), STATUS_OK);
	TEST("the earliest instant ends the wait, and only the next one")
	{
		loop_wake_at(&loop, clock_after(30));
		loop_wake_at(&loop, clock_after(LONG));
		int64_t lasted = wait_once(&loop);
		CHECK(lasted >= 25 && lasted < LONG, "%lld ms", (long long)lasted);
		CHECK_EQ(loop.due, CLOCK_NEVER);
	}
	TEST("an instant that has passed is no wait")
	{
		loop_wake_at(&loop, 1);
		CHECK(wait_once(&loop) < LONG);
		CHECK_EQ(loop_take_signal(&loop, NULL), 0);
	}
	loop_close(&loop);
}

static void descriptors(void)
{
	struct loop loop;
	int ends[2];
	char byte = 'x';
	CHECK_EQ(loop_open(&loop, NULL), STATUS_OK);
	CHECK_EQ(pipe(ends), 0);
	TEST("a watched descriptor ends each wait until it was read")
	{
		loop_watch(&loop, -1);
		loop_watch(&loop, ends[0]);
		loop_watch(&loop, ends[0]);
		CHECK_EQ(write(ends[1], &byte, 1), 1);
		CHECK(wait_once(&loop) < LONG);
		CHECK(wait_once(&loop) < LONG);
		CHECK_EQ(read(ends[0], &byte, 1), 1);
		loop_wake_at(&loop, clock_after(10));
		CHECK(wait_once(&loop) >= 5);
	}
	TEST("one that was forgotten ends none")
	{
		CHECK_EQ(write(ends[1], &byte, 1), 1);
		loop_forget(&loop, ends[0]);
		loop_wake_at(&loop, clock_after(10));
		CHECK(wait_once(&loop) >= 5);
	}
	TEST("the end of the writer ends the wait, and closing ends the watch")
	{
		CHECK_EQ(read(ends[0], &byte, 1), 1);
		loop_watch(&loop, ends[0]);
		close(ends[1]);
		CHECK(wait_once(&loop) < LONG);
		close(ends[0]);
		loop_wake_at(&loop, clock_after(10));
		CHECK(wait_once(&loop) >= 5);
	}
	TEST("a file ends the wait for which it is watched")
	{
		FILE *file = tmpfile();
		loop_watch(&loop, fileno(file));
		CHECK(wait_once(&loop) < LONG);
		loop_wake_at(&loop, clock_after(10));
		CHECK(wait_once(&loop) >= 5);
		fclose(file);
	}
	loop_close(&loop);
}

static enum status open_both(struct loop *loop)
{
	static const int numbers[] = {SIGUSR1, SIGUSR2};
	enum status status = loop_open(loop, NULL);
	return status == STATUS_OK ? loop_open_signals(loop, numbers, 2, NULL) : status;
}

static void signals(void)
{
	struct signalfd_siginfo info;
	struct loop loop;
	CHECK_EQ(open_both(&loop), STATUS_OK);
	TEST("a signal ends the wait, and is taken once, with its sender")
	{
		kill(getpid(), SIGUSR1);
		CHECK(wait_once(&loop) < LONG);
		CHECK_EQ(loop_take_signal(&loop, &info), SIGUSR1);
		CHECK_EQ(info.ssi_pid, getpid());
		CHECK_EQ(loop_take_signal(&loop, &info), 0);
	}
	TEST("a signal that one loop did not take, or that comes between two, is for the second")
	{
		kill(getpid(), SIGUSR1);
		loop_close(&loop);
		kill(getpid(), SIGUSR2);
		CHECK_EQ(open_both(&loop), STATUS_OK);
		CHECK(wait_once(&loop) < LONG);
		CHECK_EQ(loop_take_signal(&loop, NULL), SIGUSR1);
		CHECK_EQ(loop_take_signal(&loop, NULL), SIGUSR2);
	}
	TEST("a signal that is ignored stays ignored")
	{
		loop_close(&loop);
		signal(SIGUSR1, SIG_IGN);
		CHECK_EQ(open_both(&loop), STATUS_OK);
		kill(getpid(), SIGUSR1);
		CHECK_EQ(loop_take_signal(&loop, NULL), 0);
	}
	loop_close(&loop);
	loop_close(&loop);
}

int main(void)
{
	timers();
	descriptors();
	signals();
	return unit_end();
}
