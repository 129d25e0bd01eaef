/* SPDX-License-Identifier: MIT */
/*
 * Workers come, go, die and are judged by several at once: what they ran goes back exactly once,
 * and the tallies are right at every moment.
 */
#include "queue/workers/workers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "queue/exchange.h"
#include "scratch_queue.h"
#include "unit.h"

#define JUDGES 8

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

static void schedule(size_t count, uint64_t max_attempts)
{
	static char name[] = "true", *words[] = {name, NULL};
	static const struct queue_schedule how = {.wake = -1, .deadline = CLOCK_NEVER};
	for (size_t i = 0; i < count; i++) {
		struct queue_item item = {.argv = words,
			.scheduled = 1,
			.max_attempts = max_attempts,
			.max_transient = 3};
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

static size_t take(struct queue_worker *worker, size_t want)
{
	struct exchange exchange = {.queue = &queue, .worker = worker};
	size_t all = 0;
	while (all < want) {
		exchange.want = want - all < QUEUE_BATCH ? want - all : QUEUE_BATCH;
		if (exchange_run(&exchange, &err) != STATUS_OK || exchange.got == 0)
			break;
		for (size_t i = 0; i < exchange.got; i++)
			run_release(&exchange.taken[i]);
		all += exchange.got;
	}
	return all;
}

/* Whether all that waits was lost this often. */
static bool all_lost(uint64_t lost)
{
	char prefix[QUEUE_KEY_MAX];
	struct store_answer answer = {0};
	bool good = true;
	queue_key(&queue, prefix, "wait/");
	struct store_range range = {.prefix = prefix};
	if (store_list(store, &range, &answer, &err) != STATUS_OK)
		exit(97);
	for (size_t i = 0; i < answer.count; i++) {
		struct queue_history history;
		const struct store_entry *entry = &answer.entries[i];
		good &= queue_read(&queue_history_record, entry, &history, &err) == STATUS_OK &&
			history.lost == lost;
	}
	store_answer_release(&answer);
	return good;
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
		bool good = take(&worker, takes) == takes &&
			    write(ends[1], &worker, sizeof(worker)) == sizeof(worker);
		_exit(!good);
	}
	close(ends[1]);
	CHECK_EQ(read(ends[0], &worker, sizeof(worker)), sizeof(worker));
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return worker;
}

static void registry(void)
{
	TEST("the lowest free beat number is taken, and again once it is free")
	{
		begin();
		struct queue_worker a = join(1000), b = join(1000), c = join(1000);
		CHECK_EQ(a.beat, 0);
		CHECK_EQ(b.beat, 1);
		CHECK_EQ(c.beat, 2);
		CHECK_EQ(c.index, 2);
		CHECK_EQ(workers_remove(&queue, &b, &err), STATUS_OK);
		CHECK_EQ(workers_remove(&queue, &b, &err), STATUS_OK);
		struct queue_worker d = join(1000);
		CHECK_EQ(d.beat, 1);
		struct queue_worker *list;
		size_t count;
		CHECK_EQ(workers_list(&queue, &list, &count, NULL, &err), STATUS_OK);
		CHECK_EQ(count, 3);
		CHECK_TEXT(list[1].token, d.token);
		CHECK_EQ(list[1].revision, d.revision);
		CHECK_EQ(list[1].process.pid, getpid());
		CHECK_EQ(process_check(&list[1].process), PROCESS_ALIVE);
		free(list);
	}
	TEST("the tally of one that leaves stays in the sum")
	{
		begin();
		schedule(3, 0);
		struct queue_worker worker = join(1000);
		struct exchange exchange = {.queue = &queue, .worker = &worker, .want = 2};
		CHECK_EQ(exchange_run(&exchange, &err), STATUS_OK);
		CHECK_EQ(exchange.got, 2);
		struct queue_run taken[2] = {exchange.taken[0], exchange.taken[1]};
		for (size_t i = 0; i < 2; i++) {
			taken[i].result.ending.kind = ENDING_PREEMPTED;
			run_end(&taken[i]);
			exchange.ended[exchange.ended_count++] = &taken[i];
		}
		CHECK_EQ(exchange_run(&exchange, &err), STATUS_OK);
		for (size_t i = 0; i < 2; i++) {
			CHECK_EQ(taken[i].outcome, RUN_ACCEPTED);
			run_release(&taken[i]);
		}
		CHECK_EQ(workers_remove(&queue, &worker, &err), STATUS_OK);
		CHECK(counts_agree());
		CHECK_EQ(count_keys("wait"), 3);
		CHECK(all_lost(0));
		CHECK_EQ(count_keys("worker"), 0);
		CHECK_EQ(count_keys("beat"), 0);
		CHECK_EQ(count_keys("count"), 2); /* @clients, or @next, and @gone */
	}
	TEST("many come at once: each has a beat number of its own, near to 0")
	{
		pid_t children[JUDGES];
		begin();
		fflush(stdout);
		for (int i = 0; i < JUDGES; i++)
			if ((children[i] = fork()) == 0) {
				reopen_in_child();
				struct queue_worker worker = join(1000);
				_exit(worker.revision == 0);
			}
		for (int i = 0; i < JUDGES; i++) {
			int code;
			waitpid(children[i], &code, 0);
			CHECK_EQ(code, 0);
		}
		struct queue_worker *list;
		size_t count;
		CHECK_EQ(workers_list(&queue, &list, &count, NULL, &err), STATUS_OK);
		CHECK_EQ(count, JUDGES);
		CHECK_EQ(count_keys("beat"), JUDGES);
		for (size_t i = 1; i < count; i++)
			CHECK(list[i - 1].beat < list[i].beat);
		CHECK(list[count - 1].beat < 128);
		free(list);
	}
}

static void fencing(void)
{
	TEST("WQ-10: what a dead worker ran goes back; nothing that it does later is accepted")
	{
		begin();
		schedule(4, 0);
		struct queue_worker zombie = join(1000);
		struct exchange exchange = {.queue = &queue, .worker = &zombie, .want = 2};
		CHECK_EQ(exchange_run(&exchange, &err), STATUS_OK);
		CHECK_EQ(exchange.got, 2);
		struct queue_run late = exchange.taken[0];
		run_release(&exchange.taken[1]);
		struct queue_worker judge = join(1000);
		CHECK_EQ(workers_fence(&queue, &judge, &zombie, &err), STATUS_OK);
		CHECK_EQ(count_keys("wait"), 4);
		CHECK(counts_agree());
		/* Both of them run elsewhere by now. */
		CHECK_EQ(take(&judge, 4), 4);
		run_end(&late);
		CHECK_EQ(late.result.state, QUEUE_SUCCEEDED);
		exchange.ended[0] = &late;
		exchange.ended_count = exchange.want = 1;
		CHECK_EQ(exchange_run(&exchange, &err), STATUS_NO);
		CHECK_EQ(late.outcome, RUN_REFUSED);
		CHECK_EQ(exchange.got, 0);
		CHECK_EQ(count_keys("done"), 0);
		CHECK_EQ(count_keys("run"), 4);
		CHECK(counts_agree());
		run_release(&late);
	}
	TEST("one that goes on taking while it is fenced leaves no lease behind")
	{
		for (int round = 0; round < 3; round++) {
			struct queue_worker zombie = {0}, judge;
			int ends[2], code;
			begin();
			schedule(80, 0);
			judge = join(1000);
			if (pipe(ends) < 0)
				exit(99);
			fflush(stdout);
			pid_t pid = fork();
			if (pid == 0) {
				reopen_in_child();
				zombie = join(1000);
				take(&zombie, 20);
				if (write(ends[1], &zombie, sizeof(zombie)) != sizeof(zombie))
					_exit(1);
				while (take(&zombie, 1) == 1)
					;
				_exit(0);
			}
			close(ends[1]);
			CHECK_EQ(read(ends[0], &zombie, sizeof(zombie)), sizeof(zombie));
			close(ends[0]);
			CHECK_EQ(workers_fence(&queue, &judge, &zombie, &err), STATUS_OK);
			waitpid(pid, &code, 0);
			CHECK_EQ(code, 0);
			CHECK_EQ(count_keys("run"), 0);
			CHECK_EQ(count_keys("wait"), 80);
			CHECK(counts_agree());
		}
	}
	TEST("the last attempt was lost with its worker: failed, and said so once")
	{
		begin();
		schedule(3, 1);
		struct queue_worker dead = start_dead(2), judge = join(1000);
		struct queue_failure failure;
		CHECK_EQ(workers_fence(&queue, &judge, &dead, &err), STATUS_OK);
		CHECK_EQ(count_keys("done"), 2);
		CHECK_EQ(count_keys("wait"), 1);
		CHECK_EQ(queue_failure_pending(&queue, &failure, &err), STATUS_OK);
		CHECK_EQ(failure.ending.kind, ENDING_LOST);
		CHECK(counts_agree());
		/* While that is pending, another one vanishes. */
		dead = start_dead(0);
		CHECK_EQ(workers_fence(&queue, &judge, &dead, &err), STATUS_OK);
		CHECK(counts_agree());
	}
	TEST("a lease that cannot be read keeps the others from nothing, and is named")
	{
		begin();
		schedule(3, 0);
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
		schedule(3, 0);
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
		schedule(2, 0);
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
	TEST("one that was itself treated as dead moves nothing")
	{
		begin();
		schedule(2, 0);
		struct queue_worker dead = start_dead(2), judge = join(1000), other = join(1000);
		CHECK_EQ(workers_fence(&queue, &other, &judge, &err), STATUS_OK);
		CHECK_EQ(workers_fence(&queue, &judge, &dead, &err), STATUS_NO);
		CHECK_EQ(count_keys("run"), 2);
		CHECK_EQ(workers_fence(&queue, &other, &dead, &err), STATUS_OK);
		CHECK_EQ(count_keys("run"), 0);
		CHECK(counts_agree());
	}
}

/* Fences dead as a worker of its own; in a process of its own. */
static pid_t start_judge(const struct queue_worker *dead, int go)
{
	char byte;
	fflush(stdout);
	pid_t pid = fork();
	if (pid)
		return pid;
	reopen_in_child();
	struct queue_worker self = join(1000);
	(void)!read(go, &byte, 1); /* all at once: when it is closed */
	_exit(workers_fence(&queue, &self, dead, &err) != STATUS_OK);
}

static void many_judges(void)
{
	enum { COMMANDS = 60 };
	TEST("eight judges at once: everything goes back once, and the sums are right all the time")
	{
		pid_t judges[JUDGES];
		int go[2], left = JUDGES;
		begin();
		schedule(COMMANDS, 0);
		struct queue_worker dead = start_dead(COMMANDS);
		CHECK_EQ(count_keys("run"), COMMANDS);
		if (pipe2(go, O_CLOEXEC) < 0)
			exit(99);
		for (int i = 0; i < JUDGES; i++)
			judges[i] = start_judge(&dead, go[0]);
		/* The children have the end for writing, too: each gets its own byte. */
		CHECK_EQ(write(go[1], "12345678", JUDGES), JUDGES);
		while (left) {
			struct queue_count count;
			int code;
			CHECK_EQ(queue_count(&queue, &count, &err), STATUS_OK);
			if (!CHECK_EQ(count.waiting + count.running, COMMANDS) ||
				!CHECK_EQ(count.scheduled, COMMANDS))
				break;
			for (int i = 0; i < JUDGES; i++)
				if (judges[i] && waitpid(judges[i], &code, WNOHANG) == judges[i]) {
					CHECK_EQ(code, 0);
					judges[i] = 0;
					left--;
				}
		}
		close(go[0]);
		close(go[1]);
		CHECK_EQ(count_keys("wait"), COMMANDS);
		CHECK(all_lost(1));
		CHECK(counts_agree());
		CHECK_EQ(count_keys("worker"), JUDGES);
		CHECK_EQ(count_keys("beat"), JUDGES);
	}
	TEST("judges that are killed in the middle of it: the next one goes on")
	{
		begin();
		schedule(COMMANDS, 0);
		for (int round = 1; round <= 6; round++) {
			struct queue_worker dead = start_dead(COMMANDS);
			for (int i = 0; i < 3; i++) {
				int go[2];
				if (pipe2(go, O_CLOEXEC) < 0)
					exit(99);
				pid_t pid = start_judge(&dead, go[0]);
				CHECK_EQ(write(go[1], "1", 1), 1);
				usleep((useconds_t)(round * 4000 + i * 1000));
				kill(pid, SIGKILL);
				waitpid(pid, NULL, 0);
				close(go[0]);
				close(go[1]);
			}
			struct queue_worker *list, self = join(1000);
			size_t count;
			CHECK_EQ(workers_list(&queue, &list, &count, NULL, &err), STATUS_OK);
			for (size_t i = 0; i < count; i++)
				if (strcmp(list[i].token, self.token) != 0)
					CHECK_EQ(workers_fence(&queue, &self, &list[i], &err),
						STATUS_OK);
			free(list);
			CHECK_EQ(workers_remove(&queue, &self, &err), STATUS_OK);
			CHECK_EQ(count_keys("wait") + count_keys("done"), COMMANDS);
			CHECK_EQ(count_keys("worker"), 0);
			CHECK(counts_agree());
			if (count_keys("done"))
				break; /* the third time lost */
		}
	}
}

/* Look again and again until so many were fenced, and once more. */
static uint64_t look_until_fenced(
	const struct queue_worker *self, struct beater *beater, uint64_t wanted, int64_t patience)
{
	struct judge judge = {0};
	uint64_t fenced = 0, all = 0;
	int64_t deadline = clock_after(patience);
	while (clock_now() < deadline) {
		bool trouble;
		if (judge_look(&judge, &queue, self, beater_written(beater, &trouble, NULL),
			    &fenced, &err) != STATUS_OK)
			break;
		all += fenced;
		if (all >= wanted && !fenced)
			break;
		clock_sleep_until(clock_after(self->period));
	}
	judge_release(&judge);
	return all;
}

static void judging(void)
{
	TEST("a worker whose process is gone from this machine is fenced at the first look")
	{
		begin();
		schedule(2, 0);
		struct queue_worker dead = start_dead(2), self = join(1000);
		struct judge judge = {0};
		uint64_t fenced;
		CHECK_EQ(dead.beat, 0);
		CHECK_EQ(judge_look(&judge, &queue, &self, 0, &fenced, &err), STATUS_OK);
		CHECK_EQ(fenced, 1);
		CHECK_EQ(count_keys("wait"), 2);
		judge_release(&judge);
	}
	TEST("two at once are gone: both are seen by their neighbour, who is not the monitor")
	{
		begin();
		schedule(2, 0);
		struct queue_worker monitor = join(1000), self = join(1000), one = start_dead(1),
				    two = start_dead(1);
		struct judge judge = {0};
		uint64_t fenced;
		CHECK(monitor.beat < self.beat && self.beat < one.beat && one.beat < two.beat);
		CHECK_EQ(judge_look(&judge, &queue, &self, 0, &fenced, &err), STATUS_OK);
		CHECK_EQ(fenced, 2);
		CHECK_EQ(count_keys("wait"), 2);
		CHECK_EQ(count_keys("worker"), 2);
		judge_release(&judge);
	}
	TEST("the monitor falls silent: the next one notices, and judges the others in its place")
	{
		begin();
		struct queue_worker monitor = join(100), next = join(100), third = join(100);
		struct beater *beater = NULL;
		CHECK_EQ(beater_start(&beater, url, &queue, &next, &err), STATUS_OK);
		CHECK_EQ(look_until_fenced(&next, beater, 2, 60000), 2);
		CHECK_EQ(count_keys("worker"), 1);
		/* The others find that they were treated as dead. */
		struct judge judge = {0};
		uint64_t fenced;
		CHECK_EQ(judge_look(&judge, &queue, &third, 0, &fenced, &err), STATUS_NO);
		CHECK_EQ(judge_look(&judge, &queue, &monitor, 0, &fenced, &err), STATUS_NO);
		judge_release(&judge);
		beater_stop(beater);
	}
	TEST("one whose beats are not there is silent: it is fenced as any other")
	{
		begin();
		char group[160];
		struct queue_worker self = join(100);
		struct beater *beater = NULL;
		(void)join(100);
		workers_beats(&queue, group);
		CHECK_EQ(store_beats_remove(store, group, &err), STATUS_OK);
		CHECK_EQ(beater_start(&beater, url, &queue, &self, &err), STATUS_OK);
		CHECK_EQ(look_until_fenced(&self, beater, 1, 60000), 1);
		CHECK_EQ(count_keys("worker"), 1);
		beater_stop(beater);
	}
	TEST("who looks seldom, because it is busy, sees silence; who was stopped itself does not")
	{
		static const struct {
			uint64_t beats; /* of ours from one look to the next, 4 periods later */
			uint64_t fenced;
		} rows[] = {{4, 1}, {1, 0}};
		for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
			begin();
			struct queue_worker self = join(100);
			uint64_t written = 0, fenced = 0, all = 0;
			struct judge judge = {0};
			(void)join(100);
			int64_t deadline = clock_after(60000);
			/* One that took more than 8 periods is as if we were stopped: once more. */
			for (int look = 0;
				look < 6 || (all < rows[row].fenced && clock_now() < deadline);
				look++) {
				written += rows[row].beats;
				CHECK_EQ(judge_look(&judge, &queue, &self, written, &fenced, &err),
					STATUS_OK);
				all += fenced;
				clock_sleep_until(clock_after(400));
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
	TEST("all beat: no worker is fenced, though one looks many times")
	{
		begin();
		struct beater *beaters[3] = {0};
		struct queue_worker workers[3];
		for (int i = 0; i < 3; i++) {
			workers[i] = join(100);
			CHECK_EQ(beater_start(&beaters[i], url, &queue, &workers[i], &err),
				STATUS_OK);
		}
		/* The limit is 3 periods: they have a second for each beat on a loaded machine. */
		workers[0].period = 1000;
		CHECK_EQ(look_until_fenced(&workers[0], beaters[0], 1, 3000), 0);
		struct judge judge = {0};
		size_t registered, alive;
		CHECK_EQ(judge_count_alive(&judge, &queue, &registered, &alive, &err), STATUS_OK);
		CHECK_EQ(registered, 3);
		CHECK_EQ(alive, 3);
		for (int i = 0; i < 3; i++)
			beater_stop(beaters[i]);
		clock_sleep_until(clock_after(400));
		CHECK_EQ(judge_count_alive(&judge, &queue, &registered, &alive, &err), STATUS_OK);
		clock_sleep_until(clock_after(400));
		CHECK_EQ(judge_count_alive(&judge, &queue, &registered, &alive, &err), STATUS_OK);
		CHECK_EQ(registered, 3);
		CHECK_EQ(alive, 0);
		judge_release(&judge);
	}
	TEST("the beats are removed: they come again")
	{
		begin();
		char group[160];
		struct store_beat beat = {0};
		struct queue_worker self = join(50);
		struct beater *beater = NULL;
		CHECK_EQ(beater_start(&beater, url, &queue, &self, &err), STATUS_OK);
		workers_beats(&queue, group);
		CHECK_EQ(store_beats_remove(store, group, &err), STATUS_OK);
		int64_t deadline = clock_after(60000);
		while (store_beat_read(store, group, self.beat, &beat, NULL) != STATUS_OK &&
			clock_now() < deadline)
			clock_sleep_until(clock_after(10));
		CHECK_EQ(beat.token, workers_beat_token(&self));
		beater_stop(beater);
	}
}

int main(void)
{
	scratch_make();
	registry();
	fencing();
	many_judges();
	judging();
	int code = unit_end();
	close_all();
	scratch_remove();
	return code;
}
