/* SPDX-License-Identifier: MIT */
/*
 * The trace of a job: a small file STATE/preempt/JOB.db.trace, beside default stores (store/url.h).
 * preempt-requeue leaves it once the job's store is there, so that a later start, on any machine
 * with the same home, does not take the store for one that was never made. The file has the store's
 * URL, and behind it a count (job_count_guess): a trace of another job with this id has no effect.
 * A store at its default place has none, which would be lost together with it.
 */
#ifndef RUN_TRACE_H
#define RUN_TRACE_H

#include "store/store.h"

/*
 * Open the store of a run that starts, and make it if it is missing. STATUS_TEMPORARY: also if it
 * is missing, and an earlier start of this job has left its trace.
 */
enum status job_open_store(
	struct store **store, const char *url, int64_t deadline, struct error *err);
/* Leave the trace, if this is a job. A trace that cannot be written is only reported. */
void job_leave_trace(const char *url);
/*
 * How often in a row it was decided without a record of its attempts whether the job is to run
 * again. GUESS_COUNT: and this is once more; GUESS_FORGET: now there is a record. otherwise: the
 * answer where this cannot be counted, because it is no job, or has no home.
 */
enum job_guess { GUESS_ASK, GUESS_COUNT, GUESS_FORGET };
uint64_t job_count_guess(enum job_guess what, uint64_t otherwise);
/* The job has finished. */
void job_remove_trace(void);

#endif
