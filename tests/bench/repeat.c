/* SPDX-License-Identifier: MIT */
/*
 * repeat COUNT COMMAND [ARG...]: start COMMAND COUNT times, one after the other, and print the
 * median time of fork + exec + wait in milliseconds. "{}" in an argument becomes the number of the
 * start. repeat -COUNT ...: start all COUNT at once, print the time until the last has ended.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static pid_t start(char **argv, int number)
{
	char *own[64], *made[64] = {0};
	int count = 0;
	for (; argv[count] && count < 63; count++) {
		char *hole = strstr(argv[count], "{}");
		own[count] = argv[count];
		if (hole && asprintf(&made[count], "%.*s%d%s", (int)(hole - argv[count]),
				    argv[count], number, hole + 2) > 0)
			own[count] = made[count];
	}
	own[count] = NULL;
	pid_t pid = -1;
	if (posix_spawnp(&pid, own[0], NULL, NULL, own, environ) != 0)
		exit(127);
	for (int i = 0; i < count; i++)
		free(made[i]);
	return pid;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 0, status;
	if (count == 0)
		return 2;
	int null = open("/dev/null", O_WRONLY), out = dup(1);
	dup2(null, 1);
	double began = now();
	if (count < 0) {
		for (int i = 0; i < -count; i++)
			(void)start(argv + 2, i);
		while (wait(&status) > 0)
			;
		dprintf(out, "%.1f\n", now() - began);
		return 0;
	}
	double *times = calloc((size_t)count, sizeof(*times));
	for (int i = 0; i < count; i++) {
		began = now();
		pid_t pid = start(argv + 2, i);
		waitpid(pid, &status, 0);
		times[i] = now() - began;
		if (status != 0 && status != 1 << 8)
			return 1;
	}
	qsort(times, (size_t)count, sizeof(*times), by_size);
	dprintf(out, "%.2f\n", times[count / 2]);
	free(times);
	return 0;
}
