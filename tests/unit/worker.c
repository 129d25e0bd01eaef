/* SPDX-License-Identifier: MIT */
/* Jobs of base/worker: when their results are known, what interrupts them, and how they end. */
#include "base/worker.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/process/bell.h"
#include "base/process/descriptor.h"
#include "unit.h"

#define LONG 60000 /* ms: a wait that lasts so long has failed */

struct job {
	struct worker *worker;
	int hold; /* a bell that lets the job end; -1: it ends at once */
	int64_t pause;
	int result;
	bool interrupted;
	_Atomic int rounds;
};

static void count(void *context)
{
	struct job *job = context;
	if (job->hold >= 0)
		(void)descriptor_wait(job->hold, clock_after(LONG));
	job->interrupted = job->pause && !worker_pause(job->worker, clock_after(job->pause));
	job->result++;
}

static void go_round(void *context)
{
	struct job *job = context;
	while (worker_goes_on(job->worker)) {
		atomic_fetch_add(&job->rounds, 1);
		(void)worker_pause(job->worker, clock_after(LONG));
	}
}

static bool ends(struct worker *worker)
{
	return descriptor_wait(worker_descriptor(worker), clock_after(LONG)) && worker_take(worker);
}

static void results(struct job *job)
{
	struct loop loop;
	CHECK_EQ(loop_open(&loop, NULL), STATUS_OK);
	TEST("the end of a job is an event of a loop, taken once, and the next job can begin")
	{
		loop_watch(&loop, worker_descriptor(job->worker));
		for (int i = 1; i <= 3; i++) {
			CHECK(!worker_take(job->worker));
			worker_run(job->worker, count, job);
			loop_wake_at(&loop, clock_after(LONG));
			loop_wait(&loop);
			CHECK(worker_take(job->worker));
			CHECK_EQ(job->result, i);
		}
	}
	TEST("a job that has not ended has no result")
	{
		job->hold = bell_open();
		worker_run(job->worker, count, job);
		loop_wake_at(&loop, clock_after(20));
		loop_wait(&loop);
		CHECK(!worker_take(job->worker));
		bell_ring(job->hold);
		CHECK(ends(job->worker));
		close(job->hold);
		job->hold = -1;
	}
	loop_close(&loop);
}

static void interruptions(struct job *job)
{
	TEST("an interruption ends the pause of a job, and not that of the next one")
	{
		job->pause = LONG;
		worker_run(job->worker, count, job);
		worker_interrupt(job->worker);
		CHECK(ends(job->worker));
		CHECK(job->interrupted);
		worker_interrupt(job->worker);
		job->pause = 10;
		worker_run(job->worker, count, job);
		CHECK(ends(job->worker));
		CHECK(!job->interrupted);
	}
	TEST("a job that goes on is interrupted again and again, and ends when the worker stops")
	{
		worker_run(job->worker, go_round, job);
		for (int i = 1; i < 4; i++) {
			while (atomic_load(&job->rounds) < i)
				clock_sleep_until(clock_after(1));
			worker_interrupt(job->worker);
		}
		CHECK(worker_stop(job->worker, LONG));
	}
}

static void ends_badly(void)
{
	static struct job late, waiting;
	struct worker *worker;
	TEST("a job that was begun is done before the worker ends")
	{
		waiting.hold = -1;
		CHECK_EQ(worker_start(&waiting.worker, "unit", NULL), STATUS_OK);
		worker_run(waiting.worker, count, &waiting);
		CHECK(worker_stop(waiting.worker, LONG));
		CHECK_EQ(waiting.result, 1);
	}
	TEST("a job that hangs is left alone, and may end after its owner")
	{
		late.hold = bell_open();
		CHECK_EQ(worker_start(&worker, "unit", NULL), STATUS_OK);
		late.worker = worker;
		worker_run(worker, count, &late);
		CHECK(!worker_stop(worker, 0));
		bell_ring(late.hold);
		CHECK(ends(worker));
		CHECK_EQ(late.result, 1);
	}
	CHECK(worker_stop(NULL, 0), "none need not be stopped");
}

int main(void)
{
	static struct job job = {.hold = -1};
	CHECK_EQ(worker_start(&job.worker, "unit", NULL), STATUS_OK);
	results(&job);
	interruptions(&job);
	ends_badly();
	return unit_end();
}
