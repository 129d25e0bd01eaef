/* SPDX-License-Identifier: MIT */
/* Declaring a worker dead, and giving back its leases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/exchange.h"
#include "queue/output/output.h"
#include "queue/workers/workers.h"

#define PAGE 1000 /* leases to read at once */

/* Leases of the dead worker, to be given back together. */
struct lost {
	const struct queue_worker *dead;
	struct queue_run runs[QUEUE_BATCH];
	struct exchange exchange; /* of this fence only */
	bool damaged;		  /* a lease cannot be read */
};

/* Read the commands, and decide the next state of each. */
static enum status read_items(struct lost *lost, struct error *err)
{
	struct queue *queue = lost->exchange.queue;
	struct transaction t = {0};
	struct store_answer answer = {0};
	size_t count = lost->exchange.ended_count;
	for (size_t i = 0; i < count; i++)
		transaction_get(&t, queue_own_key_at(queue, &t, "item", lost->runs[i].item.id));
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		struct queue_run *run = &lost->runs[i];
		uint64_t id = run->item.id;
		queue_item_take(&answer.entries[i], id, &run->item);
		run->result = (struct queue_result){
			.ending = {.kind = ENDING_LOST, .text = "its worker disappeared"},
			.started = run->lease.since,
			.ended = clock_utc()};
		/* A command that no worker can read fails, as if a worker had taken it. */
		if (run->item.damaged)
			queue_ending_damaged(&run->result.ending, id);
		run_end(run);
	}
	transaction_release(&t);
	store_answer_release(&answer);
	return status;
}

/* Give back the gathered leases. */
static enum status give_back(struct lost *lost, struct error *err)
{
	size_t count = lost->exchange.ended_count;
	if (!count)
		return STATUS_OK;
	enum status status = read_items(lost, err);
	if (status == STATUS_OK)
		status = exchange_run(&lost->exchange, err);
	for (size_t i = 0; i < count; i++)
		run_release(&lost->runs[i]);
	lost->exchange.ended_count = 0;
	return status;
}

static enum status add_lease(struct lost *lost, const struct store_entry *entry, struct error *err)
{
	struct exchange *exchange = &lost->exchange;
	struct queue_run *run = &lost->runs[exchange->ended_count];
	*run = (struct queue_run){.revision = entry->revision};
	if (!queue_key_id(entry->key, &run->item.id))
		return STATUS_OK;
	/* A record that cannot be parsed must not block the others: skip it. */
	if (queue_read(&queue_lease_record, entry, &run->lease, err) != STATUS_OK) {
		lost->damaged = true;
		return STATUS_OK;
	}
	if (strcmp(run->lease.worker_token, lost->dead->token) != 0)
		return STATUS_OK;
	/*
	 * The worker is marked, so output that it filed will never count. Remove the files before
	 * the lease: nothing else names them.
	 */
	output_remove_both(exchange->queue, run->item.id, run->lease.token);
	exchange->ended[exchange->ended_count++] = run;
	return exchange->ended_count < QUEUE_BATCH ? STATUS_OK : give_back(lost, err);
}

static enum status give_all_back(struct lost *lost, struct error *err)
{
	struct queue *queue = lost->exchange.queue;
	char after[QUEUE_KEY_MAX] = "";
	const struct store_range range = {.after = after, .limit = PAGE};
	enum status status = STATUS_OK;
	for (bool more = true; more && status == STATUS_OK;) {
		struct store_answer page = {0};
		status = queue_list(queue, "run", range, &page, err);
		for (size_t i = 0; i < page.count && status == STATUS_OK; i++)
			status = add_lease(lost, &page.entries[i], err);
		more = page.more && page.count;
		if (more)
			snprintf(after, sizeof(after), "%s", page.entries[page.count - 1].key);
		store_answer_release(&page);
	}
	if (status == STATUS_OK)
		status = give_back(lost, err);
	return status == STATUS_OK && lost->damaged ? STATUS_DAMAGED : status;
}

/* After this, nothing that the worker does is accepted. STATUS_NO: its registration is gone. */
static enum status mark(struct queue *queue, struct queue_worker *dead, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct transaction t = {0};
	struct store_answer answer = {0};
	if (dead->fenced)
		return STATUS_OK;
	dead->fenced = true;
	workers_key(queue, key, dead->token);
	transaction_require_told(&t, key, dead->revision);
	transaction_put(&t, key, queue_write(&queue_worker_record, dead));
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	if (status == STATUS_OK && answer.held)
		dead->revision = answer.revision;
	else if (status == STATUS_OK && !answer.entries[0].revision)
		status = STATUS_NO;
	else if (status == STATUS_OK)
		/* A registration changes only when it is marked: another worker was faster. */
		dead->revision = answer.entries[0].revision;
	transaction_release(&t);
	store_answer_release(&answer);
	return status;
}

enum status workers_fence(struct queue *queue, const struct queue_worker *self,
	const struct queue_worker *dead, struct error *err)
{
	struct queue_worker marked = *dead;
	enum status status = mark(queue, &marked, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	struct lost *lost = xcalloc(1, sizeof(*lost));
	lost->dead = dead;
	lost->exchange.queue = queue;
	lost->exchange.worker = self;
	status = give_all_back(lost, err);
	free(lost);
	return status == STATUS_OK ? workers_remove(queue, &marked, err) : status;
}
