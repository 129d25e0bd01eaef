/* SPDX-License-Identifier: MIT */
#include "moves.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/exchange.h"
#include "queue/rules.h"

#define TRYING 20 /* ms for which the faulty call tries again by itself */

/* Filled once; each child inherits them, and the store is put back to where they are true. */
static struct queue_worker worker = {
	.token = "00000000000000aa", .name = "w", .slots = 4, .period = 1000, .limit = 3};
static struct queue_taken held[QUEUE_BATCH];

/* Of the child. */
static struct queue queue;
static struct exchange exchange;
static struct queue_return backs[2];

static enum status begin(struct store *store, bool works, struct error *err)
{
	enum status status = queue_open(&queue, store, "q", NULL, err);
	if (status == STATUS_OK && works)
		snprintf(queue.who, sizeof(queue.who), "%s", worker.token);
	return status;
}

/* Two commands more; "ID ID" in text. */
static enum status schedule(
	uint64_t number, const char *once, char *text, size_t size, struct error *err)
{
	static char name[] = "true", *words[] = {name, NULL};
	struct queue_schedule how = {.deadline = clock_after(TRYING), .once = once, .wake = -1};
	struct queue_item items[2];
	for (int i = 0; i < 2; i++)
		items[i] = (struct queue_item){.argv = words,
			.max_transient = 3,
			.halt = i == 1 ? HALT_NEVER : HALT_NOW,
			.scheduled = clock_utc()};
	enum status status = queue_schedule(&queue, items, 2, number, &how, err);
	if (status == STATUS_OK)
		snprintf(text, size, "%" PRIu64 " %" PRIu64, items[0].id, items[1].id);
	for (int i = 0; i < 2; i++)
		free(items[i].batch);
	return status;
}

enum status moves_fill(struct store *store, struct error *err)
{
	char key[QUEUE_KEY_MAX], ids[64];
	size_t got = 0;
	enum status status = begin(store, true, err);
	queue_key(&queue, key, "worker/%s", worker.token);
	if (status == STATUS_OK)
		status = store_put(store, key, "{}", &worker.revision, err);
	for (int i = 0; i < 2 && status == STATUS_OK; i++)
		status = schedule(0, NULL, ids, sizeof(ids), err);
	if (status == STATUS_OK)
		status = exchange_run(
			&exchange, &queue, &worker, NULL, 0, held, 2, &got, clock_after(5000), err);
	if (status == STATUS_OK && got != 2)
		status = error_set(err, STATUS_BROKEN, "%zu commands were taken", got);
	queue_release(&queue);
	exchange = (struct exchange){0};
	return status;
}

/* Command i ends so. */
static void end(int i, enum queue_ending_kind kind, int code, const char *out)
{
	struct queue_return *back = &backs[i];
	*back = (struct queue_return){.item = &held[i].item, .lease = held[i].lease, .out = out};
	memcpy(back->token, held[i].token, sizeof(back->token));
	memcpy(back->result.token, held[i].token, sizeof(back->token));
	back->result.ending = (struct queue_ending){.kind = kind, .code = code};
	back->result.out = out ? strlen(out) : 0;
	back->result.ended = clock_utc();
	back->state = back->result.state = rules_decide(
		&held[i].item, &held[i].history, &back->result.ending, &back->result.history);
}

/* What was accepted, and what is ours now. */
static enum status ask(size_t want, int64_t deadline, struct outcome *outcome)
{
	struct queue_taken taken[QUEUE_BATCH];
	size_t got, used;
	enum status status = exchange_run(
		&exchange, &queue, &worker, backs, 2, taken, want, &got, deadline, &outcome->err);
	if (status != STATUS_OK)
		return status;
	used = (size_t)snprintf(outcome->answer, sizeof(outcome->answer), "accepted %d %d, got",
		backs[0].accepted, backs[1].accepted);
	for (size_t i = 0; i < got; i++) {
		used += (size_t)snprintf(outcome->answer + used, sizeof(outcome->answer) - used,
			" %" PRIu64 " (%s)", taken[i].item.id, taken[i].item.argv[0]);
		queue_item_release(&taken[i].item);
	}
	return STATUS_OK;
}

enum status moves_exchange(struct store *store, struct outcome *outcome)
{
	enum status status = begin(store, true, &outcome->err);
	end(0, ENDING_EXITED, 0, "what it printed");
	end(1, ENDING_EXITED, 3, NULL);
	return status == STATUS_OK ? ask(2, clock_after(TRYING), outcome) : status;
}

enum status moves_give_back(struct store *store, struct outcome *outcome)
{
	enum status status = begin(store, true, &outcome->err);
	end(0, ENDING_PREEMPTED, 0, NULL);
	end(1, ENDING_EXITED, 3, "what it printed");
	return status == STATUS_OK ? ask(0, clock_after(TRYING), outcome) : status;
}

static void ask_again(size_t want, struct outcome *outcome)
{
	if (outcome->status != STATUS_OK)
		outcome->status = ask(want, clock_after(5000), outcome);
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

enum status moves_schedule(struct store *store, struct outcome *outcome)
{
	enum status status = begin(store, false, &outcome->err);
	return status == STATUS_OK
		       ? schedule(0, NULL, outcome->answer, sizeof(outcome->answer), &outcome->err)
		       : status;
}

enum status moves_schedule_once(struct store *store, struct outcome *outcome)
{
	enum status status = begin(store, false, &outcome->err);
	return status == STATUS_OK ? schedule(0, "name", outcome->answer, sizeof(outcome->answer),
					     &outcome->err)
				   : status;
}

void moves_schedule_once_again(struct store *store, struct outcome *outcome)
{
	(void)store;
	if (outcome->status != STATUS_OK)
		outcome->status = schedule(
			0, "name", outcome->answer, sizeof(outcome->answer), &outcome->err);
}
