/* SPDX-License-Identifier: MIT */
/*
 * Workers are judged although records are damaged, beats are gone, or they are looked at seldom.
 * What becomes of dead workers and of what they ran, is shown by tests/sim/queue.
 */
#include "queue/workers/workers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "queue/exchange.h"
#include "scratch_queue.h"
#include "unit.h"

/* A queue of its own for each test. */
static void begin(void)
{
	static int number;
	char name[16];
	if (number++)
		close_all();
	snprintf(name, sizeof(name), "q%d", number);
	reopen(name);
}

/* A worker in a process of its own has a store of its own. */
static void reopen_in_child(void)
{
	char name[129];
	snprintf(name, sizeof(name), "%s", queue.name);
	reopen(name);
}

static void schedule(size_t count)
{
	static char name[] = "true", *words[] = {name, NULL};
	static const struct queue_schedule how = {.wake = -1, .deadline = CLOCK_NEVER};
	for (size_t i = 0; i < count; i++) {
		struct queue_item item = {.argv = words, .scheduled = 1, .max_transient = 3};
		if (queue_schedule(&queue, &item, 1, i, &how, &err) != STATUS_OK)
			printf("# cannot schedule: %s\n", err.text);
		free(item.batch);
	}
}

static struct queue_worker join(int64_t period)
{
	struct queue_worker worker = {
		.name = "w", .index = UINT64_MAX, .slots = 1, .period = period, .limit = 3};
	if (workers_join(&queue, &worker, &err) != STATUS_OK)
		printf("# cannot join: %s\n", err.text);
	return worker;
}

/* A worker in a process that takes so many and is gone. */
static struct queue_worker start_dead(size_t takes)
{
	struct queue_worker worker = {0};
	int ends[2];
	if (pipe(ends) < 0)
		exit(99);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		reopen_in_child();
		worker = join(1000);
		struct exchange exchange = {.queue = &queue, .worker = &worker, .want = takes};
		bool good = exchange_run(&exchange, &err) == STATUS_OK && exchange.got == takes &&
			    write(ends[1], &worker, sizeof(worker)) == sizeof(worker);
		_exit(!good);
	}
	close(ends[1]);
	CHECK_EQ(read(ends[0], &worker, sizeof(worker)), sizeof(worker));
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return worker;
}

static void fencing(void)
{
	TEST("a lease that cannot be read keeps the others from nothing, and is named")
	{
		begin();
		schedule(3);
		char key[QUEUE_KEY_MAX];
		struct queue_worker dead = start_dead(3), judge = join(1000);
		queue_key(&queue, key, "run/0000000002");
		CHECK_EQ(store_put(store, key, "{", NULL, &err), STATUS_OK);
		CHECK_EQ(workers_fence(&queue, &judge, &dead, &err), STATUS_DAMAGED);
		CHECK(strstr(err.text, "run/0000000002"));
		CHECK_EQ(count_keys("wait"), 2);
	}
	TEST("what was asked cannot be read any more: that fails, and the worker goes")
	{
		begin();
		schedule(3);
		char key[QUEUE_KEY_MAX];
		struct queue_worker dead = start_dead(3), judge = join(1000);
		struct queue_failure failure = {0};
		queue_key(&queue, key, "item/0000000002");
		CHECK_EQ(store_put(store, key, "{", NULL, &err), STATUS_OK);
		CHECK_EQ(workers_fence(&queue, &judge, &dead, &err), STATUS_OK);
		CHECK_EQ(count_keys("run"), 0);
		CHECK_EQ(count_keys("wait"), 2);
		CHECK_EQ(count_keys("done"), 1);
		CHECK_EQ(count_keys("worker"), 1);
		CHECK_EQ(queue_failure_pending(&queue, &failure, &err), STATUS_OK);
		CHECK_EQ(failure.id, 2);
		CHECK_EQ(failure.ending.kind, ENDING_CANNOT);
		CHECK(counts_agree());
	}
	TEST("one whose lease cannot be read is gone: others who died are judged all the same")
	{
		begin();
		schedule(2);
		char key[QUEUE_KEY_MAX];
		struct queue_worker self = join(100), damaged = start_dead(1), other = join(100);
		struct judge judge = {0};
		uint64_t fenced = 0, written = 0;
		CHECK(self.beat < damaged.beat && damaged.beat < other.beat);
		queue_key(&queue, key, "run/0000000001");
		CHECK_EQ(store_put(store, key, "{", NULL, &err), STATUS_OK);
		int64_t deadline = clock_after(60000);
		queue_key(&queue, key, "worker/%s", other.token);
		store_revision seen = other.revision;
		/* Marked, it is: it goes when that lease can be read. */
		while (seen == other.revision && clock_now() < deadline) {
			struct store_entry entry = {0};
			written += 10; /* whatever this look takes */
			CHECK_EQ(judge_look(&judge, &queue, &self, written, &fenced, &err),
				STATUS_DAMAGED);
			clock_sleep_until(clock_after(110));
			CHECK_EQ(store_get(store, key, &entry, &err), STATUS_OK);
			seen = entry.revision;
			store_entry_release(&entry);
		}
		CHECK(seen != other.revision);
		judge_release(&judge);
	}
}

static void judging(void)
{
	TEST("who looks seldom, because it is busy, sees silence; who was stopped itself does not")
	{
		static const struct {
			uint64_t beats; /* of ours from one look to the next, 4 periods later */
			uint64_t fenced;
		} rows[] = {{4, 1}, {1, 0}};
		for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
			begin();
			struct queue_worker self = join(50);
			uint64_t written = 0, fenced = 0, all = 0;
			struct judge judge = {0};
			(void)join(50);
			int64_t deadline = clock_after(60000);
			/* One that took more than 8 periods is as if we were stopped: once more. */
			for (int look = 0;
				look < 6 || (all < rows[row].fenced && clock_now() < deadline);
				look++) {
				written += rows[row].beats;
				CHECK_EQ(judge_look(&judge, &queue, &self, written, &fenced, &err),
					STATUS_OK);
				all += fenced;
				clock_sleep_until(clock_after(200));
			}
			CHECK_EQ(all, rows[row].fenced);
			judge_release(&judge);
		}
	}
	TEST("a registration is damaged: a worker looks whether it has its own, and sees when it is dead")
	{
		begin();
		struct queue_worker self = join(1000), other = join(1000);
		struct judge judge = {0};
		uint64_t fenced;
		char key[QUEUE_KEY_MAX];
		queue_key(&queue, key, "worker/0123456789abcdef");
		CHECK_EQ(store_put(queue.store, key, "{}", NULL, &err), STATUS_OK);
		CHECK_EQ(judge_look(&judge, &queue, &self, 0, &fenced, &err), STATUS_DAMAGED);
		CHECK(strstr(err.text, key));
		CHECK(judge.looked);
		CHECK_EQ(workers_fence(&queue, &other, &self, &err), STATUS_OK);
		CHECK_EQ(judge_look(&judge, &queue, &self, 0, &fenced, &err), STATUS_NO);
		judge_release(&judge);
	}
	TEST("the beats are removed: ours come again, and one who has none is silent")
	{
		begin();
		char group[160];
		struct store_beat beat = {0};
		struct queue_worker self = join(100);
		struct beater *beater = NULL;
		struct judge judge = {0};
		uint64_t fenced = 0;
		bool trouble;
		(void)join(100);
		CHECK_EQ(beater_start(&beater, url, &queue, &self, &err), STATUS_OK);
		workers_beats(&queue, group);
		CHECK_EQ(store_beats_remove(store, group, &err), STATUS_OK);
		int64_t deadline = clock_after(60000);
		while (!fenced && clock_now() < deadline) {
			CHECK_EQ(judge_look(&judge, &queue, &self,
					 beater_written(beater, &trouble, NULL), &fenced, &err),
				STATUS_OK);
			clock_sleep_until(clock_after(100));
		}
		CHECK_EQ(fenced, 1);
		CHECK_EQ(count_keys("worker"), 1);
		CHECK_EQ(store_beat_read(store, group, self.beat, &beat, &err), STATUS_OK);
		CHECK_EQ(beat.token, workers_beat_token(&self));
		judge_release(&judge);
		beater_stop(beater);
	}
}

int main(void)
{
	scratch_make();
	fencing();
	judging();
	int code = unit_end();
	close_all();
	scratch_remove();
	return code;
}
