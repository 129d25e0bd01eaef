/* SPDX-License-Identifier: MIT */
/*
 * Commands are looked at while they move, are cancelled, put back and forgotten, and the first
 * failure is reported once, whichever client asks and whichever worker is killed in between.
 */
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "queue/moves.h"
#include "scratch_queue.h"
#include "unit.h"

/* Each test has a queue of its own. */
/* count commands, every tenth of another priority; false: it could not be done. */
static bool schedule(size_t count, bool keep_going)
{
	static struct queue_item items[QUEUE_SCHEDULE_BATCH];
	static const struct queue_schedule how = {.wake = -1, .deadline = CLOCK_NEVER};
	static char name[] = "true", *words[] = {name, NULL};
	bool good = true;
	while (count && good) {
		size_t batch = count < QUEUE_SCHEDULE_BATCH ? count : QUEUE_SCHEDULE_BATCH;
		for (size_t i = 0; i < batch; i++)
			items[i] = (struct queue_item){.argv = words,
				.priority = i % 10 ? 0 : (int)i - 30,
				.halt = keep_going ? HALT_NEVER : HALT_NOW};
		good = queue_schedule(&queue, items, batch, 0, &how, &err) == STATUS_OK;
		for (size_t i = 0; i < batch; i++)
			free(items[i].batch);
		count -= batch;
	}
	return good;
}

/* One that waits runs. */
static bool take(uint64_t id)
{
	struct moves moves;
	struct store_answer answer = {0};
	struct queue_view view;
	struct queue_lease lease = {.token = "0123456789abcdef", .since = 1};
	char key[QUEUE_KEY_MAX];
	if (queue_inspect(&queue, id, &view, &err) != STATUS_OK || view.state != QUEUE_WAITING ||
		moves_begin(&moves, &queue, &err) != STATUS_OK)
		return false;
	queue_key_waiting(&queue, key, view.item.priority, id);
	transaction_require_told(&moves.t, transaction_own(&moves.t, key), view.revision);
	lease.history = view.history;
	lease.history.starts++;
	moves_take(&moves, key, id, &lease);
	bool good = moves_run(&moves, &answer, &err) == STATUS_OK && answer.held;
	store_answer_release(&answer);
	moves_release(&moves);
	queue_view_release(&view);
	return good;
}

/* One that runs ends with this exit code. */
static bool end(uint64_t id, int code)
{
	struct moves moves;
	struct store_answer answer = {0};
	struct queue_view view;
	if (queue_inspect(&queue, id, &view, &err) != STATUS_OK || view.state != QUEUE_RUNNING ||
		moves_begin(&moves, &queue, &err) != STATUS_OK)
		return false;
	struct queue_run run = {.item = view.item, .lease = view.lease};
	run.result = (struct queue_result){
		.ending = {.kind = ENDING_EXITED, .code = code}, .started = 1, .ended = 2};
	run_end(&run);
	moves_end(&moves, &run, true);
	bool good = moves_run(&moves, &answer, &err) == STATUS_OK && answer.held;
	store_answer_release(&answer);
	moves_release(&moves);
	queue_view_release(&view);
	return good;
}

static enum queue_changed change(enum queue_change how, uint64_t id)
{
	enum queue_changed changed;
	return queue_change(&queue, how, &id, 1, &changed, &err) == STATUS_OK
		       ? changed
		       : (enum queue_changed)99;
}

static enum queue_state state_of(uint64_t id)
{
	struct queue_view view;
	if (queue_inspect(&queue, id, &view, &err) != STATUS_OK)
		return (enum queue_state)99;
	enum queue_state state = view.state;
	queue_view_release(&view);
	return state;
}

/* What a visit has shown. */
struct seen {
	uint64_t count, last, disorder, of[QUEUE_CANCELLED + 1];
	uint8_t state[3000];
};

static enum status see(void *context, const struct queue_view *view)
{
	struct seen *seen = context;
	seen->disorder += view->item.id <= seen->last;
	seen->last = view->item.id;
	seen->count++;
	seen->of[view->state]++;
	seen->state[view->item.id] = (uint8_t)view->state;
	return STATUS_OK;
}

static void paging(void)
{
	static struct seen seen;
	TEST("a visit shows all of several pages once, in order, each where it is")
	{
		reopen("paging");
		CHECK(schedule(2345, false));
		for (uint64_t id = 990; id <= 1010; id++)
			CHECK(take(id));
		for (uint64_t id = 1000; id <= 1005; id++)
			CHECK(end(id, 0));
		CHECK_EQ(queue_visit(&queue, 0, see, &seen, &err), STATUS_OK);
		CHECK_EQ(seen.count, 2345);
		CHECK_EQ(seen.disorder, 0);
		CHECK_EQ(seen.of[QUEUE_RUNNING], 15);
		CHECK_EQ(seen.of[QUEUE_SUCCEEDED], 6);
		CHECK_EQ(seen.state[999], QUEUE_RUNNING);
		CHECK_EQ(seen.state[1000], QUEUE_SUCCEEDED);
		seen = (struct seen){0};
		CHECK_EQ(queue_visit(&queue, 2340, see, &seen, &err), STATUS_OK);
		CHECK_EQ(seen.count, 5);
		seen = (struct seen){0};
		CHECK_EQ(queue_visit_running(&queue, see, &seen, &err), STATUS_OK);
		CHECK_EQ(seen.count, 15);
		close_all();
	}
}

/* Meanwhile another process moves all commands on, one after the other. */
static void moving(void)
{
	enum { COUNT = 150 };
	static struct seen before, seen;
	int64_t deadline = clock_after(200000);
	int seen_it[2];
	bool moved = false;
	TEST("commands that move during a visit are never shown further back than they are")
	{
		reopen("moving");
		CHECK(schedule(COUNT, false));
		close_all();
		if (pipe(seen_it) < 0)
			exit(99);
		pid_t pid = fork();
		reopen("moving");
		if (pid == 0) {
			char byte;
			close(seen_it[1]);
			for (uint64_t id = 1; id <= COUNT; id++) {
				if (!take(id) || !end(id, 0))
					_exit(1);
				/* Not all before the other one has looked. */
				if (id == COUNT / 2)
					(void)!read(seen_it[0], &byte, 1);
			}
			_exit(0);
		}
		close(seen_it[0]);
		while (before.of[QUEUE_SUCCEEDED] < COUNT && clock_now() < deadline) {
			seen = (struct seen){0};
			CHECK_EQ(queue_visit(&queue, 0, see, &seen, &err), STATUS_OK);
			CHECK_EQ(seen.count, COUNT);
			for (int id = 1; id <= COUNT; id++)
				if (!CHECK(seen.state[id] >= before.state[id]))
					deadline = 0;
			if (!moved && seen.of[QUEUE_SUCCEEDED] && seen.of[QUEUE_WAITING]) {
				moved = true;
				close(seen_it[1]);
			}
			before = seen;
		}
		if (!moved)
			close(seen_it[1]);
		int status = 1;
		waitpid(pid, &status, 0);
		CHECK_EQ(status, 0);
		CHECK(moved);
		close_all();
	}
}

static bool counts_are(
	uint64_t waiting, uint64_t running, uint64_t succeeded, uint64_t failed, uint64_t cancelled)
{
	struct queue_count count;
	return queue_count(&queue, &count, &err) == STATUS_OK && count.waiting == waiting &&
	       count.running == running && count.succeeded == succeeded && count.failed == failed &&
	       count.cancelled == cancelled;
}

static void changing(void)
{
	enum queue_changed changed[4];
	struct queue_view view;
	TEST("what waits is cancelled, what runs is told, what is over is put back or forgotten")
	{
		reopen("changing");
		CHECK(schedule(4, true));
		CHECK(take(2) && take(3) && end(3, 5));
		CHECK_EQ(queue_change(
				 &queue, QUEUE_CANCEL, (uint64_t[]){1, 2, 3, 99}, 4, changed, &err),
			STATUS_OK);
		CHECK_EQ(changed[0], QUEUE_CHANGED);
		CHECK_EQ(changed[1], QUEUE_CHANGED_REQUESTED);
		CHECK_EQ(changed[2], QUEUE_CHANGED_NOT);
		CHECK_EQ(changed[3], QUEUE_CHANGED_ABSENT);
		CHECK(counts_are(1, 1, 0, 1, 1));
		CHECK_EQ(queue_inspect(&queue, 2, &view, &err), STATUS_OK);
		CHECK(view.cancelling && view.state == QUEUE_RUNNING);
		queue_view_release(&view);
		CHECK_EQ(change(QUEUE_CANCEL, 2), QUEUE_CHANGED_REQUESTED);
		CHECK_EQ(change(QUEUE_FORGET, 2), QUEUE_CHANGED_NOT);
		CHECK_EQ(change(QUEUE_RETRY_ANY, 2), QUEUE_CHANGED_NOT);
		CHECK(end(2, 0));
		CHECK_EQ(change(QUEUE_RETRY, 2), QUEUE_CHANGED_NOT);
		CHECK_EQ(change(QUEUE_RETRY_ANY, 2), QUEUE_CHANGED);
		CHECK_EQ(queue_inspect(&queue, 2, &view, &err), STATUS_OK);
		CHECK(!view.cancelling && view.state == QUEUE_WAITING);
		queue_view_release(&view);
		CHECK_EQ(change(QUEUE_RETRY, 3), QUEUE_CHANGED);
		CHECK_EQ(change(QUEUE_FORGET, 1), QUEUE_CHANGED);
		CHECK_EQ(queue_inspect(&queue, 1, &view, &err), STATUS_NO);
		CHECK_EQ(state_of(3), QUEUE_WAITING);
		close_all();
	}
}

/* Changes at random: as a worker at the command line, or as a worker. */
static void change_at_random(int hand, uint64_t commands)
{
	unsigned seed = (unsigned)hand;
	for (int i = 0; i < 25; i++) {
		uint64_t ids[QUEUE_CHANGE_BATCH];
		enum queue_changed changed[QUEUE_CHANGE_BATCH];
		size_t count = 1 + (size_t)rand_r(&seed) % QUEUE_CHANGE_BATCH;
		uint64_t first = 1 + (uint64_t)rand_r(&seed) % (commands - count + 1);
		for (size_t k = 0; k < count; k++)
			ids[k] = first + k;
		enum queue_change how = rand_r(&seed) % 2 ? QUEUE_CANCEL : QUEUE_RETRY_ANY;
		if (queue_change(&queue, how, ids, count, changed, &err) != STATUS_OK)
			_exit(1);
	}
}

static void work_at_random(int hand, uint64_t commands)
{
	unsigned seed = (unsigned)hand;
	snprintf(queue.who, sizeof(queue.who), "w%d", hand);
	for (int i = 0; i < 100; i++) {
		uint64_t id = 1 + (uint64_t)rand_r(&seed) % commands;
		/* Only the one that has taken it ends it. */
		if (take(id) && !end(id, 0))
			_exit(2);
	}
}

static void changed_by_many(void)
{
	enum { HANDS = 4, COUNT = 40 };
	pid_t pids[HANDS];
	static struct seen seen;
	TEST("many change the same commands, others take them: each change is one, and is counted")
	{
		reopen("hands");
		CHECK(schedule(COUNT, false));
		close_all();
		for (int hand = 0; hand < HANDS; hand++) {
			if ((pids[hand] = fork()) != 0)
				continue;
			reopen("hands");
			if (hand % 2)
				change_at_random(hand, COUNT);
			else
				work_at_random(hand, COUNT);
			_exit(0);
		}
		for (int hand = 0; hand < HANDS; hand++) {
			int status = 1;
			waitpid(pids[hand], &status, 0);
			CHECK_EQ(status, 0);
		}
		reopen("hands");
		CHECK_EQ(queue_visit(&queue, 0, see, &seen, &err), STATUS_OK);
		CHECK(counts_are(seen.of[QUEUE_WAITING], 0, seen.of[QUEUE_SUCCEEDED], 0,
			seen.of[QUEUE_CANCELLED]));
		CHECK_EQ(seen.count, COUNT);
		close_all();
	}
}

static void raising(void)
{
	struct queue_failure failure;
	TEST("WQ-8: what runs is told to end, what waits is cancelled, and then all is clean")
	{
		reopen("raising");
		CHECK(schedule(200, false));
		CHECK(take(1) && take(2));
		CHECK_EQ(queue_raise(&queue, CLOCK_NEVER, -1, &failure, &err), STATUS_NO);
		CHECK(end(1, 7));
		CHECK_EQ(queue_raise(&queue, clock_now(), -1, &failure, &err), STATUS_TIMEOUT);
		CHECK(counts_are(198, 1, 0, 1, 0));
		CHECK_EQ(count_keys("cancel"), 1);
		close_all();
		pid_t pid = fork();
		reopen("raising");
		if (pid == 0) {
			clock_sleep_until(clock_after(300));
			_exit(end(2, 0) ? 0 : 1);
		}
		CHECK_EQ(queue_raise(&queue, clock_after(200000), -1, &failure, &err), STATUS_OK);
		CHECK_EQ(failure.id, 1);
		CHECK_EQ(failure.ending.code, 7);
		CHECK_EQ(failure.cancelled, 198);
		CHECK(counts_are(0, 0, 1, 1, 198));
		CHECK_EQ(count_keys("cancel"), 0);
		CHECK_EQ(queue_raise(&queue, CLOCK_NEVER, -1, &failure, &err), STATUS_NO);
		int status = 1;
		waitpid(pid, &status, 0);
		CHECK_EQ(status, 0);
		CHECK(schedule(1, false));
		close_all();
	}
}

/* A process that raises: 0 it tells of so many, 1 none was pending, else it went wrong. */
static pid_t start_raiser(const char *name, uint64_t cancelled)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	struct queue_failure failure;
	reopen(name);
	enum status status = queue_raise(&queue, clock_after(200000), -1, &failure, &err);
	if (status == STATUS_OK && failure.cancelled != cancelled)
		_exit(3);
	_exit(status == STATUS_OK || status == STATUS_NO ? (int)status : 2);
}

static void raised_by_many(void)
{
	enum { RAISERS = 8, KILLED = 4 };
	pid_t pids[RAISERS];
	char name[16];
	unsigned seed = 1;
	TEST("many raise, some are killed: at most one tells it, and that one tells of all cancelled")
	{
		for (int round = 0; round < 6; round++) {
			int told = 0, lost = 0;
			struct queue_failure failure;
			snprintf(name, sizeof(name), "many-%d", round);
			reopen(name);
			CHECK(schedule(301, false) && take(1) && end(1, 1));
			close_all();
			for (int i = 0; i < RAISERS; i++)
				pids[i] = start_raiser(name, 300);
			for (int i = 0; i < KILLED; i++) {
				clock_sleep_until(clock_after(1 + rand_r(&seed) % 20));
				kill(pids[i], SIGKILL);
			}
			for (int i = 0; i < RAISERS; i++) {
				int status = -1;
				waitpid(pids[i], &status, 0);
				told += WIFEXITED(status) && WEXITSTATUS(status) == 0;
				lost += WIFSIGNALED(status);
				CHECK(WIFSIGNALED(status) ? i < KILLED : WEXITSTATUS(status) <= 1);
			}
			/* One that was killed may have taken it away, and not have told us. */
			CHECK(told == 1 || (told == 0 && lost));
			reopen(name);
			CHECK_EQ(queue_raise(&queue, CLOCK_NEVER, -1, &failure, &err), STATUS_NO);
			CHECK(counts_are(0, 0, 0, 1, 300));
			close_all();
		}
	}
}

int main(void)
{
	scratch_make();
	paging();
	moving();
	changing();
	changed_by_many();
	raising();
	raised_by_many();
	scratch_remove();
	return unit_end();
}
