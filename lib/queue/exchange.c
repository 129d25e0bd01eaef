/* SPDX-License-Identifier: MIT */
#include "queue/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/rules.h"

enum { SPREAD_MAX = 64, TRIES_MAX = 16 };

/* ---- Commands left alone for a while ---- */

static bool is_paused(const struct exchange *x, uint64_t id)
{
	for (size_t i = 0; x->pauses && i < x->pauses->count; i++)
		if (x->pauses->items[i].id == id)
			return true;
	return false;
}

static void pause_it(struct exchange *x, const struct queue_run *run)
{
	struct exchange_pauses *pauses = x->pauses;
	if (!pauses)
		return;
	pauses->items = xgrow(pauses->items, pauses->count, &pauses->room, sizeof(*pauses->items));
	pauses->items[pauses->count++] = (struct exchange_pause){
		run->item.id, clock_after(rules_pause(&run->result.history))};
}

int64_t exchange_pauses_due(const struct exchange_pauses *pauses)
{
	int64_t due = CLOCK_NEVER;
	for (size_t i = 0; i < pauses->count; i++)
		due = clock_earlier(due, pauses->items[i].until);
	return due;
}

bool exchange_pauses_end(struct exchange_pauses *pauses, int64_t now)
{
	size_t kept = 0, before = pauses->count;
	for (size_t i = 0; i < before; i++)
		if (pauses->items[i].until > now)
			pauses->items[kept++] = pauses->items[i];
	pauses->count = kept;
	return kept < before;
}

void exchange_pauses_release(struct exchange_pauses *pauses)
{
	free(pauses->items);
	*pauses = (struct exchange_pauses){0};
}

/* ---- Choosing ---- */

/* Make entry a candidate. STATUS_NO: this worker cannot take it now. */
static enum status consider(struct exchange *x, const struct store_entry *entry, struct error *err)
{
	struct queue_run *run = &x->taken[x->candidates];
	uint64_t id;
	if (!queue_key_id(entry->key, &id))
		return queue_damaged(entry, err);
	if (is_paused(x, id))
		return STATUS_NO;
	for (size_t i = 0; i < x->candidates; i++)
		if (x->taken[i].item.id == id)
			return STATUS_NO;
	*run = (struct queue_run){
		.item.id = id, .revision = entry->revision, .lease.since = clock_utc()};
	enum status status = queue_read(&queue_history_record, entry, &run->lease.history, err);
	if (status != STATUS_OK)
		return status;
	run->lease.history.starts++;
	queue_draw_token(run->lease.token);
	memcpy(run->lease.worker_token, x->worker->token, sizeof(run->lease.worker_token));
	memcpy(run->lease.worker, x->worker->name, sizeof(run->lease.worker));
	memcpy(run->lease.host, x->worker->process.host, sizeof(run->lease.host));
	snprintf(x->waiting[x->candidates++], QUEUE_KEY_MAX, "%s", entry->key);
	return STATUS_OK;
}

/*
 * Choose candidates from the head of the queue. A lone worker takes them in order. After conflicts
 * with other workers it chooses at random among more of them, so that not all workers compete for
 * the same command.
 */
static enum status choose(struct exchange *x, struct error *err)
{
	struct store_answer answer = {0};
	size_t want = x->want - x->candidates;
	size_t passed_over = x->candidates + (x->pauses ? x->pauses->count : 0);
	struct store_range range = {.limit = want + x->spread + passed_over};
	enum status status = queue_list(x->queue, "wait", range, &answer, err);
	if (status != STATUS_OK)
		return status;
	size_t left = answer.count;
	while (status == STATUS_OK && want && left) {
		size_t among = left < want + x->spread ? left : want + x->spread;
		size_t pick = x->spread ? (size_t)clock_jitter((int64_t)among) - 1 : 0;
		struct store_entry looked_at = answer.entries[pick];
		status = consider(x, &looked_at, err);
		want -= status == STATUS_OK;
		if (status == STATUS_NO)
			status = STATUS_OK;
		memmove(&answer.entries[pick], &answer.entries[pick + 1],
			(--left - pick) * sizeof(looked_at));
		answer.entries[left] = looked_at;
	}
	if (want)
		x->seen = answer.revision;
	store_answer_release(&answer);
	return status;
}

/* ---- The transaction ---- */

/*
 * Whether a cancel request changes the outcome of this run: a command with such a request must not
 * go back to waiting. A run of a dead worker is cancelled even if its attempts are used up.
 */
static bool heeds_cancel(const struct queue_run *run)
{
	return run->result.state == QUEUE_WAITING || run->result.ending.kind == ENDING_LOST;
}

/* Whether it is over now, so that its dependents must be told. */
static bool goes_over(const struct queue_run *run)
{
	return run->result.state != QUEUE_WAITING;
}

static void build(struct exchange *x, struct moves *moves, bool requires_no_error, bool note)
{
	transaction_require_told(&moves->t,
		queue_own_key(x->queue, &moves->t, "worker/%s", x->worker->token),
		x->worker->revision);
	if (requires_no_error)
		transaction_require_told(&moves->t, queue_own_key(x->queue, &moves->t, "error"), 0);
	for (size_t i = 0; i < x->ended_count; i++) {
		struct queue_run *run = x->ended[i];
		if (run->outcome != RUN_PENDING)
			continue;
		moves_require(moves, "run", run->item.id, run->revision);
		if (heeds_cancel(run))
			moves_require(moves, "cancel", run->item.id, 0);
		if (goes_over(run))
			moves_over(moves, run->item.id, run->dependents);
		x->pending |= goes_over(run) && run->dependents;
		moves_end(moves, run, note);
		run->outcome = RUN_SENT;
	}
	for (size_t i = 0; i < x->candidates; i++) {
		const struct queue_run *run = &x->taken[i];
		transaction_require_told(&moves->t, x->waiting[i], run->revision);
		moves_take(moves, x->waiting[i], run->item.id, &run->lease);
	}
}

/* Give this outcome to all runs that were sent. */
static void mark_sent(struct exchange *x, enum run_outcome outcome)
{
	for (size_t i = 0; i < x->ended_count; i++)
		if (x->ended[i]->outcome == RUN_SENT)
			x->ended[i]->outcome = outcome;
}

/* The requirements held: the results are accepted, and the candidates are ours. */
static void accept(struct exchange *x, const struct store_entry *items, store_revision revision)
{
	for (size_t i = 0; i < x->ended_count; i++)
		if (x->ended[i]->outcome == RUN_SENT && x->ended[i]->result.state == QUEUE_WAITING)
			pause_it(x, x->ended[i]);
	mark_sent(x, RUN_ACCEPTED);
	for (; x->got < x->candidates; x->got++) {
		struct queue_run *run = &x->taken[x->got];
		run->revision = revision;
		queue_item_take(&items[x->got], run->item.id, &run->item);
	}
	x->candidates = x->want = 0;
}

/* A requirement did not hold: the answer has the current keys, in the order used by build. */
static void find_conflicts(struct exchange *x, const struct store_answer *answer, bool asked_error)
{
	const struct store_entry *entry = answer->entries;
	size_t kept = 0;
	x->fenced = entry++->revision != x->worker->revision;
	if (asked_error)
		x->error_pending = entry++->value;
	if (x->error_pending)
		x->seen = answer->revision;
	for (size_t i = 0; i < x->ended_count; i++) {
		struct queue_run *run = x->ended[i];
		if (run->outcome != RUN_SENT)
			continue;
		run->outcome = entry++->revision == run->revision ? RUN_PENDING : RUN_REFUSED;
		const struct store_entry *cancel_request = heeds_cancel(run) ? entry++ : NULL;
		if (goes_over(run))
			run->dependents = entry++->revision;
		if (cancel_request && cancel_request->value)
			run_end_cancelled(run, cancel_request);
	}
	for (size_t i = 0; i < x->candidates; i++) {
		if (entry++->revision != x->taken[i].revision || x->error_pending)
			continue;
		memmove(x->waiting[kept], x->waiting[i], sizeof(x->waiting[i]));
		x->taken[kept++] = x->taken[i];
	}
	if (kept < x->candidates && !x->error_pending)
		x->spread = x->spread < SPREAD_MAX / 2 ? 2 * x->spread + 2 : SPREAD_MAX;
	x->candidates = kept;
}

/* ---- After a lost answer ---- */

/* The transaction was made: read the items of the commands that it took. */
static enum status accept_late(struct exchange *x, store_revision revision, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	enum status status = STATUS_OK;
	for (size_t i = 0; i < x->candidates; i++)
		transaction_get(&t, queue_own_key_at(x->queue, &t, "item", x->taken[i].item.id));
	if (x->candidates)
		status = transaction_ask(&t, x->queue->store, &answer, err);
	if (status == STATUS_OK)
		accept(x, answer.entries, revision);
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

/* This worker was declared dead: a result was accepted if the store has it with our lease. */
static enum status find_accepted(struct exchange *x, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < x->ended_count && status == STATUS_OK; i++) {
		struct queue_run *run = x->ended[i];
		struct store_entry entry = {0};
		struct queue_result result;
		char key[QUEUE_KEY_MAX];
		if (run->outcome != RUN_SENT)
			continue;
		queue_key_at(x->queue, key, "done", run->item.id);
		status = store_get(x->queue->store, key, &entry, err);
		if (status == STATUS_OK &&
			queue_read(&queue_result_record, &entry, &result, NULL) == STATUS_OK &&
			!strcmp(result.token, run->lease.token))
			run->outcome = RUN_ACCEPTED;
		status = status == STATUS_NO ? STATUS_OK : status;
		store_entry_release(&entry);
	}
	if (status == STATUS_OK)
		mark_sent(x, RUN_REFUSED);
	return status;
}

static enum status settle(struct exchange *x, struct error *err)
{
	struct moves_fate fate;
	enum status status =
		moves_settle(x->queue, x->worker->token, x->worker->revision, &fate, err);
	if (status != STATUS_OK)
		return status;
	switch (fate.outcome) {
	case MOVES_NOT_MADE:
		mark_sent(x, RUN_PENDING);
		x->candidates = 0;
		return STATUS_OK;
	case MOVES_MADE: status = accept_late(x, fate.revision, err); break;
	case MOVES_FENCED:
		status = find_accepted(x, err);
		x->fenced = status == STATUS_OK;
		break;
	}
	if (status == STATUS_OK)
		moves_settled(x->queue);
	return status;
}

/* ---- */

static bool has_results(const struct exchange *x)
{
	for (size_t i = 0; i < x->ended_count; i++)
		if (x->ended[i]->outcome == RUN_PENDING)
			return true;
	return false;
}

static bool is_done(const struct exchange *x)
{
	return !x->want && !has_results(x);
}

bool exchange_has_failure(const struct exchange *x)
{
	for (size_t i = 0; i < x->ended_count; i++) {
		const struct queue_run *run = x->ended[i];
		bool handed_in = run->outcome == RUN_ACCEPTED || run->outcome == RUN_REFUSED;
		if (!handed_in && run_halts_others(run))
			return true;
	}
	return false;
}

/* One try. damage: set if the results were handed in although no command can be taken. */
static enum status try_once(struct exchange *x, struct error *damage, struct error *err)
{
	struct moves moves;
	struct store_answer answer = {0};
	enum status status = STATUS_OK;
	if (moves_are_unknown(x->queue))
		return settle(x, err);
	if (x->error_pending)
		x->want = x->candidates = 0;
	if (x->want > x->candidates)
		status = choose(x, err);
	if (status == STATUS_DAMAGED && has_results(x)) {
		*damage = *err;
		x->candidates = 0;
		status = STATUS_OK;
	}
	x->want = x->candidates;
	if (status != STATUS_OK || is_done(x))
		return status;
	bool note = exchange_has_failure(x) && !x->error_pending,
	     requires_no_error = note || x->candidates;
	status = moves_begin(&moves, x->queue, err);
	if (status != STATUS_OK)
		return status;
	build(x, &moves, requires_no_error, note);
	status = moves_run(&moves, &answer, err);
	if (status == STATUS_OK && answer.held)
		accept(x, answer.entries, answer.revision);
	else if (status == STATUS_OK)
		find_conflicts(x, &answer, requires_no_error);
	else if (!moves_are_unknown(x->queue))
		mark_sent(x, RUN_PENDING);
	store_answer_release(&answer);
	moves_release(&moves);
	return status;
}

enum status exchange_run(struct exchange *x, struct error *err)
{
	struct error damage = {0};
	enum status status = STATUS_OK;
	unsigned tries = 0;
	x->error_pending = x->fenced = false;
	x->got = 0;
	do {
		/* Other workers were faster every time: hand in the results and take nothing. The
		 * caller does its other work, and calls again at once. */
		if (tries > TRIES_MAX) {
			x->want = x->candidates = 0;
			x->seen = 0;
		}
		status = try_once(x, &damage, err);
		tries++;
	} while (status == STATUS_OK && !x->fenced && !is_done(x));
	/* Drop candidates that were not sent: the next call chooses again. */
	if (!moves_are_unknown(x->queue))
		x->candidates = 0;
	if (status == STATUS_OK && !x->fenced && tries == 1)
		x->spread /= 2;
	if (status == STATUS_OK && !x->fenced && damage.status != STATUS_OK) {
		*err = damage;
		return damage.status;
	}
	if (!x->fenced)
		return status;
	for (size_t i = 0; i < x->ended_count; i++)
		if (x->ended[i]->outcome == RUN_PENDING)
			x->ended[i]->outcome = RUN_REFUSED;
	return error_set(err, STATUS_NO,
		"worker %s was declared dead: its commands were given to other workers",
		x->worker->name);
}
