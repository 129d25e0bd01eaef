/* SPDX-License-Identifier: MIT */
#include "base/worker.h"

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

struct worker {
	pthread_t thread;
	const char *name;
	int begin, ended, wake; /* bells */
	_Atomic bool stopping;
	void (*job)(void *context); /* NULL: none is left to begin */
	void *context;
};

static void *work(void *context)
{
	struct worker *worker = context;
	(void)pthread_setname_np(pthread_self(), worker->name);
	for (;;) {
		(void)descriptor_wait(worker->begin, CLOCK_NEVER);
		bell_hush(worker->begin);
		if (worker->job) {
			worker->job(worker->context);
			worker->job = NULL;
			bell_ring(worker->ended);
		}
		if (atomic_load(&worker->stopping))
			return NULL;
	}
}

static void release(struct worker *worker)
{
	const int bells[] = {worker->begin, worker->ended, worker->wake};
	for (size_t i = 0; i < 3; i++)
		if (bells[i] >= 0)
			close(bells[i]);
	free(worker);
}

enum status worker_start(struct worker **out, const char *name, struct error *err)
{
	struct worker *worker = xcalloc(1, sizeof(*worker));
	worker->name = name;
	worker->begin = bell_open();
	worker->ended = bell_open();
	worker->wake = bell_open();
	bool bells = worker->begin >= 0 && worker->ended >= 0 && worker->wake >= 0;
	int number = bells ? thread_start(&worker->thread, work, worker) : errno;
	if (number == 0) {
		*out = worker;
		return STATUS_OK;
	}
	release(worker);
	return error_set(err, STATUS_TEMPORARY, "cannot start a thread: %s", strerror(number));
}

void worker_run(struct worker *worker, void (*job)(void *context), void *context)
{
	worker->job = job;
	worker->context = context;
	bell_hush(worker->wake);
	bell_ring(worker->begin);
}

int worker_descriptor(const struct worker *worker)
{
	return worker->ended;
}

bool worker_take(struct worker *worker)
{
	bool ended = descriptor_is_ready(worker->ended);
	if (ended)
		bell_hush(worker->ended);
	return ended;
}

int worker_wake(const struct worker *worker)
{
	return worker->wake;
}

void worker_interrupt(struct worker *worker)
{
	bell_ring(worker->wake);
}

bool worker_pause(const struct worker *worker, int64_t until)
{
	while (!descriptor_wait(worker->wake, until))
		if (clock_now() >= until)
			return true;
	return false;
}

bool worker_goes_on(struct worker *worker)
{
	bell_hush(worker->wake);
	bool stopping = atomic_load(&worker->stopping);
	if (stopping)
		bell_ring(worker->wake);
	return !stopping;
}

bool worker_stop(struct worker *worker, int64_t patience)
{
	if (!worker)
		return true;
	atomic_store(&worker->stopping, true);
	bell_ring(worker->wake);
	bell_ring(worker->begin);
	if (!thread_join(worker->thread, worker, patience))
		return false;
	release(worker);
	return true;
}
