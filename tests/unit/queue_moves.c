/* SPDX-License-Identifier: MIT */
/*
 * Commands move from place to place under many hands: each is in exactly one place, is counted
 * there, and gets one result; who was overtaken is refused.
 */
#include <inttypes.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "queue/exchange.h"
#include "queue/moves.h"
#include "queue/rules.h"
#include "scratch_queue.h"
#include "store/backend.h"
#include "unit.h"

/* count items, all the same except their number as the argument. */
static enum status schedule(size_t count, uint64_t number, const struct queue_schedule *how)
{
	static struct queue_item items[4 * QUEUE_BATCH];
	enum status status;
	for (size_t i = 0; i < count; i++) {
		static char name[] = "true", *words[] = {name, NULL};
		items[i] = (struct queue_item){.argv = words, .scheduled = 1, .max_transient = 3};
	}
	status = queue_schedule(&queue, items, count, number, how, &err);
	for (size_t i = 0; i < count; i++)
		free(items[i].batch);
	return status;
}
static const struct queue_schedule plain = {.wake = -1, .deadline = CLOCK_NEVER};

static void register_worker(struct queue_worker *worker, int number)
{
	char key[QUEUE_KEY_MAX];
	*worker = (struct queue_worker){.slots = 1};
	snprintf(worker->token, sizeof(worker->token), "%016x", number);
	snprintf(worker->name, sizeof(worker->name), "w%d", number);
	snprintf(queue.who, sizeof(queue.who), "%s", worker->token);
	queue_key(&queue, key, "worker/%s", worker->token);
	store_put(store, key, "{}", &worker->revision, &err);
}

/* End a command that this worker has: its result is to be handed in. */
static void end(struct queue_run *run, enum queue_ending_kind kind, int code)
{
	run->result = (struct queue_result){.ending = {.kind = kind, .code = code}};
	run->outcome = RUN_PENDING;
	run_end(run);
}

static enum status turn(
	struct exchange *exchange, struct queue_run *ended, size_t count, size_t want)
{
	int64_t deadline = clock_after(30000);
	enum status status;
	exchange->queue = &queue;
	exchange->ended_count = count;
	for (size_t i = 0; i < count; i++)
		exchange->ended[i] = &ended[i];
	do {
		exchange->want = want;
		status = exchange_run(exchange, &err);
	} while (status == STATUS_TEMPORARY && clock_now() < deadline);
	return status;
}

/* What counts from now on is what this worker does. */
static void act_as(const struct queue_worker *worker)
{
	snprintf(queue.who, sizeof(queue.who), "%s", worker->token);
	queue.tallied = -1;
}

/* A worker that takes and ends at random until nothing is left; its exit code is 0. */
static void work(int number)
{
	struct queue_worker worker;
	struct exchange exchange = {.worker = &worker};
	struct queue_run held[QUEUE_BATCH];
	size_t have = 0;
	int64_t deadline = clock_after(200000);
	unsigned seed = (unsigned)number;
	reopen("q");
	register_worker(&worker, number);
	while (clock_now() < deadline) {
		struct queue_count count;
		size_t ending = have ? (size_t)rand_r(&seed) % (have + 1) : 0;
		size_t want = (size_t)rand_r(&seed) % 4;
		for (size_t i = 0; i < ending; i++)
			end(&held[i], rand_r(&seed) % 4 ? ENDING_EXITED : ENDING_PREEMPTED, 0);
		if (turn(&exchange, held, ending, want) != STATUS_OK)
			_exit(1);
		for (size_t i = 0; i < ending; i++) {
			if (held[i].outcome != RUN_ACCEPTED)
				_exit(2);
			run_release(&held[i]);
		}
		memmove(held, held + ending, (have - ending) * sizeof(*held));
		have -= ending;
		if (have + exchange.got > QUEUE_BATCH - 4)
			_exit(3);
		memcpy(held + have, exchange.taken, exchange.got * sizeof(*held));
		have += exchange.got;
		if (have)
			continue;
		if (queue_count(&queue, &count, &err) != STATUS_OK)
			_exit(4);
		if (!count.waiting && !count.running) {
			close_all();
			_exit(0);
		}
	}
	_exit(5);
}

static void many_hands(void)
{
	enum { WORKERS = 5, BATCHES = 12 };
	pid_t pids[WORKERS];
	int status = 0;
	bool good = true;
	struct queue_count before, count;
	TEST("five workers and a scheduler: each command gets one result, and all are counted")
	{
		CHECK_EQ(queue_count(&queue, &before, &err), STATUS_OK);
		for (int i = 0; i < WORKERS; i++)
			if ((pids[i] = fork()) == 0) {
				close_all();
				/* The first come before there is anything. */
				reopen("q");
				while (!count_keys("item"))
					clock_sleep_until(clock_after(5));
				close_all();
				work(i + 1);
			}
		for (int i = 0; i < BATCHES; i++)
			CHECK_EQ(schedule(10, 0, &plain), STATUS_OK);
		for (int i = 0; i < WORKERS; i++) {
			waitpid(pids[i], &status, 0);
			good &= status == 0;
		}
		CHECK(good);
		CHECK(counts_agree());
		CHECK_EQ(queue_count(&queue, &count, &err), STATUS_OK);
		CHECK_EQ(count.succeeded - before.succeeded, 10 * BATCHES);
		CHECK_EQ(count_keys("cancel"), 0);
	}
}

static void order(void)
{
	struct queue_worker worker;
	struct exchange exchange = {.worker = &worker};
	TEST("the higher priority first, then in the order in which they were scheduled")
	{
		static const int priorities[] = {0, -3, 7, 0, QUEUE_PRIORITY_MAX};
		static const uint64_t wanted[] = {5, 3, 1, 4, 2};
		static char name[] = "true", *words[] = {name, NULL};
		struct queue_item items[5] = {{0}};
		for (int i = 0; i < 5; i++)
			items[i] = (struct queue_item){.argv = words, .priority = priorities[i]};
		CHECK_EQ(queue_schedule(&queue, items, 5, 0, &plain, &err), STATUS_OK);
		uint64_t first = items[0].id;
		for (int i = 0; i < 5; i++)
			free(items[i].batch);
		register_worker(&worker, 77);
		queue.tallied = -1;
		for (int i = 0; i < 5; i++) {
			CHECK_EQ(turn(&exchange, NULL, 0, 1), STATUS_OK);
			CHECK_EQ(exchange.got, 1);
			struct queue_run run = exchange.taken[0];
			CHECK_EQ(run.item.id - first + 1, wanted[i]);
			end(&run, ENDING_EXITED, 0);
			CHECK_EQ(turn(&exchange, &run, 1, 0), STATUS_OK);
			CHECK_EQ(run.outcome, RUN_ACCEPTED);
			run_release(&run);
		}
		CHECK(counts_agree());
	}
}

static void overtaken(void)
{
	struct queue_worker old, new;
	struct exchange exchange = {.worker = &old}, other = {.worker = &new};
	char key[QUEUE_KEY_MAX];
	TEST("WQ-10: one that was treated as dead is refused, and cannot overwrite the result")
	{
		CHECK_EQ(schedule(1, 0, &plain), STATUS_OK);
		register_worker(&old, 80);
		queue.tallied = -1;
		CHECK_EQ(turn(&exchange, NULL, 0, 1), STATUS_OK);
		CHECK_EQ(exchange.got, 1);
		/* A judge gives it back; the registration still stands. */
		struct queue_run run = exchange.taken[0];
		end(&run, ENDING_LOST, 0);
		CHECK_EQ(run.result.state, QUEUE_WAITING);
		CHECK_EQ(turn(&exchange, &run, 1, 0), STATUS_OK);
		register_worker(&new, 81);
		queue.tallied = -1;
		CHECK_EQ(turn(&other, NULL, 0, 1), STATUS_OK);
		struct queue_run again = other.taken[0];
		CHECK_EQ(again.item.id, run.item.id);
		CHECK_EQ(again.lease.history.starts, 2);
		act_as(&old);
		end(&run, ENDING_EXITED, 1);
		CHECK_EQ(turn(&exchange, &run, 1, 0), STATUS_OK);
		CHECK_EQ(run.outcome, RUN_REFUSED);
		queue_key(&queue, key, "error");
		CHECK_EQ(store_get(store, key, &(struct store_entry){0}, &err), STATUS_NO);
		/* Without its registration it gets STATUS_NO. */
		queue_key(&queue, key, "worker/%s", old.token);
		CHECK_EQ(store_delete(store, key, &err), STATUS_OK);
		end(&run, ENDING_EXITED, 1);
		CHECK_EQ(turn(&exchange, &run, 1, 1), STATUS_NO);
		CHECK_EQ(run.outcome, RUN_REFUSED);
		CHECK_EQ(exchange.got, 0);
		act_as(&new);
		end(&again, ENDING_EXITED, 0);
		CHECK_EQ(turn(&other, &again, 1, 0), STATUS_OK);
		CHECK_EQ(again.outcome, RUN_ACCEPTED);
		CHECK(counts_agree());
		run_release(&run);
		run_release(&again);
	}
}

static void lost_answer(void)
{
	struct queue_worker worker, judge;
	struct exchange exchange = {.worker = &worker}, other = {.worker = &judge};
	struct queue_run runs[2];
	char key[QUEUE_KEY_MAX];
	register_worker(&worker, 85);
	queue.tallied = -1;
	TEST("an answer is lost, nothing was handed in: it is handed in again")
	{
		CHECK_EQ(schedule(4, 0, &plain), STATUS_OK);
		CHECK_EQ(turn(&exchange, NULL, 0, 2), STATUS_OK);
		CHECK_EQ(exchange.got, 2);
		memcpy(runs, exchange.taken, sizeof(runs));
		for (int i = 0; i < 2; i++) {
			end(&runs[i], ENDING_EXITED, 0);
			runs[i].outcome = RUN_SENT;
		}
		memcpy(queue.unknown, "00000000000000ff", 17);
		CHECK_EQ(turn(&exchange, runs, 2, 2), STATUS_OK);
		CHECK_EQ(exchange.got, 2);
		CHECK(!moves_are_unknown(&queue));
		for (int i = 0; i < 2; i++) {
			CHECK_EQ(runs[i].outcome, RUN_ACCEPTED);
			run_release(&runs[i]);
		}
		CHECK(counts_agree());
		memcpy(runs, exchange.taken, sizeof(runs));
	}
	TEST("an answer is lost, all was handed in and more was taken: it counts, and is ours")
	{
		CHECK_EQ(schedule(2, 0, &plain), STATUS_OK);
		for (int i = 0; i < 2; i++)
			end(&runs[i], ENDING_EXITED, 0);
		/* As it was before the transaction. */
		const struct queue before = queue;
		CHECK_EQ(turn(&exchange, runs, 2, 2), STATUS_OK);
		CHECK_EQ(exchange.got, 2);
		memcpy(queue.unknown, queue.tally.last, sizeof(queue.unknown));
		queue.tally = before.tally;
		queue.tallied = before.tallied;
		exchange.candidates = exchange.got;
		for (int i = 0; i < 2; i++) {
			uint64_t id = exchange.taken[i].item.id;
			queue_item_release(&exchange.taken[i].item);
			exchange.taken[i].item.id = id;
			exchange.taken[i].revision = 0;
			runs[i].outcome = RUN_SENT;
		}
		CHECK_EQ(turn(&exchange, runs, 2, 2), STATUS_OK);
		CHECK_EQ(exchange.got, 2);
		CHECK(!moves_are_unknown(&queue));
		for (int i = 0; i < 2; i++) {
			CHECK_EQ(runs[i].outcome, RUN_ACCEPTED);
			run_release(&runs[i]);
		}
		memcpy(runs, exchange.taken, sizeof(runs));
		CHECK_TEXT(runs[0].item.argv[0], "true");
		CHECK(counts_agree());
	}
	TEST("an answer is lost, nothing was handed in, then others take us for dead: all is refused")
	{
		/* It is fenced: its registration changes, then what it ran goes back. */
		queue_key(&queue, key, "worker/%s", worker.token);
		CHECK_EQ(store_put(store, key, "{\"fenced\":true}", NULL, &err), STATUS_OK);
		struct queue_run lost[2] = {runs[0], runs[1]};
		const struct queue ours = queue;
		register_worker(&judge, 86);
		queue.tallied = -1;
		for (int i = 0; i < 2; i++)
			end(&lost[i], ENDING_LOST, 0);
		CHECK_EQ(turn(&other, lost, 2, 0), STATUS_OK);
		CHECK(lost[0].outcome == RUN_ACCEPTED && lost[1].outcome == RUN_ACCEPTED);
		/* One was to be given back, the other has a result. */
		queue = ours;
		end(&runs[0], ENDING_PREEMPTED, 0);
		end(&runs[1], ENDING_EXITED, 0);
		runs[0].outcome = runs[1].outcome = RUN_SENT;
		memcpy(queue.unknown, "00000000000000ff", 17);
		CHECK_EQ(turn(&exchange, runs, 2, 0), STATUS_NO);
		CHECK_EQ(runs[1].outcome, RUN_REFUSED);
		CHECK(!moves_are_unknown(&queue));
		/* Cleared for the tests that follow. */
		act_as(&judge);
		CHECK_EQ(turn(&other, NULL, 0, 2), STATUS_OK);
		CHECK_EQ(other.got, 2);
		memcpy(lost, other.taken, sizeof(lost));
		for (int i = 0; i < 2; i++)
			end(&lost[i], ENDING_EXITED, 0);
		CHECK_EQ(turn(&other, lost, 2, 0), STATUS_OK);
		for (int i = 0; i < 2; i++) {
			run_release(&runs[i]);
			run_release(&lost[i]);
		}
		CHECK(counts_agree());
	}
}

static void failing(void)
{
	struct queue_worker worker;
	struct exchange exchange = {.worker = &worker};
	struct queue_run runs[3];
	struct store_entry entry = {0};
	struct queue_failure failure;
	char key[QUEUE_KEY_MAX];
	TEST("the first failure is noted, and nothing is taken while it is pending")
	{
		CHECK_EQ(schedule(4, 0, &plain), STATUS_OK);
		register_worker(&worker, 90);
		queue.tallied = -1;
		CHECK_EQ(turn(&exchange, NULL, 0, 3), STATUS_OK);
		CHECK_EQ(exchange.got, 3);
		memcpy(runs, exchange.taken, sizeof(runs));
		for (int i = 0; i < 2; i++)
			end(&runs[i], ENDING_EXITED, 3 + i);
		CHECK_EQ(turn(&exchange, runs, 2, 0), STATUS_OK);
		CHECK(runs[0].outcome == RUN_ACCEPTED && runs[1].outcome == RUN_ACCEPTED);
		queue_key(&queue, key, "error");
		CHECK_EQ(store_get(store, key, &entry, &err), STATUS_OK);
		CHECK_EQ(queue_read(&queue_failure_record, &entry, &failure, &err), STATUS_OK);
		CHECK_EQ(failure.ending.code, 3);
		store_entry_release(&entry);
		/* One more fails, and its worker wants another: it is handed in, and gets none. */
		end(&runs[2], ENDING_EXITED, 9);
		CHECK_EQ(turn(&exchange, &runs[2], 1, 1), STATUS_OK);
		CHECK_EQ(runs[2].outcome, RUN_ACCEPTED);
		CHECK_EQ(exchange.got, 0);
		CHECK(exchange.error_pending);
		CHECK(counts_agree());
		for (int i = 0; i < 3; i++)
			run_release(&runs[i]);
	}
}

static void put_back(void)
{
	enum { ROUNDS = 10 };
	struct queue_worker worker;
	struct exchange_pauses pauses = {0};
	struct exchange exchange = {.worker = &worker, .pauses = &pauses};
	uint64_t last = 0;
	TEST("each command that was put back is left alone for a while, however many there are")
	{
		register_worker(&worker, 1);
		for (int round = 0; round < ROUNDS; round++) {
			struct queue_run runs[QUEUE_BATCH];
			CHECK_EQ(schedule(QUEUE_BATCH, 0, &plain), STATUS_OK);
			CHECK_EQ(turn(&exchange, NULL, 0, QUEUE_BATCH), STATUS_OK);
			CHECK_EQ(exchange.got, QUEUE_BATCH);
			memcpy(runs, exchange.taken, sizeof(runs));
			for (int i = 0; i < QUEUE_BATCH; i++) {
				CHECK(runs[i].item.id > last);
				last = runs[i].item.id;
				/* The pause is 5 minutes after many starts. */
				runs[i].lease.history.starts = 20;
				end(&runs[i], ENDING_PREEMPTED, 0);
			}
			CHECK_EQ(turn(&exchange, runs, QUEUE_BATCH, 0), STATUS_OK);
			for (int i = 0; i < QUEUE_BATCH; i++)
				run_release(&runs[i]);
		}
		CHECK_EQ(turn(&exchange, NULL, 0, QUEUE_BATCH), STATUS_OK);
		CHECK_EQ(exchange.got, 0);
		CHECK(exchange_pauses_due(&pauses) > clock_now());
		CHECK(!exchange_pauses_end(&pauses, clock_now()));
		CHECK(exchange_pauses_end(&pauses, exchange_pauses_due(&pauses)));
		CHECK(exchange_pauses_end(&pauses, CLOCK_NEVER - 1));
		CHECK_EQ(exchange_pauses_due(&pauses), CLOCK_NEVER);
		CHECK_EQ(turn(&exchange, NULL, 0, QUEUE_BATCH), STATUS_OK);
		CHECK_EQ(exchange.got, QUEUE_BATCH);
		for (size_t i = 0; i < exchange.got; i++)
			run_release(&exchange.taken[i]);
		exchange_pauses_release(&pauses);
	}
}

static void once(void)
{
	struct queue_schedule how = {.wake = -1, .deadline = CLOCK_NEVER, .once = "sweep"};
	char key[QUEUE_KEY_MAX];
	TEST("what was scheduled under a name is not scheduled again")
	{
		queue_key(&queue, key, "error");
		CHECK_EQ(store_delete(store, key, &err), STATUS_OK);
		size_t before = count_keys("item");
		CHECK_EQ(schedule(10, 0, &how), STATUS_OK);
		CHECK_EQ(schedule(3, 10, &plain), STATUS_OK); /* another scheduler, in between */
		CHECK_EQ(schedule(10, 10, &how), STATUS_OK);
		CHECK_EQ(schedule(10, 0, &how), STATUS_OK);
		/* Begun again in other batches: only what is missing. */
		CHECK_EQ(schedule(15, 10, &how), STATUS_OK);
		CHECK_EQ(count_keys("item"), before + 28);
		CHECK(counts_agree());
	}
}

/* Another worker, which changes what waits each time that ours has chosen. */
static struct store *rival;
static unsigned conflicts;

/* Before libc: a token is drawn for each command that was chosen. */
ssize_t getrandom(void *bytes, size_t length, unsigned flags)
{
	struct store_answer answer = {0};
	char prefix[QUEUE_KEY_MAX];
	if (rival && length == sizeof(uint64_t) && !flags) {
		struct store *other = rival;
		rival = NULL;
		queue_key(&queue, prefix, "wait/");
		struct store_range range = {.prefix = prefix, .limit = 1};
		if (store_list(other, &range, &answer, NULL) == STATUS_OK && answer.count)
			conflicts += store_put(other, answer.entries[0].key,
					     answer.entries[0].value, NULL, NULL) == STATUS_OK;
		store_answer_release(&answer);
		rival = other;
	}
	return syscall(SYS_getrandom, bytes, length, flags);
}

static void always_late(void)
{
	struct queue_worker worker;
	struct exchange exchange = {.worker = &worker};
	close_all();
	reopen("late");
	CHECK_EQ(schedule(1, 0, &plain), STATUS_OK);
	register_worker(&worker, 77);
	TEST("other workers are faster each time: the turn ends, and may be tried again at once")
	{
		alarm(300);
		CHECK_EQ(store_open(&rival, url, 0, clock_after(60000), &err), STATUS_OK);
		CHECK_EQ(turn(&exchange, NULL, 0, 1), STATUS_OK);
		CHECK(exchange.got == 0 && conflicts > 1 && exchange.seen == 0);
		store_close(rival);
		rival = NULL;
		CHECK_EQ(turn(&exchange, NULL, 0, 1), STATUS_OK);
		CHECK_EQ(exchange.got, 1);
		run_release(&exchange.taken[0]);
		CHECK(counts_agree());
		alarm(0);
	}
}

/* A transaction is made and its answer lost; the store cannot be asked by the next ones. */
static const struct store_backend *working;
static int lose_after, refuse;
static enum status lose(struct store *of, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *error)
{
	if (lose_after-- > 0)
		return working->txn(of, request, deadline, answer, error);
	if (lose_after == -1) {
		working->txn(of, request, deadline, answer, error);
		store_answer_release(answer);
		return error_set(error, STATUS_TEMPORARY, "the answer is lost");
	}
	if (refuse-- <= 0)
		return working->txn(of, request, deadline, answer, error);
	answer->known = true;
	return error_set(error, STATUS_TEMPORARY, "the store is busy");
}

static void lost_schedule(void)
{
	struct queue_count before, after;
	working = store->backend;
	struct store_backend losing = *working;
	losing.txn = lose;
	store->backend = &losing;
	TEST("an answer to schedule is lost, and then the store is busy: it is found out all the same")
	{
		CHECK_EQ(queue_count(&queue, &before, &err), STATUS_OK);
		lose_after = 1; /* the first transaction reads */
		refuse = 3;
		CHECK_EQ(schedule(2, 0, &plain), STATUS_OK);
		CHECK(refuse <= 0);
		CHECK_EQ(queue_count(&queue, &after, &err), STATUS_OK);
		CHECK_EQ(after.scheduled, before.scheduled + 2);
		CHECK(counts_agree());
	}
	TEST("it stays busy: could not ask, and the error says what is not known")
	{
		lose_after = 1;
		refuse = 100;
		CHECK_EQ(schedule(1, 0, &plain), STATUS_TEMPORARY);
		CHECK(strstr(err.text, "cannot find out whether"));
	}
	store->backend = working;
}

static void limited(void)
{
	struct queue_count count;
	struct queue_schedule how = {.wake = -1};
	TEST("a full queue lets no worker in")
	{
		CHECK_EQ(queue_count(&queue, &count, &err), STATUS_OK);
		how.limit = count.waiting + 2;
		how.deadline = clock_after(100);
		CHECK_EQ(schedule(2, 0, &how), STATUS_OK);
		CHECK_EQ(schedule(1, 0, &how), STATUS_TIMEOUT);
		how.limit++;
		CHECK_EQ(schedule(1, 0, &how), STATUS_OK);
		how.limit = 0;
		CHECK_EQ(schedule(1, 0, &how), STATUS_OK);
	}
}

static void damaged(void)
{
	struct moves moves;
	char key[QUEUE_KEY_MAX];
	struct store_entry entry = {0};
	TEST("a tally that cannot be read is refused as often as it is asked for")
	{
		snprintf(queue.who, sizeof(queue.who), "damaged");
		queue.tallied = -1;
		queue_key(&queue, key, "count/%s", queue.who);
		CHECK_EQ(store_put(store, key, "[]", NULL, &err), STATUS_OK);
		for (int i = 0; i < 2; i++) {
			CHECK_EQ(moves_begin(&moves, &queue, &err), STATUS_DAMAGED);
			moves_release(&moves);
		}
		CHECK_EQ(store_get(store, key, &entry, &err), STATUS_OK);
		CHECK(entry.value && !strcmp(entry.value, "[]"));
		store_entry_release(&entry);
		CHECK_EQ(store_delete(store, key, &err), STATUS_OK);
		queue.tallied = -1;
	}
}

static void damaged_head(void)
{
	struct queue_worker worker;
	struct exchange exchange = {.worker = &worker};
	char key[QUEUE_KEY_MAX];
	TEST("a command that waits is damaged: results are handed in, and the key is named")
	{
		CHECK_EQ(schedule(2, 0, &plain), STATUS_OK);
		register_worker(&worker, 1);
		queue.tallied = -1;
		CHECK_EQ(turn(&exchange, NULL, 0, 1), STATUS_OK);
		CHECK_EQ(exchange.got, 1);
		struct queue_run run = exchange.taken[0];
		queue_key_waiting(&queue, key, 0, run.item.id + 1);
		CHECK_EQ(store_put(store, key, "[]", NULL, &err), STATUS_OK);
		end(&run, ENDING_EXITED, 0);
		CHECK_EQ(turn(&exchange, &run, 1, 1), STATUS_DAMAGED);
		CHECK(strstr(err.text, key));
		CHECK_EQ(run.outcome, RUN_ACCEPTED);
		CHECK_EQ(exchange.got, 0);
		CHECK_EQ(turn(&exchange, NULL, 0, 1), STATUS_DAMAGED);
		CHECK(strstr(err.text, key));
		run_release(&run);
	}
}

int main(void)
{
	scratch_make();
	reopen("q");
	order();
	many_hands();
	overtaken();
	lost_answer();
	failing();
	once();
	limited();
	lost_schedule();
	always_late();
	damaged();
	close_all();
	reopen("put-back");
	put_back();
	close_all();
	reopen("damaged-head");
	damaged_head();
	close_all();
	scratch_remove();
	return unit_end();
}
