/* SPDX-License-Identifier: MIT */
/*
 * steps COUNT: microseconds of one preempt_step when nothing is wrong.
 * steps --train COUNT MS: a training of COUNT steps of MS milliseconds each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/preempt.h"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int train(uint64_t count, long milliseconds)
{
	struct timespec step = {milliseconds / 1000, milliseconds % 1000 * 1000000};
	for (uint64_t s = 0; s < count; s++) {
		if (preempt_step(s)) {
			int code = preempt_saved(s);
			if (code)
				return code;
		}
		nanosleep(&step, NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "--train"))
		return train(strtoull(argv[2], NULL, 10), atol(argv[3]));
	if (argc != 2)
		return 2;
	uint64_t count = strtoull(argv[1], NULL, 10);
	double start = now();
	for (uint64_t s = 0; s < count; s++)
		if (preempt_step(s))
			return 9;
	printf("%.2f\n", (now() - start) / (double)count);
	return 0;
}
