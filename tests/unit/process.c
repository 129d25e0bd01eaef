/* SPDX-License-Identifier: MIT */
/* What /proc tells about a process, also about one that is just changing its program. */
#include "base/process/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define MARK "PREEMPT_TEST=a b"

/* A child that executes a program with one argument, and has begun to. */
static pid_t execute(const char *path, const char *argument, char *const *environment)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		exit(99);
	pid_t pid = fork();
	if (pid == 0) {
		execle(path, path, argument, NULL, environment);
		_exit(99);
	}
	close(ends[1]);
	(void)!read(ends[0], ends, 1);
	close(ends[0]);
	return pid;
}

static enum status answer_about(pid_t pid)
{
	enum status status;
	do
		status = process_has_variable(pid, MARK);
	while (status == STATUS_TEMPORARY);
	return status;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		execv(argv[0], argv); /* again and again */
	alarm(300);
	setenv("PREEMPT_TEST", "a b", 1);
	TEST("the variables of a process")
	{
		pid_t pid = execute("/bin/sleep", "1000", environ);
		CHECK_EQ(answer_about(pid), STATUS_OK);
		CHECK_EQ(process_has_variable(pid, "PREEMPT_TEST=a"), STATUS_NO);
		CHECK_EQ(process_has_variable(pid, "REEMPT_TEST=a b"), STATUS_NO);
		kill(pid, SIGKILL);
		CHECK_EQ(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
		CHECK_EQ(process_has_variable(pid, MARK), STATUS_NO); /* a zombie */
		end(pid);
		CHECK_EQ(process_has_variable(pid, MARK), STATUS_NO);
		CHECK_EQ(
			process_has_variable(2, MARK), STATUS_NO); /* of the kernel, or another's */
	}
	TEST("a process without variables")
	{
		pid_t pid = execute("/bin/sleep", "1000", (char *[]){NULL});
		CHECK_EQ(answer_about(pid), STATUS_NO);
		end(pid);
	}
	TEST("a process that keeps changing its program: the answer is never no")
	{
		char *path = realpath("/proc/self/exe", NULL);
		pid_t pid = execute(path, "again", environ);
		size_t yes = 0, no = 0;
		while (yes < 500) {
			enum status status = process_has_variable(pid, MARK);
			yes += status == STATUS_OK;
			no += status == STATUS_NO;
		}
		CHECK_EQ(no, 0);
		end(pid);
		free(path);
	}
	TEST("ancestors")
	{
		int status;
		pid_t self = getpid();
		pid_t sibling = execute("/bin/sleep", "1000", environ);
		CHECK_EQ(process_parent(sibling), self);
		CHECK(process_is_ancestor(getppid(), self), "our parent");
		CHECK(!process_is_ancestor(self, self), "not we ourselves");
		CHECK(!process_is_ancestor(sibling, self), "not a child");
		CHECK(process_is_ancestor(self, sibling), "of another process");
		CHECK(!process_is_ancestor(0, self), "not the kernel");
		pid_t pid = fork();
		if (pid == 0) {
			pid = fork();
			if (pid == 0)
				_exit(process_is_ancestor(self, getpid()) &&
							!process_is_ancestor(sibling, getpid())
						? 0
						: 1);
			_exit(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		end(sibling);
		CHECK_EQ(process_parent(sibling), 0);
	}
	return unit_end();
}
