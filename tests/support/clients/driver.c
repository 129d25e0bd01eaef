/* SPDX-License-Identifier: MIT
 *
 * A training program for tests/programs/preempt-step.bats: commands on stdin, answers on stdout, as
 * driver.sh.
 */
#include "client/preempt.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void handler(int number)
{
	(void)number;
	if (write(STDOUT_FILENO, "trapped\n", 8) < 0)
		_exit(99);
}

static int child(uint64_t n)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		preempt_step(n);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void *saver(void *step)
{
	uint64_t n = *(uint64_t *)step;
	free(step);
	printf("async %d\n", preempt_saved(n));
	return NULL;
}

static void saver_start(uint64_t n)
{
	pthread_t thread;
	uint64_t *step = malloc(sizeof *step);
	if (!step)
		exit(99);
	*step = n;
	if (pthread_create(&thread, NULL, saver, step) != 0)
		exit(99);
	pthread_detach(thread);
}

/* Closes everything, as a daemon does, and opens a file of its own where the client's were. */
static void clobber(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	for (int i = 0; i < 8; i++)
		if (open(getenv("MINE"), O_RDWR) < 0)
			exit(99);
}

/* A wrong use ends this process, as it ends a shell. */
static int saved(uint64_t n)
{
	int code = preempt_saved(n);
	if (code == 2)
		exit(code);
	return code;
}

int main(void)
{
	char line[256], command[16], first[64], second[64];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("HANDLER"))
		signal(SIGTERM, handler);
	while (fgets(line, sizeof line, stdin)) {
		int words = sscanf(line, "%15s %63s %63s", command, first, second);
		if (words < 1)
			continue;
		uint64_t n = words > 1 ? strtoull(first, NULL, 10) : 0;
		if (strcmp(command, "step") == 0 && words == 3)
			printf("step %d\n", preempt_step_next(n, strtoull(second, NULL, 10)));
		else if (strcmp(command, "step") == 0)
			printf("step %d\n", preempt_step(n));
		else if (strcmp(command, "saved") == 0)
			printf("saved %d\n", saved(n));
		else if (strcmp(command, "ask") == 0)
			printf("ask %d\n", preempt_ask(n, n + 1));
		else if (strcmp(command, "report") == 0)
			printf("report %d\n", preempt_saved(n));
		else if (strcmp(command, "child") == 0)
			printf("child %d\n", child(n));
		else if (strcmp(command, "async") == 0)
			saver_start(n);
		else if (strcmp(command, "clobber") == 0) {
			clobber();
			printf("clobber\n");
		}
	}
	return 0;
}
