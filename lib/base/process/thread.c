/* SPDX-License-Identifier: MIT */
#include "base/process/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/*
 * The contexts of threads that were not joined. They stay reachable, so that a leak checker that
 * runs after the end of such a thread does not report them.
 */
struct kept {
	struct kept *next;
	const void *context;
};
static struct kept *_Atomic all_kept;

static void keep(const void *context)
{
	struct kept *kept = malloc(sizeof(*kept));
	if (!kept)
		return;
	kept->context = context;
	kept->next = atomic_load(&all_kept);
	while (!atomic_compare_exchange_weak(&all_kept, &kept->next, kept))
		;
}

int thread_start(pthread_t *thread, void *(*work)(void *), void *context)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int number = pthread_create(thread, NULL, work, context);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return number;
}

bool thread_join(pthread_t thread, const void *context, int64_t patience)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	int64_t nanoseconds = until.tv_nsec + patience % 1000 * 1000000;
	until.tv_sec += patience / 1000 + nanoseconds / 1000000000;
	until.tv_nsec = nanoseconds % 1000000000;
	if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0)
		return true;
	keep(context);
	return false;
}
