/* SPDX-License-Identifier: MIT */
#include "queue/moves.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/after.h"
#include "queue/rules.h"

/* ---- A command at a worker ---- */

void run_end(struct queue_run *run)
{
	struct queue_result *result = &run->result;
	result->state =
		rules_decide(&run->item, &run->lease.history, &result->ending, &result->history);
	memcpy(result->token, run->lease.token, sizeof(result->token));
	memcpy(result->worker, run->lease.worker, sizeof(result->worker));
	memcpy(result->host, run->lease.host, sizeof(result->host));
}

bool run_halts_others(const struct queue_run *run)
{
	return run->result.state == QUEUE_FAILED && run->item.halt != HALT_NEVER;
}

void run_release(struct queue_run *run)
{
	queue_item_release(&run->item);
	free(run->out);
	free(run->err);
	*run = (struct queue_run){0};
}

/* ---- Adding moves ---- */

enum status moves_begin(struct moves *moves, struct queue *queue, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	*moves = (struct moves){.queue = queue};
	if (moves_are_unknown(queue))
		return error_set(err, STATUS_TEMPORARY,
			"queue %s: the outcome of the last transaction is not known yet",
			queue->name);
	if (queue->tallied >= 0)
		return STATUS_OK;
	queue_key(queue, key, "count/%s", queue->who);
	struct queue_tally tally = {0};
	store_revision revision;
	enum status status = queue_get(queue, key, &queue_tally_record, &tally, &revision, err);
	if (status != STATUS_OK && status != STATUS_NO)
		return status;
	queue->tally = tally;
	queue->tallied = revision;
	return STATUS_OK;
}

const char *queue_own_key(const struct queue *queue, struct transaction *t, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	char *rest = xvprintf(format, list), key[QUEUE_KEY_MAX];
	va_end(list);
	queue_key(queue, key, "%s", rest);
	free(rest);
	return transaction_own(t, key);
}

const char *queue_own_key_at(
	const struct queue *queue, struct transaction *t, const char *what, uint64_t id)
{
	return queue_own_key(queue, t, "%s/%010" PRIu64, what, id);
}

static const char *key_of(struct moves *moves, const char *what, uint64_t id)
{
	return queue_own_key_at(moves->queue, &moves->t, what, id);
}

void moves_require(struct moves *moves, const char *what, uint64_t id, store_revision revision)
{
	transaction_require_told(&moves->t, key_of(moves, what, id), revision);
}

void queue_wait(const struct queue *queue, struct transaction *t, const struct queue_item *item,
	const struct queue_history *history)
{
	char key[QUEUE_KEY_MAX];
	queue_key_waiting(queue, key, item->priority, item->id);
	transaction_put(t, transaction_own(t, key), queue_write(&queue_history_record, history));
}

void moves_take(
	struct moves *moves, const char *waiting_key, uint64_t id, const struct queue_lease *lease)
{
	transaction_delete(&moves->t, transaction_own(&moves->t, waiting_key));
	transaction_put(
		&moves->t, key_of(moves, "run", id), queue_write(&queue_lease_record, lease));
	transaction_get(&moves->t, key_of(moves, "item", id));
	moves->tally.taken++;
}

static void note_failure(struct moves *moves, const struct queue_run *run)
{
	struct queue_failure failure;
	queue_failure_of(&run->item, &run->result, &failure);
	failure.utc = clock_utc();
	transaction_put(&moves->t, queue_own_key(moves->queue, &moves->t, "error"),
		queue_write(&queue_failure_record, &failure));
	moves->failing = true;
}

void moves_end(struct moves *moves, const struct queue_run *run, bool note)
{
	struct transaction *t = &moves->t;
	const struct queue_result *result = &run->result;
	uint64_t id = run->item.id;
	transaction_delete(t, key_of(moves, "run", id));
	transaction_delete(t, key_of(moves, "cancel", id));
	if (result->state == QUEUE_WAITING) {
		queue_wait(moves->queue, t, &run->item, &result->history);
		moves->tally.returned++;
		return;
	}
	transaction_put(t, key_of(moves, "done", id), queue_write(&queue_result_record, result));
	if (run->out && result->out)
		transaction_put_bytes(t, key_of(moves, "out", id), run->out, result->out);
	if (run->err && result->err)
		transaction_put_bytes(t, key_of(moves, "err", id), run->err, result->err);
	moves->tally.succeeded += result->state == QUEUE_SUCCEEDED;
	moves->tally.failed += result->state == QUEUE_FAILED;
	moves->tally.stopped += result->state == QUEUE_CANCELLED;
	if (run_halts_others(run) && note && !moves->failing)
		note_failure(moves, run);
}

void moves_request_cancel(struct moves *moves, uint64_t id, uint64_t because)
{
	struct json_object *cancel_request = json_object_new_object();
	json_put_signed(cancel_request, "utc", clock_utc());
	if (because)
		json_put_unsigned(cancel_request, "because", because);
	transaction_put(&moves->t, key_of(moves, "cancel", id), cancel_request);
}

void run_end_cancelled(struct queue_run *run, const struct store_entry *cancel_request)
{
	run->result.because = queue_cancel_cause(cancel_request);
	run->result.state = QUEUE_CANCELLED;
	run->result.ending.kind = ENDING_CANCELLED;
}

uint64_t queue_cancel_cause(const struct store_entry *cancel_request)
{
	uint64_t because = 0;
	struct json_object *object =
		cancel_request->value ? json_parse(cancel_request->value, cancel_request->length)
				      : NULL;
	(void)json_get_unsigned(object, "because", &because);
	json_object_put(object);
	return because;
}

void moves_cancel(struct moves *moves, const char *waiting_key, uint64_t id,
	const struct queue_history *history, uint64_t because, const char *why)
{
	struct queue_result result = {.state = QUEUE_CANCELLED,
		.ending = {.kind = ENDING_CANCELLED},
		.because = because,
		.history = *history,
		.ended = clock_utc()};
	text_escape(result.ending.text, sizeof(result.ending.text), why, strlen(why));
	transaction_delete(&moves->t, transaction_own(&moves->t, waiting_key));
	transaction_put(
		&moves->t, key_of(moves, "done", id), queue_write(&queue_result_record, &result));
	moves->tally.cancelled++;
}

void moves_over(struct moves *moves, uint64_t id, store_revision dependents)
{
	moves_require(moves, "after", id, dependents);
	if (dependents)
		transaction_put(
			&moves->t, key_of(moves, "pending/over", id), json_object_new_object());
}

void moves_reopen(struct moves *moves, const struct queue_item *item, enum queue_state was,
	uint64_t starts, const char *after)
{
	const struct queue_history fresh = {.starts = starts};
	struct transaction *t = &moves->t;
	transaction_delete(t, key_of(moves, "done", item->id));
	transaction_delete(t, key_of(moves, "out", item->id));
	transaction_delete(t, key_of(moves, "err", item->id));
	if (after) {
		queue_block(moves->queue, t, item, &fresh, after);
		queue_block_new(moves->queue, t, item->id, item->id, after);
	} else {
		queue_wait(moves->queue, t, item, &fresh);
	}
	moves->tally.reopened_succeeded += was == QUEUE_SUCCEEDED;
	moves->tally.reopened_failed += was == QUEUE_FAILED;
	moves->tally.reopened_cancelled += was == QUEUE_CANCELLED;
}

/* ---- Running them ---- */

/* After requirements that did not hold: take the current tally. */
static void see_tally(struct queue *queue, const struct store_answer *answer)
{
	const struct store_entry *entry = &answer->entries[answer->count - 1];
	queue->tallied = entry->revision;
	if (queue_read(&queue_tally_record, entry, &queue->tally, NULL) != STATUS_OK &&
		entry->value)
		queue->tallied = -1;
}

enum status moves_run(struct moves *moves, struct store_answer *answer, struct error *err)
{
	struct queue *queue = moves->queue;
	struct queue_tally sum = queue->tally;
	queue_tally_add(&sum, &moves->tally);
	queue_draw_token(sum.last);
	const char *own = queue_own_key(queue, &moves->t, "count/%s", queue->who);
	transaction_require_told(&moves->t, own, queue->tallied);
	transaction_put(&moves->t, own, queue_write(&queue_tally_record, &sum));
	enum status status = transaction_ask(&moves->t, queue->store, answer, err);
	if (status == STATUS_OK && answer->held) {
		queue->tally = sum;
		queue->tallied = answer->revision;
	} else if (status == STATUS_OK) {
		see_tally(queue, answer);
	} else if (*queue->who == '@') {
		queue->tallied = -1;
	} else if (!answer->known) {
		memcpy(queue->unknown, sum.last, sizeof(queue->unknown));
	}
	return status;
}

enum status moves_run_told(struct moves *moves, struct error *err)
{
	struct store_answer answer = {0};
	enum status status = moves_run(moves, &answer, err);
	if (status == STATUS_OK && !answer.held)
		status = STATUS_NO;
	store_answer_release(&answer);
	return status;
}

void moves_release(struct moves *moves)
{
	transaction_release(&moves->t);
}

/* ---- An unknown outcome ---- */

bool moves_are_unknown(const struct queue *queue)
{
	return *queue->unknown;
}

void moves_settled(struct queue *queue)
{
	*queue->unknown = '\0';
	queue->tallied = -1;
}

/* The tally has changed: its token tells which transaction changed it. */
static enum status read_fate(struct queue *queue, const struct store_entry *own,
	struct moves_fate *fate, struct error *err)
{
	struct queue_tally there;
	enum status status = queue_read(&queue_tally_record, own, &there, err);
	if (status != STATUS_OK)
		return status;
	fate->outcome = strcmp(there.last, queue->unknown) ? MOVES_NOT_MADE : MOVES_MADE;
	fate->revision = own->revision;
	/* This is the token of an earlier moves_settle whose answer was lost. */
	if (fate->outcome == MOVES_NOT_MADE)
		moves_settled(queue);
	return STATUS_OK;
}

enum status moves_settle(struct queue *queue, const char *token, store_revision registered,
	struct moves_fate *fate, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	struct queue_tally same = queue->tally;
	const char *own = queue_own_key(queue, &t, "count/%s", queue->who);
	queue_draw_token(same.last);
	transaction_require_told(&t, queue_own_key(queue, &t, "worker/%s", token), registered);
	transaction_require_told(&t, own, queue->tallied);
	transaction_put(&t, own, queue_write(&queue_tally_record, &same));
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	if (status == STATUS_OK && answer.held) {
		fate->outcome = MOVES_NOT_MADE;
		moves_settled(queue);
	} else if (status == STATUS_OK && answer.entries[0].revision != registered) {
		fate->outcome = MOVES_FENCED;
	} else if (status == STATUS_OK) {
		status = read_fate(queue, &answer.entries[1], fate, err);
	}
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}
