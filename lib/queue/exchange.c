/* SPDX-License-Identifier: MIT */
#include "queue/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/moves.h"
#include "queue/rules.h"

enum { SPREAD_MAX = 64, TRIES_MAX = 16 };

/* Whether this return was in the transaction whose answer is looked at. */
static bool was_handed_in(const struct exchange *exchange, const struct queue_return *back)
{
	for (size_t i = 0; i < exchange->handed_in_count; i++)
		if (!strcmp(exchange->handed_in[i], back->token))
			return true;
	return false;
}

/* One call under way. */
struct turn {
	struct exchange *exchange;
	struct queue *queue;
	const struct queue_worker *worker;
	struct queue_return *returns;
	size_t count;
	size_t want;
	bool failing; /* an error is pending: nothing is taken, no other error is noted */
	bool fenced;
	char worker_key[QUEUE_KEY_MAX], error_key[QUEUE_KEY_MAX];
};

static bool is_paused(const struct exchange *exchange, uint64_t id, int64_t now)
{
	for (size_t i = 0; i < EXCHANGE_PAUSED; i++)
		if (exchange->paused[i].id == id && exchange->paused[i].until > now)
			return true;
	return false;
}

static void pause_it(struct exchange *exchange, uint64_t id, const struct queue_history *history)
{
	size_t oldest = 0;
	for (size_t i = 0; i < EXCHANGE_PAUSED; i++)
		if (exchange->paused[i].until < exchange->paused[oldest].until)
			oldest = i;
	exchange->paused[oldest].id = id;
	exchange->paused[oldest].until = clock_after(rules_pause(history));
}

int64_t exchange_due(const struct exchange *exchange)
{
	int64_t now = clock_now(), due = CLOCK_NEVER;
	for (size_t i = 0; i < EXCHANGE_PAUSED; i++)
		if (exchange->paused[i].until > now && exchange->paused[i].until < due)
			due = exchange->paused[i].until;
	return due;
}

/* What entry holds shall be ours. STATUS_NO: not now, not by us. */
static enum status consider(struct turn *turn, const struct store_entry *entry, struct error *err)
{
	struct exchange_candidate *candidate =
		&turn->exchange->candidates[turn->exchange->candidate_count];
	struct queue_lease *lease = &candidate->lease;
	if (!queue_key_id(entry->key, &candidate->id) ||
		is_paused(turn->exchange, candidate->id, clock_now()))
		return STATUS_NO;
	for (size_t i = 0; i < turn->exchange->candidate_count; i++)
		if (turn->exchange->candidates[i].id == candidate->id)
			return STATUS_NO;
	*lease = (struct queue_lease){.since = clock_utc()};
	enum status status = queue_read(&queue_history_record, entry, &lease->history, err);
	if (status == STATUS_OK)
		status = queue_draw_token(lease->token, err);
	if (status != STATUS_OK)
		return status;
	snprintf(candidate->key, sizeof(candidate->key), "%s", entry->key);
	candidate->revision = entry->revision;
	lease->history.starts++;
	memcpy(lease->worker_token, turn->worker->token, sizeof(lease->worker_token));
	memcpy(lease->worker, turn->worker->name, sizeof(lease->worker));
	memcpy(lease->host, turn->worker->process.host, sizeof(lease->host));
	turn->exchange->candidate_count++;
	return STATUS_OK;
}

/*
 * Choose candidates from the head of the queue. A lone worker takes them in order. After conflicts
 * with other workers it chooses at random among more of them, so that not all workers compete for
 * the same command.
 */
static enum status choose(struct turn *turn, struct error *err)
{
	struct exchange *exchange = turn->exchange;
	char prefix[QUEUE_KEY_MAX];
	struct store_answer answer = {0};
	size_t want = turn->want - exchange->candidate_count;
	size_t passed_over = exchange->candidate_count;
	int64_t now = clock_now();
	for (size_t i = 0; i < EXCHANGE_PAUSED; i++)
		passed_over += exchange->paused[i].until > now;
	queue_key(turn->queue, prefix, "wait/");
	struct store_range range = {
		.prefix = prefix, .limit = want + exchange->spread + passed_over};
	enum status status = store_list(turn->queue->store, &range, &answer, err);
	if (status != STATUS_OK)
		return status;
	/* One that was chosen or looked at already has no key any more. */
	size_t left = answer.count;
	while (status == STATUS_OK && want && left) {
		size_t among = left < want + exchange->spread ? left : want + exchange->spread;
		size_t pick = exchange->spread ? (size_t)clock_jitter((int64_t)among) - 1 : 0;
		status = consider(turn, &answer.entries[pick], err);
		want -= status == STATUS_OK;
		if (status == STATUS_NO)
			status = STATUS_OK;
		struct store_entry looked_at = answer.entries[pick];
		memmove(&answer.entries[pick], &answer.entries[pick + 1],
			(--left - pick) * sizeof(looked_at));
		answer.entries[left] = looked_at;
	}
	if (want)
		exchange->seen = answer.revision;
	store_answer_release(&answer);
	return status;
}

/* ---- The transaction ---- */

static void build(struct turn *turn, struct moves *moves, bool note)
{
	struct transaction *t = &moves->t;
	char key[QUEUE_KEY_MAX];
	turn->exchange->handed_in_count = 0;
	transaction_require_told(t, turn->worker_key, turn->worker->revision);
	if (note || turn->exchange->candidate_count)
		transaction_require_told(t, turn->error_key, 0);
	for (size_t i = 0; i < turn->count; i++) {
		const struct queue_return *back = &turn->returns[i];
		if (back->answered)
			continue;
		memcpy(turn->exchange->handed_in[turn->exchange->handed_in_count++], back->token,
			sizeof(back->token));
		queue_key_at(turn->queue, key, "run", back->item->id);
		transaction_require_told(t, transaction_own(t, key), back->lease);
		if (back->state == QUEUE_WAITING) {
			/* A command that is to be cancelled does not go back to waiting. */
			queue_key_at(turn->queue, key, "cancel", back->item->id);
			transaction_require_told(t, transaction_own(t, key), 0);
		}
		moves_end(
			moves, back->item, back->state, &back->result, back->out, back->err, note);
	}
	for (size_t i = 0; i < turn->exchange->candidate_count; i++) {
		const struct exchange_candidate *candidate = &turn->exchange->candidates[i];
		transaction_require_told(t, candidate->key, candidate->revision);
		moves_take(moves, candidate->key, candidate->id, &candidate->lease);
	}
}

/* Whether one of the returns is a failure that is to be noted. */
static bool fails(const struct turn *turn)
{
	for (size_t i = 0; i < turn->count; i++)
		if (!turn->returns[i].answered && turn->returns[i].state == QUEUE_FAILED &&
			turn->returns[i].item->halt != HALT_NEVER)
			return true;
	return false;
}

/* They hold: what was handed in counts, what was taken is ours. */
static void accept(struct turn *turn, const struct store_answer *answer, struct queue_taken *taken,
	size_t *got)
{
	for (size_t i = 0; i < turn->count; i++) {
		if (turn->returns[i].answered || !was_handed_in(turn->exchange, &turn->returns[i]))
			continue;
		turn->returns[i].accepted = turn->returns[i].answered = true;
		if (turn->returns[i].state == QUEUE_WAITING)
			pause_it(turn->exchange, turn->returns[i].item->id,
				&turn->returns[i].result.history);
	}
	for (size_t i = 0; i < turn->exchange->candidate_count; i++) {
		const struct exchange_candidate *candidate = &turn->exchange->candidates[i];
		struct queue_taken *one = &taken[*got];
		*one = (struct queue_taken){.history = candidate->lease.history,
			.lease = answer->revision,
			.since = candidate->lease.since};
		memcpy(one->token, candidate->lease.token, sizeof(one->token));
		queue_item_take(&answer->entries[i], candidate->id, &one->item);
		(*got)++;
	}
	turn->exchange->candidate_count = turn->want = 0;
}

/* It was cancelled, so it does not go back to waiting. */
static void cancel_return(struct queue_return *back, const struct store_entry *cancel_request)
{
	back->result.because = queue_cancel_cause(cancel_request);
	back->state = back->result.state = QUEUE_CANCELLED;
	back->result.ending.kind = ENDING_CANCELLED;
}

/* They do not hold: what is there instead stands in the order in which build required it. */
static void find_conflicts(struct turn *turn, const struct store_answer *answer, bool asked_error)
{
	const struct store_entry *entry = answer->entries;
	size_t kept = 0;
	turn->fenced = entry++->revision != turn->worker->revision;
	if (asked_error)
		turn->failing = entry++->value;
	if (turn->failing) {
		turn->exchange->error_pending = true;
		turn->exchange->seen = answer->revision;
	}
	for (size_t i = 0; i < turn->count; i++) {
		struct queue_return *back = &turn->returns[i];
		if (back->answered)
			continue;
		if (entry++->revision != back->lease)
			back->answered = true; /* and not accepted */
		if (back->state == QUEUE_WAITING && entry++->value)
			cancel_return(back, entry - 1);
	}
	for (size_t i = 0; i < turn->exchange->candidate_count; i++)
		if (entry++->revision == turn->exchange->candidates[i].revision && !turn->failing)
			turn->exchange->candidates[kept++] = turn->exchange->candidates[i];
	if (kept < turn->exchange->candidate_count && !turn->failing)
		turn->exchange->spread = turn->exchange->spread < SPREAD_MAX / 2
						 ? 2 * turn->exchange->spread + 2
						 : SPREAD_MAX;
	turn->exchange->candidate_count = kept;
}

/* ---- After an answer that was lost ---- */

/* Read what stands at "WHAT/ID". */
static enum status read_place(struct turn *turn, const char *what, uint64_t id,
	struct store_entry *entry, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	queue_key_at(turn->queue, key, what, id);
	enum status status = store_get(turn->queue->store, key, entry, err);
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status is_registered(struct turn *turn, bool *registered, struct error *err)
{
	struct store_entry entry = {0};
	enum status status = store_get(turn->queue->store, turn->worker_key, &entry, err);
	*registered = status == STATUS_OK && entry.revision == turn->worker->revision;
	store_entry_release(&entry);
	return status == STATUS_NO ? STATUS_OK : status;
}

/* Whether this return, or this candidate, shows that the lost transaction was made. */
static enum status shows_return(
	struct turn *turn, const struct queue_return *back, bool *made, struct error *err)
{
	struct store_entry entry = {0};
	struct queue_result result;
	bool over = back->state != QUEUE_WAITING;
	enum status status = read_place(turn, over ? "done" : "run", back->item->id, &entry, err);
	if (status == STATUS_OK && over)
		*made = queue_read(&queue_result_record, &entry, &result, NULL) == STATUS_OK &&
			!strcmp(result.token, back->token);
	else if (status == STATUS_OK && entry.revision != back->lease)
		/* Given back by us, while we are registered: who is taken for dead is first fenced.
		 */
		status = is_registered(turn, made, err);
	store_entry_release(&entry);
	return status;
}

static enum status shows_candidate(struct turn *turn, const struct exchange_candidate *candidate,
	bool *made, struct error *err)
{
	struct store_entry entry = {0};
	struct queue_lease lease;
	enum status status = read_place(turn, "run", candidate->id, &entry, err);
	if (status == STATUS_OK)
		*made = queue_read(&queue_lease_record, &entry, &lease, NULL) == STATUS_OK &&
			!strcmp(lease.token, candidate->lease.token);
	store_entry_release(&entry);
	return status;
}

/* It was in the transaction, and does not show: it is handed in again, unless it has moved on. */
static enum status leave_out(struct turn *turn, struct queue_return *back, struct error *err)
{
	struct exchange *exchange = turn->exchange;
	struct store_entry entry = {0};
	for (size_t i = 0; i < exchange->handed_in_count; i++)
		if (!strcmp(exchange->handed_in[i], back->token))
			*exchange->handed_in[i] = '\0';
	enum status status = read_place(turn, "run", back->item->id, &entry, err);
	back->answered = status == STATUS_OK && entry.revision != back->lease;
	store_entry_release(&entry);
	return status;
}

/*
 * Whether the lost transaction was made. Each part is looked for: what shows may be of an earlier
 * one, which was made late and had fewer. Where it was made, only what shows is left in it.
 */
static enum status was_made(struct turn *turn, bool *made, struct error *err)
{
	struct exchange *exchange = turn->exchange;
	enum status status = STATUS_OK;
	bool taken[QUEUE_BATCH] = {0}, shown[QUEUE_BATCH] = {0};
	size_t kept = 0;
	*made = false;
	for (size_t i = 0; status == STATUS_OK && i < exchange->candidate_count; i++) {
		status = shows_candidate(turn, &exchange->candidates[i], &taken[i], err);
		*made |= taken[i];
	}
	for (size_t i = 0; status == STATUS_OK && i < turn->count; i++) {
		if (was_handed_in(exchange, &turn->returns[i]))
			status = shows_return(turn, &turn->returns[i], &shown[i], err);
		*made |= shown[i];
	}
	for (size_t i = 0; status == STATUS_OK && *made && i < turn->count; i++)
		if (!shown[i])
			status = leave_out(turn, &turn->returns[i], err);
	if (status != STATUS_OK || !*made)
		return status;
	for (size_t i = 0; i < exchange->candidate_count; i++)
		if (taken[i])
			exchange->candidates[kept++] = exchange->candidates[i];
	exchange->candidate_count = kept;
	return STATUS_OK;
}

/*
 * A refused result that is in the store after all: a transaction whose answer was lost committed
 * after it was looked for.
 */
static enum status find_late(struct turn *turn, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < turn->count && status == STATUS_OK; i++) {
		struct queue_return *back = &turn->returns[i];
		bool made = false;
		if (!back->answered || back->accepted || back->state == QUEUE_WAITING)
			continue;
		status = shows_return(turn, back, &made, err);
		back->accepted = made;
		back->answered = status == STATUS_OK;
	}
	return status;
}

/* The items of what was taken by a transaction whose answer was lost, and the leases' revision. */
static enum status read_taken(struct turn *turn, struct store_answer *answer, struct error *err)
{
	struct transaction t = {0};
	char key[QUEUE_KEY_MAX];
	if (!turn->exchange->candidate_count)
		return STATUS_OK;
	for (size_t i = 0; i < turn->exchange->candidate_count; i++) {
		queue_key_at(turn->queue, key, "item", turn->exchange->candidates[i].id);
		transaction_get(&t, transaction_own(&t, key));
	}
	queue_key_at(turn->queue, key, "run", turn->exchange->candidates[0].id);
	transaction_get(&t, transaction_own(&t, key));
	enum status status = transaction_ask(&t, turn->queue->store, answer, err);
	if (status == STATUS_OK)
		answer->revision = answer->entries[turn->exchange->candidate_count].revision;
	transaction_release(&t);
	return status;
}

static enum status look_back(
	struct turn *turn, struct queue_taken *taken, size_t *got, struct error *err)
{
	bool made;
	struct store_answer answer = {0};
	enum status status = was_made(turn, &made, err);
	if (status != STATUS_OK)
		return status;
	turn->exchange->unknown = false;
	if (!made) {
		if (turn->exchange->candidate_count > turn->want)
			turn->exchange->candidate_count = turn->want;
		return STATUS_OK;
	}
	status = read_taken(turn, &answer, err);
	if (status == STATUS_OK)
		accept(turn, &answer, taken, got);
	else
		turn->exchange->unknown = true;
	store_answer_release(&answer);
	return status;
}

/* ---- */

static bool is_settled(const struct turn *turn)
{
	for (size_t i = 0; i < turn->count; i++)
		if (!turn->returns[i].answered)
			return false;
	return true;
}

/* One try. */
static enum status try_once(
	struct turn *turn, struct queue_taken *taken, size_t *got, struct error *err)
{
	struct moves moves;
	struct store_answer answer = {0};
	enum status status = STATUS_OK;
	if (turn->exchange->unknown)
		return look_back(turn, taken, got, err);
	if (turn->failing)
		turn->want = turn->exchange->candidate_count = 0;
	if (turn->want > turn->exchange->candidate_count) {
		status = choose(turn, err);
		if (status != STATUS_OK)
			return status;
		turn->want = turn->exchange->candidate_count;
	}
	if (is_settled(turn) && !turn->want)
		return STATUS_OK;
	bool note = fails(turn) && !turn->failing;
	bool asked_error = note || turn->exchange->candidate_count;
	status = moves_begin(&moves, turn->queue, err);
	if (status != STATUS_OK)
		return status;
	build(turn, &moves, note);
	status = moves_run(&moves, &answer, err);
	if (status != STATUS_OK)
		turn->exchange->unknown = !answer.known;
	else if (answer.held)
		accept(turn, &answer, taken, got);
	else
		find_conflicts(turn, &answer, asked_error);
	bool refused = status == STATUS_OK && !answer.held;
	store_answer_release(&answer);
	moves_release(&moves);
	return refused ? find_late(turn, err) : status;
}

enum status exchange_run(struct exchange *exchange, struct queue *queue,
	const struct queue_worker *worker, struct queue_return *returns, size_t count,
	struct queue_taken *taken, size_t want, size_t *got, int64_t deadline, struct error *err)
{
	struct turn turn = {.exchange = exchange,
		.queue = queue,
		.worker = worker,
		.returns = returns,
		.count = count,
		.want = want};
	enum status status = STATUS_OK;
	*got = 0;
	exchange->error_pending = false;
	if (!exchange->unknown)
		exchange->candidate_count = 0;
	queue_key(queue, turn.worker_key, "worker/%s", worker->token);
	queue_key(queue, turn.error_key, "error");
	if (count > QUEUE_BATCH || want > QUEUE_BATCH)
		return error_set(err, STATUS_USAGE, "at most %d at a time", QUEUE_BATCH);
	for (size_t i = 0; i < count; i++)
		returns[i].answered = returns[i].accepted = false;
	for (unsigned tries = 0; !turn.fenced; tries++) {
		status = try_once(&turn, taken, got, err);
		if (status != STATUS_OK && status != STATUS_TEMPORARY && status != STATUS_TIMEOUT)
			break;
		if (status == STATUS_OK && !turn.fenced && !exchange->unknown &&
			is_settled(&turn) && !turn.want) {
			if (!tries)
				exchange->spread /= 2;
			return STATUS_OK;
		}
		/* Other workers were faster every time: hand in the results and take nothing,
		 * so that the caller can do its other work; it calls again at once. */
		if (status == STATUS_OK && !exchange->unknown && tries >= TRIES_MAX) {
			turn.want = exchange->candidate_count = 0;
			exchange->seen = 0;
		}
		if (status != STATUS_OK && clock_now() >= deadline)
			break;
		if (status != STATUS_OK)
			clock_sleep_until(clock_after(clock_jitter(50)));
	}
	if (turn.fenced)
		return error_set(err, STATUS_NO,
			"worker %s was declared dead: its commands were given to other workers",
			worker->name);
	return status;
}
