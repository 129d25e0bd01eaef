/* SPDX-License-Identifier: MIT */
#include "ckpt/parallel.h"

#include <pthread.h>

#define THREADS_MAX 16

struct loop {
	size_t count;
	enum status (*work)(void *context, size_t i, struct error *err);
	void *context;
	pthread_mutex_t mutex; /* for the members below */
	size_t next;
	size_t first;	    /* the first that was not STATUS_OK; count: none */
	enum status status; /* its result */
	struct error err;
};

static void *run(void *argument)
{
	struct loop *loop = argument;
	pthread_mutex_lock(&loop->mutex);
	while (loop->next < loop->count && loop->status == STATUS_OK) {
		size_t i = loop->next++;
		struct error err = {0};
		pthread_mutex_unlock(&loop->mutex);
		enum status status = loop->work(loop->context, i, &err);
		pthread_mutex_lock(&loop->mutex);
		if (status != STATUS_OK && i < loop->first) {
			loop->first = i;
			loop->status = status;
			loop->err = err;
		}
	}
	pthread_mutex_unlock(&loop->mutex);
	return NULL;
}

enum status parallel(size_t count, size_t threads,
	enum status (*work)(void *context, size_t i, struct error *err), void *context,
	struct error *err)
{
	struct loop loop = {.count = count,
		.work = work,
		.context = context,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.first = count};
	pthread_t started[THREADS_MAX];
	size_t others = 0;
	while (others + 1 < threads && others + 1 < count && others < THREADS_MAX &&
		pthread_create(&started[others], NULL, run, &loop) == 0)
		others++;
	run(&loop);
	for (size_t i = 0; i < others; i++)
		pthread_join(started[i], NULL);
	if (loop.status != STATUS_OK && err)
		*err = loop.err;
	return loop.status;
}
