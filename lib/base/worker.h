/* SPDX-License-Identifier: MIT */
/*
 * A thread that runs one blocking job at a time, so that a slow filesystem or server delays no
 * signal and no child. From worker_run until worker_take, what the job uses belongs to the job;
 * before and after, to the owner: nothing is shared and nothing is locked. A job may also go on
 * until worker_goes_on says no (beats, a relay); what its owner then looks at has a lock.
 *
 *	worker_start(&worker, "store", &err);
 *	worker_run(worker, job, context);
 *	loop_watch(&loop, worker_descriptor(worker));
 *	loop_wait(&loop);
 *	if (worker_take(worker))
 *		... the result is in context ...
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct worker;

/* Start the thread, with all signals blocked in it. */
enum status worker_start(struct worker **worker, const char *name, struct error *err);

/* Run job(context). The worker must have no job. */
void worker_run(struct worker *worker, void (*job)(void *context), void *context);
/* Readable when the job has ended, until worker_take. */
int worker_descriptor(const struct worker *worker);
/* Whether the job has ended; true once for each job. */
bool worker_take(struct worker *worker);

/* For waits of the job: readable once it was interrupted or the worker is to stop. */
int worker_wake(const struct worker *worker);
/* Interrupt the job that runs. The next one is not. */
void worker_interrupt(struct worker *worker);
/* In a job: wait until `until`. False: it was interrupted, or the worker is to stop. */
bool worker_pause(const struct worker *worker, int64_t until);
/* In a job that goes on after an interruption: be ready for the next one. False: it is to end. */
bool worker_goes_on(struct worker *worker);

/*
 * End the thread, after its job. False: the job hangs for longer than patience (ms). Then it and
 * the thread are left alone, and the caller must not free what the job uses. NULL is fine.
 */
bool worker_stop(struct worker *worker, int64_t patience);

#endif
