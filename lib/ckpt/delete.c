/* SPDX-License-Identifier: MIT */
#include "ckpt/delete.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/file.h"

#define THREADS_MAX 4
/* So many are not worth a thread. */
#define FEW 32

struct deleting {
	int directory;
	const char *const *names;
	size_t count;
	enum status *statuses;
	atomic_size_t next;
	pthread_mutex_t mutex; /* of those below */
	size_t first_failed;   /* count: none */
	struct error err;
};

static void *work_on(void *argument)
{
	struct deleting *work = argument;
	for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->count;) {
		struct error err;
		work->statuses[i] = file_remove_tree_at(work->directory, work->names[i], &err);
		if (work->statuses[i] == STATUS_OK)
			continue;
		pthread_mutex_lock(&work->mutex);
		if (i < work->first_failed) {
			work->first_failed = i;
			work->err = err;
		}
		pthread_mutex_unlock(&work->mutex);
	}
	return NULL;
}

enum status delete_all(int directory, const char *const *names, size_t count, enum status *statuses,
	struct error *err)
{
	struct deleting work = {.directory = directory,
		.names = names,
		.count = count,
		.statuses = statuses,
		.first_failed = count};
	pthread_t threads[THREADS_MAX];
	size_t started = 0;
	pthread_mutex_init(&work.mutex, NULL);
	while (count > FEW && started + 1 < THREADS_MAX &&
		pthread_create(&threads[started], NULL, work_on, &work) == 0)
		started++;
	work_on(&work);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&work.mutex);
	if (work.first_failed == count)
		return STATUS_OK;
	if (err)
		*err = work.err;
	return statuses[work.first_failed];
}
