/* SPDX-License-Identifier: MIT */
#include "ckpt/content/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS_MAX 16

struct loop {
	size_t count;
	void (*work)(void *context, size_t i);
	void *context;
	atomic_size_t next;
};

static void *run(void *argument)
{
	struct loop *loop = argument;
	for (size_t i; (i = atomic_fetch_add(&loop->next, 1)) < loop->count;)
		loop->work(loop->context, i);
	return NULL;
}

void parallel(size_t count, size_t threads, void (*work)(void *context, size_t i), void *context)
{
	struct loop loop = {.count = count, .work = work, .context = context};
	pthread_t started[THREADS_MAX];
	size_t others = 0;
	while (others + 1 < threads && others + 1 < count && others < THREADS_MAX &&
		pthread_create(&started[others], NULL, run, &loop) == 0)
		others++;
	run(&loop);
	for (size_t i = 0; i < others; i++)
		pthread_join(started[i], NULL);
}
