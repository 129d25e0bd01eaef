/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "queue/after.h"

enum status queue_failure_pending(
	struct queue *queue, struct queue_failure *failure, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	queue_key(queue, key, "error");
	return queue_get(queue, key, &queue_failure_record, failure, NULL, err);
}

/* Wait until a running command ends. STATUS_OK: one has ended. STATUS_NO: no command runs. */
static enum status wait_for_running(
	struct queue *queue, int64_t deadline, int wake, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	struct store_answer answer = {0};
	enum status status =
		queue_list(queue, "run", (struct store_range){.limit = 1}, &answer, err);
	bool running = answer.count;
	store_revision since = answer.revision;
	store_answer_release(&answer);
	if (status != STATUS_OK)
		return status;
	if (!running)
		return STATUS_NO;
	if (deadline > clock_now()) {
		queue_key(queue, prefix, "run/");
		status = store_wait(queue->store, prefix, &since, deadline, wake, err);
		if (status != STATUS_TIMEOUT && status != STATUS_NO)
			return status;
	}
	return error_set(err, STATUS_TIMEOUT,
		"a command of queue %s has failed, and others are still running", queue->name);
}

/*
 * Make these moves because of a failure, and replace the failure by `noted` (NULL: keep it).
 * STATUS_NO: the failure, or a record in batch, has changed since it was read.
 */
static enum status run_moves(struct moves *moves, const struct store_answer *batch,
	const struct queue_failure *failure, const struct queue_failure *noted, struct error *err)
{
	const char *key = queue_own_key(moves->queue, &moves->t, "error");
	transaction_require(&moves->t, key, failure->revision);
	for (size_t i = 0; i < batch->count; i++)
		transaction_require(&moves->t, batch->entries[i].key, batch->entries[i].revision);
	if (noted)
		transaction_put(&moves->t, key, queue_write(&queue_failure_record, noted));
	return moves_run_told(moves, err);
}

/* Tell all running commands to end, and note that in the failure. STATUS_NO: a command moved. */
static enum status stop_running(
	struct queue *queue, const struct queue_failure *failure, struct error *err)
{
	char last[QUEUE_KEY_MAX] = "";
	struct queue_failure told = *failure;
	struct store_range range = {.after = last, .limit = queue_schedule_most(queue)};
	enum status status = STATUS_OK;
	told.stopping = true;
	for (bool more = true; more && status == STATUS_OK;) {
		struct moves moves;
		struct store_answer running = {0};
		uint64_t id;
		status = queue_list(queue, "run", range, &running, err);
		if (status != STATUS_OK)
			return status;
		more = running.count == range.limit;
		status = moves_begin(&moves, queue, err);
		for (size_t i = 0; i < running.count; i++)
			if (queue_key_id(running.entries[i].key, &id))
				moves_request_cancel(&moves, id, failure->id);
		if (running.count)
			snprintf(last, sizeof(last), "%s", running.entries[running.count - 1].key);
		if (status == STATUS_OK)
			status = run_moves(&moves, &running, failure, more ? NULL : &told, err);
		moves_release(&moves);
		store_answer_release(&running);
	}
	return status;
}

/* The history of a blocked or waiting command. */
static enum status read_history(const struct store_entry *entry, bool is_blocked,
	struct queue_history *history, struct error *err)
{
	struct queue_blocked blocked;
	if (!is_blocked)
		return queue_read(&queue_history_record, entry, history, err);
	enum status status = queue_read(&queue_blocked_record, entry, &blocked, err);
	*history = blocked.history;
	free(blocked.after);
	return status;
}

/*
 * Cancel a batch of blocked commands, or of waiting ones if none is blocked. The failure counts
 * them, so that the process that reports it knows how many there were. *some: the batch was not
 * empty. STATUS_NO: another process was faster.
 */
static enum status cancel_batch(
	struct queue *queue, const struct queue_failure *failure, bool *some, struct error *err)
{
	struct moves moves;
	struct store_answer waiting = {0};
	struct queue_history history;
	struct queue_failure counted = *failure;
	char why[128];
	uint64_t ids[QUEUE_SCHEDULE_BATCH] = {0};
	store_revision dependents[QUEUE_SCHEDULE_BATCH];
	/* Each needs three operations. */
	struct store_range range = {.limit = 2 * queue_schedule_most(queue) / 3 - 1};
	/* Blocked ones first: they may become waiting, but never the other way round. */
	enum status status = queue_list(queue, "blocked", range, &waiting, err);
	bool blocked = waiting.count;
	if (status == STATUS_OK && !blocked) {
		store_answer_release(&waiting);
		status = queue_list(queue, "wait", range, &waiting, err);
	}
	*some = waiting.count;
	for (size_t i = 0; i < waiting.count && status == STATUS_OK; i++)
		if (!queue_key_id(waiting.entries[i].key, &ids[i]))
			status = queue_damaged(&waiting.entries[i], err);
	if (status == STATUS_OK)
		status = queue_dependents(queue, ids, waiting.count, dependents, err);
	if (status == STATUS_OK && *some) {
		snprintf(why, sizeof(why), "cancelled because command %" PRIu64 " failed",
			failure->id);
		status = moves_begin(&moves, queue, err);
		for (size_t i = 0; i < waiting.count && status == STATUS_OK; i++) {
			const struct store_entry *entry = &waiting.entries[i];
			status = read_history(entry, blocked, &history, err);
			if (status != STATUS_OK)
				break;
			moves_cancel(&moves, entry->key, ids[i], &history, failure->id, why);
			moves_over(&moves, ids[i], dependents[i]);
			counted.cancelled++;
		}
		if (status == STATUS_OK)
			status = run_moves(&moves, &waiting, failure, &counted, err);
		moves_release(&moves);
	}
	store_answer_release(&waiting);
	return status;
}

/*
 * Remove the failure, so that only this process reports it. STATUS_NO: it is no longer there. If
 * the answer is lost, and the failure does not visibly remain, count it as ours: a failure that is
 * reported twice is better than one that is never reported.
 */
static enum status take_away(
	struct queue *queue, const struct queue_failure *failure, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	struct queue_failure there;
	char key[QUEUE_KEY_MAX];
	queue_key(queue, key, "error");
	transaction_require(&t, key, failure->revision);
	transaction_delete(&t, key);
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	if (status == STATUS_OK && !answer.held)
		status = STATUS_NO;
	else if (status != STATUS_OK && !answer.known &&
		 (queue_failure_pending(queue, &there, NULL) != STATUS_OK ||
			 there.revision != failure->revision))
		status = STATUS_OK;
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

/*
 * While a failure is pending, no command is taken or scheduled. So the running commands become
 * fewer, and once none runs, the waiting ones become fewer: the loop ends.
 */
enum status queue_raise(struct queue *queue, int64_t deadline, int wake,
	struct queue_failure *failure, struct error *err)
{
	for (;;) {
		struct queue_failure seen;
		bool some;
		enum status status = queue_failure_pending(queue, &seen, err);
		if (status != STATUS_OK)
			return status;
		if (seen.halt == HALT_NOW && !seen.stopping) {
			status = stop_running(queue, &seen, err);
			if (status != STATUS_OK && status != STATUS_NO)
				return status;
			continue;
		}
		status = wait_for_running(queue, deadline, wake, err);
		if (status == STATUS_OK)
			continue;
		if (status != STATUS_NO)
			return status;
		status = cancel_batch(queue, &seen, &some, err);
		if (status == STATUS_OK && !some)
			status = take_away(queue, &seen, err);
		else if (status == STATUS_OK)
			continue;
		if (status == STATUS_OK)
			*failure = seen;
		if (status != STATUS_NO)
			return status;
	}
}
