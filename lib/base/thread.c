/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

int thread_start(pthread_t *thread, void *(*work)(void *), void *context)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int number = pthread_create(thread, NULL, work, context);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return number;
}

bool thread_join(pthread_t thread, int64_t patience)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += patience / 1000;
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
}
