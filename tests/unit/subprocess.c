/* SPDX-License-Identifier: MIT */
/* Commands: what they are given, what is kept of them, how they end and are ended. */
#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "unit.h"

#define PATIENCE 60000 /* ms; what takes longer has failed */

static pid_t immortal; /* what would have been killed, in D state for all we know */
static bool spared;

/* Before libc. */
int kill(pid_t pid, int number)
{
	if (spared && number == SIGKILL) {
		immortal = pid < 0 ? -pid : pid;
		return 0;
	}
	return (int)syscall(SYS_kill, pid, number);
}

/* A shell command of which all is kept. */
static struct subprocess_options keeping(const char *text)
{
	return (struct subprocess_options){.shell = text,
		.standard = {SUBPROCESS_NOTHING, SUBPROCESS_KEEP, SUBPROCESS_KEEP},
		.limit = clock_after(PATIENCE)};
}

/* Whether it ends with code, having written this to stdout and stderr. */
static bool says(
	const struct subprocess_options *how, int code, const char *output, const char *errors)
{
	struct subprocess child;
	struct error err = {0};
	enum status status = subprocess_run(&child, how, &err);
	bool right = status == STATUS_OK && child.code == code &&
		     !strcmp(text_string(&child.output), output) &&
		     !strcmp(text_string(&child.errors), errors);
	if (!right)
		printf("# %d %d %s|%s|%s\n", status, child.code, text_string(&child.output),
			text_string(&child.errors), err.text);
	subprocess_release(&child);
	return right;
}

static void given(void)
{
	struct subprocess_options how = keeping("cat; echo out; echo err >&2; exit 3");
	CHECK(says(&how, 3, "out\n", "err\n"), "stdout and stderr apart");
	how.standard[2] = SUBPROCESS_JOINED;
	CHECK(says(&how, 3, "out\nerr\n", ""), "joined");
	how.input = "in\n";
	CHECK(says(&how, 3, "in\nout\nerr\n", ""), "bytes as stdin");
	how.input = NULL;
	how.keep = 5;
	CHECK(says(&how, 3, "out\ne", ""), "no more is kept than asked for");
	how = keeping("cat; pwd; echo $A; kill -s USR1 $$; echo still here; kill -s KILL $$");
	char variable[] = "A=b", path[] = "PATH=/bin:/usr/bin";
	char *const environment[] = {variable, path, NULL};
	sigset_t ignored;
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGUSR1);
	how.environment = environment;
	how.directory = "/proc";
	how.ignored = &ignored;
	how.input_path = "/proc/sys/kernel/ostype";
	CHECK(says(&how, 128 + SIGKILL, "Linux\n/proc\nb\nstill here\n", ""),
		"its input, directory, environment and ignored signals");
	how = keeping("head -c 1000000 /dev/zero; echo end >&2");
	how.keep = 1;
	CHECK(says(&how, 0, "", "e"), "it never waits for us to read");
}

static enum status refused(const struct subprocess_options *how)
{
	struct subprocess child;
	struct error err = {0};
	enum status status = subprocess_start(&child, how, &err);
	CHECK(!child.pid && *err.text, "refused: %s", err.text);
	subprocess_release(&child);
	return status;
}

static void refusals(void)
{
	char missing[] = "./not-there", directory[] = "/proc";
	char *argv[] = {missing, NULL};
	struct subprocess_options how = {.argv = argv};
	CHECK_EQ(refused(&how), STATUS_NOT_FOUND);
	argv[0] = directory;
	CHECK_EQ(refused(&how), STATUS_CANNOT_RUN);
	how = (struct subprocess_options){.shell = "true", .directory = "/not/there"};
	CHECK_EQ(refused(&how), STATUS_NO);
	how = (struct subprocess_options){.shell = "true", .input_path = "/proc"};
	CHECK_EQ(refused(&how), STATUS_NO);
}

static void limits(void)
{
	for (int i = 0; i < 2; i++) {
		struct subprocess child;
		struct error err;
		struct subprocess_options how = keeping("echo said; exec sleep 1000");
		how.limit = clock_after(50);
		spared = i == 1;
		enum status status = subprocess_run(&child, &how, &err);
		CHECK(status == STATUS_TIMEOUT && !strcmp(text_string(&child.output), "said\n"),
			"given up in time%s", i ? ", though it does not die" : "");
		subprocess_release(&child);
	}
	spared = false;
	CHECK(immortal > 0 && kill(immortal, SIGKILL) == 0 &&
		waitpid(immortal, NULL, 0) == immortal);
}

static int epoll; /* of all */

static void wait_once(const struct subprocess *child)
{
	struct pollfd polled = {
		.fd = child->epoll ? child->epoll : child->end.descriptor, .events = POLLIN};
	(void)poll(&polled, 1, clock_poll_timeout(child->end.due));
}

static enum subprocess_state wait_for(struct subprocess *child)
{
	enum subprocess_state state;
	while ((state = subprocess_check(child, clock_now())) == SUBPROCESS_RUNS)
		wait_once(child);
	return state;
}

static bool is_alive(pid_t pid)
{
	return kill(pid, 0) == 0;
}

static void looked_at(void)
{
	struct error err;
	struct subprocess child = {0};
	epoll = epoll_create1(EPOLL_CLOEXEC);
	TEST("what it has left in its group goes with it, unless it is to be spared")
	{
		for (int spare = 0; spare < 2; spare++) {
			struct subprocess_options how =
				keeping("sleep 1000 >/dev/null 2>&1 & echo $!");
			how.epoll = epoll;
			CHECK(subprocess_start(&child, &how, &err) == STATUS_OK);
			CHECK_EQ(wait_for(&child), SUBPROCESS_ENDED);
			CHECK(child.ended && child.code == 0 && child.pid);
			pid_t left = atoi(text_string(&child.output));
			CHECK(left > 0 && is_alive(left));
			subprocess_reap(&child, spare);
			CHECK(!child.pid && !subprocess_check(&child, clock_now()));
			int64_t until = clock_after(spare ? 50 : PATIENCE);
			while (is_alive(left) && clock_now() < until)
				clock_sleep_until(clock_after(2));
			CHECK_EQ(is_alive(left), spare);
			kill(left, SIGKILL);
			subprocess_release(&child);
		}
		CHECK(!descriptor_is_ready(epoll));
	}
	TEST("its limit is reported once, and a signal reaches it")
	{
		struct subprocess_options how =
			keeping("trap 'exit 7' USR1; echo; while :; do sleep 0.05; done");
		how.epoll = epoll;
		CHECK(subprocess_start(&child, &how, &err) == STATUS_OK);
		while (!child.output.length) {
			wait_once(&child);
			CHECK_EQ(subprocess_check(&child, clock_now()), SUBPROCESS_RUNS);
		}
		subprocess_signal(&child, SIGUSR1);
		CHECK_EQ(wait_for(&child), SUBPROCESS_ENDED);
		CHECK_EQ(child.code, 7);
		subprocess_release(&child);
		how = keeping("exec sleep 1000");
		how.limit = clock_after(50);
		how.epoll = epoll;
		CHECK(subprocess_start(&child, &how, &err) == STATUS_OK);
		CHECK_EQ(wait_for(&child), SUBPROCESS_LATE);
		CHECK_EQ(wait_for(&child), SUBPROCESS_ENDED);
		CHECK(child.late && child.code == 128 + SIGKILL);
		subprocess_release(&child);
	}
	TEST("one that is not ours is only looked at")
	{
		struct subprocess other;
		pid_t pid = fork();
		if (pid == 0) {
			pause();
			_exit(0);
		}
		CHECK(subprocess_watch(&other, pid, &err) == STATUS_OK);
		subprocess_release(&other);
		CHECK(is_alive(pid));
		CHECK(subprocess_watch(&other, pid, &err) == STATUS_OK);
		subprocess_signal(&other, SIGTERM);
		CHECK_EQ(wait_for(&other), SUBPROCESS_ENDED);
		subprocess_release(&other);
		CHECK(waitpid(pid, NULL, 0) == pid);
		CHECK(subprocess_watch(&other, pid, &err) == STATUS_NO);
	}
	TEST("the others are reaped, and what we started is not")
	{
		struct subprocess_options how = keeping("exit 5");
		CHECK(subprocess_start(&child, &how, &err) == STATUS_OK);
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		while (is_alive(pid)) {
			if (subprocess_check(&child, clock_now()) == SUBPROCESS_ENDED)
				subprocess_reap(&child, false);
			subprocess_reap_others(NULL);
			clock_sleep_until(clock_after(2));
		}
		CHECK(!child.pid || wait_for(&child) == SUBPROCESS_ENDED);
		CHECK_EQ(child.code, 5);
		subprocess_release(&child);
		CHECK(waitpid(-1, NULL, WNOHANG) < 0);
	}
	close(epoll);
}

int main(void)
{
	alarm(300);
	given();
	refusals();
	limits();
	looked_at();
	return unit_end();
}
