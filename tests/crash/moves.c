/* SPDX-License-Identifier: MIT */
#include "moves.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/exchange.h"
#include "queue/rules.h"

#define TRYING 20 /* ms for which the faulty call is tried again */

/* Filled once; each child inherits them, and the store is put back to where they are true. */
static struct queue_worker worker = {
	.token = "00000000000000aa", .name = "w", .slots = 4, .period = 1000, .limit = 3};
static struct queue_run held[2];

/* Of the child. */
static struct queue queue;
static struct exchange exchange;

static enum status begin(struct store *store, bool works, struct error *err)
{
	enum status status = queue_open(&queue, store, "q", NULL, err);
	if (status == STATUS_OK && works)
		snprintf(queue.who, sizeof(queue.who), "%s", worker.token);
	return status;
}

/* Two commands more. */
static enum status schedule(struct error *err)
{
	static char name[] = "true", *words[] = {name, NULL};
	struct queue_schedule how = {.deadline = clock_after(TRYING), .wake = -1};
	struct queue_item items[2];
	for (int i = 0; i < 2; i++)
		items[i] = (struct queue_item){.argv = words,
			.max_transient = 3,
			.halt = i == 1 ? HALT_NEVER : HALT_NOW,
			.scheduled = clock_utc()};
	enum status status = queue_schedule(&queue, items, 2, 0, &how, err);
	for (int i = 0; i < 2; i++)
		free(items[i].batch);
	return status;
}

enum status moves_fill(struct store *store, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	enum status status = begin(store, true, err);
	queue_key(&queue, key, "worker/%s", worker.token);
	if (status == STATUS_OK)
		status = store_put(store, key, "{}", &worker.revision, err);
	for (int i = 0; i < 2 && status == STATUS_OK; i++)
		status = schedule(err);
	exchange = (struct exchange){.queue = &queue, .worker = &worker, .want = 2};
	if (status == STATUS_OK)
		status = exchange_run(&exchange, err);
	if (status == STATUS_OK && exchange.got != 2)
		status = error_set(err, STATUS_BROKEN, "%zu commands were taken", exchange.got);
	memcpy(held, exchange.taken, sizeof(held));
	queue_release(&queue);
	return status;
}

/* Command i ends so. */
static void end(int i, enum queue_ending_kind kind, int code, const char *out)
{
	struct queue_run *run = &held[i];
	run->result =
		(struct queue_result){.ending = {.kind = kind, .code = code}, .ended = clock_utc()};
	run->out = out ? strdup(out) : NULL;
	run->result.out = out ? strlen(out) : 0;
	run->outcome = RUN_PENDING;
	run_end(run);
}

static void begin_exchange(size_t want)
{
	exchange = (struct exchange){.queue = &queue,
		.worker = &worker,
		.ended = {&held[0], &held[1]},
		.ended_count = 2,
		.want = want};
}

/* What was accepted, and what is ours now. */
static enum status ask(int64_t patience, struct outcome *outcome)
{
	size_t used, want = exchange.want;
	int64_t deadline = clock_after(patience);
	enum status status = exchange_run(&exchange, &outcome->err);
	while (status == STATUS_TEMPORARY && clock_now() < deadline) {
		clock_sleep_until(clock_after(clock_jitter(5)));
		exchange.want = want;
		status = exchange_run(&exchange, &outcome->err);
	}
	if (status != STATUS_OK)
		return status;
	used = (size_t)snprintf(outcome->answer, sizeof(outcome->answer), "accepted %d %d, got",
		held[0].outcome == RUN_ACCEPTED, held[1].outcome == RUN_ACCEPTED);
	for (size_t i = 0; i < exchange.got; i++) {
		struct queue_run *run = &exchange.taken[i];
		used += (size_t)snprintf(outcome->answer + used, sizeof(outcome->answer) - used,
			" %" PRIu64 " (%s)", run->item.id, run->item.argv[0]);
		run_release(run);
	}
	return STATUS_OK;
}

enum status moves_exchange(struct store *store, struct outcome *outcome)
{
	enum status status = begin(store, true, &outcome->err);
	end(0, ENDING_EXITED, 0, "what it printed");
	end(1, ENDING_EXITED, 3, NULL);
	begin_exchange(2);
	return status == STATUS_OK ? ask(TRYING, outcome) : status;
}

enum status moves_give_back(struct store *store, struct outcome *outcome)
{
	enum status status = begin(store, true, &outcome->err);
	end(0, ENDING_PREEMPTED, 0, NULL);
	end(1, ENDING_EXITED, 3, "what it printed");
	begin_exchange(0);
	return status == STATUS_OK ? ask(TRYING, outcome) : status;
}

static void ask_again(size_t want, struct outcome *outcome)
{
	if (outcome->status != STATUS_OK) {
		exchange.want = want;
		outcome->status = ask(5000, outcome);
	}
}

void moves_exchange_again(struct store *store, struct outcome *outcome)
{
	(void)store;
	ask_again(2, outcome);
}

void moves_give_back_again(struct store *store, struct outcome *outcome)
{
	(void)store;
	ask_again(0, outcome);
}
