/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "queue/moves.h"

enum status queue_failure_pending(
	struct queue *queue, struct queue_failure *failure, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct store_entry entry = {0};
	queue_key(queue, key, "error");
	enum status status = store_get(queue->store, key, &entry, err);
	if (status == STATUS_OK) {
		status = queue_read(&queue_failure_record, &entry, failure, err);
		failure->revision = entry.revision;
	}
	store_entry_release(&entry);
	return status;
}

/* Up to limit of what is below "queue/NAME/WHAT". */
static enum status list(struct queue *queue, const char *what, size_t limit,
	struct store_answer *answer, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	queue_key(queue, prefix, "%s", what);
	struct store_range range = {.prefix = prefix, .limit = limit};
	return store_list(queue->store, &range, answer, err);
}

/* STATUS_NO: nothing runs. STATUS_OK: something has ended. */
static enum status wait_for_running(
	struct queue *queue, int64_t deadline, int wake, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	struct store_answer answer = {0};
	store_revision revision;
	enum status status = list(queue, "run/", 1, &answer, err);
	bool running = answer.count;
	store_revision since = answer.revision;
	store_answer_release(&answer);
	if (status != STATUS_OK)
		return status;
	if (!running)
		return STATUS_NO;
	if (deadline > clock_now()) {
		queue_key(queue, prefix, "run/");
		status = store_wait(queue->store, prefix, since, deadline, wake, &revision, err);
		if (status != STATUS_TIMEOUT && status != STATUS_NO)
			return status;
	}
	return error_set(err, STATUS_TIMEOUT,
		"a command of queue %s has failed, and others are still running", queue->name);
}

/* Tell all that runs to end, and note that in the failure. STATUS_NO: something has moved. */
static enum status stop_running(
	struct queue *queue, const struct queue_failure *failure, struct error *err)
{
	char prefix[QUEUE_KEY_MAX], error_key[QUEUE_KEY_MAX], last[QUEUE_KEY_MAX] = "";
	struct queue_failure told = *failure;
	enum status status = STATUS_OK;
	told.stopping = true;
	queue_key(queue, prefix, "run/");
	queue_key(queue, error_key, "error");
	for (bool more = true; more && status == STATUS_OK;) {
		struct moves moves;
		struct store_answer running = {0}, answer = {0};
		struct store_range range = {
			.prefix = prefix, .after = last, .limit = queue_schedule_most(queue)};
		status = store_list(queue->store, &range, &running, err);
		if (status != STATUS_OK)
			return status;
		more = running.count == range.limit;
		status = moves_begin(&moves, queue, err);
		transaction_require(&moves.t, error_key, failure->revision);
		for (size_t i = 0; i < running.count; i++) {
			const struct store_entry *entry = &running.entries[i];
			uint64_t id;
			snprintf(last, sizeof(last), "%s", entry->key);
			if (!queue_key_id(entry->key, &id))
				continue;
			transaction_require(&moves.t, entry->key, entry->revision);
			moves_request_cancel(&moves, id, failure->id);
		}
		if (!more)
			transaction_put(
				&moves.t, error_key, queue_write(&queue_failure_record, &told));
		if (status == STATUS_OK)
			status = moves_run(&moves, &answer, err);
		if (status == STATUS_OK && !answer.held)
			status = STATUS_NO;
		moves_release(&moves);
		store_answer_release(&answer);
		store_answer_release(&running);
	}
	return status;
}

/*
 * Cancel a batch of what waits, counted in the failure itself, so that whoever tells it knows how
 * many it were. *some: there was one. STATUS_NO: another one was faster.
 */
static enum status cancel_batch(
	struct queue *queue, struct queue_failure *failure, bool *some, struct error *err)
{
	struct moves moves;
	struct store_answer waiting = {0}, answer = {0};
	struct queue_history history;
	char error_key[QUEUE_KEY_MAX], why[128];
	struct queue_failure counted = *failure;
	enum status status = list(queue, "wait/", queue_schedule_most(queue), &waiting, err);
	if (status != STATUS_OK)
		return status;
	*some = waiting.count;
	if (!*some)
		goto out;
	snprintf(why, sizeof(why), "cancelled because command %" PRIu64 " failed", failure->id);
	queue_key(queue, error_key, "error");
	status = moves_begin(&moves, queue, err);
	transaction_require_told(&moves.t, transaction_own(&moves.t, error_key), failure->revision);
	for (size_t i = 0; i < waiting.count && status == STATUS_OK; i++) {
		const struct store_entry *entry = &waiting.entries[i];
		uint64_t id;
		status = queue_read(&queue_history_record, entry, &history, err);
		if (status != STATUS_OK || !queue_key_id(entry->key, &id))
			continue;
		transaction_require_told(&moves.t, entry->key, entry->revision);
		moves_cancel(&moves, entry->key, id, &history, failure->id, why);
		counted.cancelled++;
	}
	if (status == STATUS_OK) {
		transaction_put(&moves.t, transaction_own(&moves.t, error_key),
			queue_write(&queue_failure_record, &counted));
		status = moves_run(&moves, &answer, err);
	}
	if (status == STATUS_OK)
		status = answer.held ? STATUS_OK : STATUS_NO;
	moves_release(&moves);
out:
	store_answer_release(&answer);
	store_answer_release(&waiting);
	return status;
}

/*
 * STATUS_NO: it is not this one any more. Where the answer is lost, and it is not seen to stand
 * there still, it is ours: its error is reported again rather than not at all.
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
 * While an error is pending nothing is taken and nothing is scheduled: what runs only becomes less,
 * and when nothing runs, what waits only becomes less.
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
