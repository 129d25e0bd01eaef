/* SPDX-License-Identifier: MIT
 *
 * step COUNT: calls preempt_step COUNT times on the board in PREEMPT_DIR; prints us per step.
 */
#include "client/preempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
	struct timespec from, to;
	preempt_step(0);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (uint64_t s = 1; s <= count; s++)
		if (preempt_step(s) != 0)
			return 1;
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%.2f\n",
		((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
			1e3 / (double)count);
	return 0;
}
