/* SPDX-License-Identifier: MIT */
/* Giving back what somebody has leased who will not hand it in. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/moves.h"
#include "queue/output.h"
#include "queue/rules.h"
#include "queue/workers_inside.h"

#define PAGE 1000 /* leases that are read at once */

/* Whose leases go back, and how. */
struct returning {
	struct queue *queue;
	const struct queue_worker *self; /* NULL: no worker */
	const char *token;		 /* of the worker that has them */
	enum queue_ending_kind kind;
	const char *text;
	const char (*kept)[17]; /* leases that stay */
	size_t kept_count;
};

struct leased {
	uint64_t id;
	store_revision revision;
	store_revision cancel; /* of the wish to end it, as it was seen last; 0: none */
	uint64_t because;      /* queue_cancel_cause of that */
	struct queue_lease lease;
	struct queue_item item;
};

static bool is_kept(const struct returning *returning, const struct queue_lease *lease)
{
	for (size_t i = 0; i < returning->kept_count; i++)
		if (!strcmp(returning->kept[i], lease->token))
			return true;
	return false;
}

/* Read what was asked. */
static enum status read_items(
	struct queue *queue, struct leased *leased, size_t count, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	for (size_t i = 0; i < count; i++) {
		char key[QUEUE_KEY_MAX];
		queue_key_at(queue, key, "item", leased[i].id);
		transaction_get(&t, transaction_own(&t, key));
	}
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		queue_item_take(&answer.entries[i], leased[i].id, &leased[i].item);
	transaction_release(&t);
	store_answer_release(&answer);
	return status;
}

static void add_move(struct moves *moves, const struct returning *returning,
	const struct leased *leased, bool note)
{
	struct queue_result result = {.ending = {.kind = returning->kind},
		.started = leased->lease.since,
		.ended = clock_utc()};
	snprintf(result.ending.text, sizeof(result.ending.text), "%s", returning->text);
	/* No worker could run it: it fails, as it would when taken. */
	if (leased->item.damaged) {
		result.ending.kind = ENDING_CANNOT;
		result.ending.code = STATUS_CANNOT_RUN;
		snprintf(result.ending.text, sizeof(result.ending.text),
			"the record of command %" PRIu64 " in the store is damaged", leased->id);
	}
	memcpy(result.token, leased->lease.token, sizeof(result.token));
	memcpy(result.worker, leased->lease.worker, sizeof(result.worker));
	memcpy(result.host, leased->lease.host, sizeof(result.host));
	result.state = rules_decide(
		&leased->item, &leased->lease.history, &result.ending, &result.history);
	/* What somebody wants to end does not wait again. */
	if (leased->cancel) {
		result.state = QUEUE_CANCELLED;
		result.ending.kind = ENDING_CANCELLED;
		result.because = leased->because;
	}
	moves_end(moves, &leased->item, result.state, &result, NULL, NULL, note);
}

/* It may have died while it filed what will never count. */
static void remove_outputs(
	const struct returning *returning, const struct leased *leased, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct queue_lease *lease = &leased[i].lease;
		if (!leased[i].revision)
			continue;
		output_remove(returning->queue, leased[i].id, lease->token, OUTPUT_OUT);
		output_remove(returning->queue, leased[i].id, lease->token, OUTPUT_ERR);
	}
}

/*
 * Move those of the leases that are still there; *error is the revision of the key error as it was
 * seen last. STATUS_NO: look again. STATUS_BROKEN: self is gone.
 */
static enum status move_once(const struct returning *returning, struct leased *leased, size_t count,
	store_revision *error, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct moves moves;
	struct store_answer answer = {0};
	size_t required = 0;
	enum status status = moves_begin(&moves, returning->queue, err);
	if (status != STATUS_OK)
		return status;
	if (returning->self) {
		workers_key(returning->queue, key, returning->self->token);
		transaction_require_told(
			&moves.t, transaction_own(&moves.t, key), returning->self->revision);
		required++;
	}
	queue_key(returning->queue, key, "error");
	transaction_require_told(&moves.t, transaction_own(&moves.t, key), *error);
	required++;
	for (size_t i = 0; i < count; i++) {
		if (!leased[i].revision)
			continue;
		queue_key_at(returning->queue, key, "run", leased[i].id);
		transaction_require_told(
			&moves.t, transaction_own(&moves.t, key), leased[i].revision);
		queue_key_at(returning->queue, key, "cancel", leased[i].id);
		transaction_require_told(
			&moves.t, transaction_own(&moves.t, key), leased[i].cancel);
		add_move(&moves, returning, &leased[i], *error == 0);
	}
	status = moves_run(&moves, &answer, err);
	if (status == STATUS_OK && answer.held)
		remove_outputs(returning, leased, count);
	else if (status == STATUS_OK) {
		status = STATUS_NO;
		if (returning->self && answer.entries[0].revision != returning->self->revision)
			status = STATUS_BROKEN;
		*error = answer.entries[required - 1].revision;
		for (size_t i = 0, at = required; i < count; i++) {
			if (!leased[i].revision)
				continue;
			if (answer.entries[at++].revision != leased[i].revision)
				leased[i].revision = 0; /* somebody else has moved it */
			leased[i].because = queue_cancel_cause(&answer.entries[at]);
			leased[i].cancel = answer.entries[at++].revision;
		}
	}
	store_answer_release(&answer);
	moves_release(&moves);
	return status;
}

static enum status move_batch(
	const struct returning *returning, struct leased *leased, size_t count, struct error *err)
{
	store_revision error = 0;
	enum status status = read_items(returning->queue, leased, count, err);
	while (status == STATUS_OK) {
		bool any = false;
		for (size_t i = 0; i < count; i++)
			any |= leased[i].revision != 0;
		if (!any)
			break;
		status = move_once(returning, leased, count, &error, err);
		if (status != STATUS_NO)
			break;
		status = STATUS_OK;
	}
	for (size_t i = 0; i < count; i++)
		queue_item_release(&leased[i].item);
	return status;
}

/* Of one page of leases those that go back. */
static enum status move_page(
	const struct returning *returning, const struct store_answer *page, struct error *err)
{
	struct leased *batch = xcalloc(QUEUE_BATCH, sizeof(*batch));
	enum status status = STATUS_OK, damaged = STATUS_OK;
	size_t count = 0;
	for (size_t i = 0; i < page->count && status == STATUS_OK; i++) {
		const struct store_entry *entry = &page->entries[i];
		struct leased *leased = &batch[count];
		*leased = (struct leased){.revision = entry->revision};
		if (!queue_key_id(entry->key, &leased->id))
			continue;
		/* A record that cannot be parsed must not block the others: skip it. */
		if (queue_read(&queue_lease_record, entry, &leased->lease, err) != STATUS_OK) {
			damaged = STATUS_DAMAGED;
			continue;
		}
		if (strcmp(leased->lease.worker_token, returning->token) != 0 ||
			is_kept(returning, &leased->lease) || ++count < QUEUE_BATCH)
			continue;
		status = move_batch(returning, batch, count, err);
		count = 0;
	}
	if (status == STATUS_OK && count)
		status = move_batch(returning, batch, count, err);
	free(batch);
	return status == STATUS_OK ? damaged : status;
}

static enum status move_all(const struct returning *returning, struct error *err)
{
	char prefix[QUEUE_KEY_MAX], after[QUEUE_KEY_MAX] = "";
	enum status status = STATUS_OK, worst = STATUS_OK;
	bool more = true;
	queue_key(returning->queue, prefix, "run/");
	while (more && status == STATUS_OK) {
		struct store_answer page = {0};
		struct store_range range = {
			.prefix = prefix, .after = *after ? after : NULL, .limit = PAGE};
		status = store_list(returning->queue->store, &range, &page, err);
		if (status != STATUS_OK)
			break;
		status = move_page(returning, &page, err);
		if (status == STATUS_DAMAGED) {
			worst = status;
			status = STATUS_OK;
		}
		more = page.more && page.count;
		if (more)
			snprintf(after, sizeof(after), "%s", page.entries[page.count - 1].key);
		store_answer_release(&page);
	}
	return status == STATUS_OK ? worst : status;
}

/* From here on nothing that it does is accepted. STATUS_NO: it is gone. */
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
		/* A registration changes once only: somebody else has marked it. */
		dead->revision = answer.entries[0].revision;
	transaction_release(&t);
	store_answer_release(&answer);
	return status;
}

enum status workers_fence(struct queue *queue, const struct queue_worker *self,
	const struct queue_worker *dead, struct error *err)
{
	struct queue_worker marked = *dead;
	struct returning returning = {.queue = queue,
		.self = self,
		.token = dead->token,
		.kind = ENDING_LOST,
		.text = "its worker disappeared"};
	enum status status = mark(queue, &marked, err);
	if (status == STATUS_NO)
		return STATUS_OK;
	if (status == STATUS_OK)
		status = move_all(&returning, err);
	if (status == STATUS_OK)
		status = workers_remove(queue, &marked, err);
	return status == STATUS_BROKEN ? STATUS_NO : status;
}

enum status workers_give_back(struct queue *queue, const struct queue_worker *self,
	const char (*kept)[17], size_t count, struct error *err)
{
	struct returning returning = {.queue = queue,
		.self = self,
		.token = self->token,
		.kind = ENDING_PREEMPTED,
		.text = "lease never confirmed: the answer to the worker's request was lost",
		.kept = kept,
		.kept_count = count};
	enum status status = move_all(&returning, err);
	return status == STATUS_BROKEN ? STATUS_NO : status;
}
