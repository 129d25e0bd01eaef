/* SPDX-License-Identifier: MIT */
/* The heartbeat thread. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/bell.h"
#include "base/process/descriptor.h"
#include "base/process/thread.h"
#include "base/xalloc.h"
#include "queue/workers/workers.h"

#define STOP_PATIENCE 2000 /* ms to wait for the end of the thread */

struct beater {
	pthread_t thread;
	char *url, group[160];
	uint64_t number, token;
	int64_t period;
	int wake; /* eventfd */
	_Atomic bool stopping;
	_Atomic uint64_t written;
	pthread_mutex_t lock; /* of the two below */
	bool trouble;
	struct error error;
};

static enum status beat(
	struct beater *beater, struct store *store, uint64_t sequence, struct error *err)
{
	struct store_beat record = {.token = beater->token, .sequence = sequence};
	enum status status = store_beat(store, beater->group, beater->number, &record, err);
	if (status != STATUS_NO)
		return status;
	/* The directory of the beats may have been removed: make it again. */
	status = store_beats_prepare(store, beater->group, beater->number + 1, err);
	return status == STATUS_OK ? store_beat(store, beater->group, beater->number, &record, err)
				   : status;
}

static void note(struct beater *beater, enum status status, const struct error *err)
{
	if (status == STATUS_OK)
		atomic_fetch_add(&beater->written, 1);
	pthread_mutex_lock(&beater->lock);
	beater->trouble = status != STATUS_OK;
	if (beater->trouble)
		beater->error = *err;
	pthread_mutex_unlock(&beater->lock);
}

static void *work(void *context)
{
	struct beater *beater = context;
	struct store *store = NULL;
	/* The first beat was written when the worker registered. */
	uint64_t sequence = 1;
	(void)pthread_setname_np(pthread_self(), "beater");
	while (!atomic_load(&beater->stopping)) {
		struct error err = {0};
		int64_t next = clock_after(beater->period);
		enum status status = STATUS_OK;
		if (!store)
			status = store_open(&store, beater->url, 0, next, &err);
		if (status == STATUS_OK)
			status = beat(beater, store, ++sequence, &err);
		note(beater, status, &err);
		(void)descriptor_wait(beater->wake, next);
	}
	store_close(store);
	return NULL;
}

static void release(struct beater *beater)
{
	if (beater->wake >= 0)
		close(beater->wake);
	pthread_mutex_destroy(&beater->lock);
	free(beater->url);
	free(beater);
}

enum status beater_start(struct beater **out, const char *url, const struct queue *queue,
	const struct queue_worker *worker, struct error *err)
{
	struct beater *beater = xcalloc(1, sizeof(*beater));
	pthread_mutex_init(&beater->lock, NULL);
	beater->wake = bell_open();
	beater->url = xstrdup(url);
	beater->number = worker->beat;
	beater->token = workers_beat_token(worker);
	beater->period = worker->period;
	workers_beats(queue, beater->group);
	int number = beater->wake < 0 ? errno : 0;
	if (number == 0)
		number = thread_start(&beater->thread, work, beater);
	if (number == 0) {
		*out = beater;
		return STATUS_OK;
	}
	release(beater);
	return error_set(err, STATUS_TEMPORARY, "cannot start a thread: %s", strerror(number));
}

uint64_t beater_written(struct beater *beater, bool *trouble, struct error *err)
{
	pthread_mutex_lock(&beater->lock);
	*trouble = beater->trouble;
	if (beater->trouble && err)
		*err = beater->error;
	pthread_mutex_unlock(&beater->lock);
	return atomic_load(&beater->written);
}

void beater_stop(struct beater *beater)
{
	if (!beater)
		return;
	atomic_store(&beater->stopping, true);
	bell_ring(beater->wake);
	if (thread_join(beater->thread, beater, STOP_PATIENCE))
		release(beater);
}
