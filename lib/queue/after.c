/* SPDX-License-Identifier: MIT */
#include "queue/after.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

enum { STEPS = 32 /* transactions after which a call with `left` ends */ };

/* ---- Ids as text ---- */

/* Write ascending numbers as "3-7,9"; NULL if there are none. */
static char *write_ids(const uint64_t *ids, size_t count)
{
	struct text text = {0};
	struct text_ranges ranges = {.text = &text};
	for (size_t i = 0; i < count; i++)
		text_range(&ranges, ids[i]);
	text_ranges_end(&ranges);
	return text.data;
}

static enum status read_ids(const struct store_entry *entry, const char *text,
	struct parse_numbers *ids, struct error *err)
{
	return parse_numbers(text, QUEUE_ID_MAX, ids, "after", NULL) == STATUS_OK
		       ? STATUS_OK
		       : queue_damaged(entry, err);
}

/* Write ids without one of them; NULL if none is left. *found: id was among them. */
static char *without(const struct parse_numbers *ids, uint64_t id, bool *found)
{
	uint64_t *kept = xcalloc(ids->count + 1, sizeof(*kept));
	size_t count = 0;
	for (size_t i = 0; i < ids->count; i++)
		if (ids->items[i] != id)
			kept[count++] = ids->items[i];
	*found = count < ids->count;
	char *text = write_ids(kept, count);
	free(kept);
	return text;
}

/* ---- Which commands block ---- */

/* Add to `left` those ids of this part that the command still has to wait for. */
static enum status add_open(struct queue *queue, const struct parse_numbers *part, bool again,
	struct parse_numbers *left, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	for (size_t i = 0; i < part->count; i++) {
		transaction_get(&t, queue_own_key_at(queue, &t, "item", part->items[i]));
		transaction_get(&t, queue_own_key_at(queue, &t, "done", part->items[i]));
	}
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	for (size_t i = 0; i < part->count && status == STATUS_OK; i++) {
		struct queue_result result;
		const struct store_entry *entry = &answer.entries[2 * i];
		if (!entry->value && !again)
			status = error_set(err, STATUS_USAGE,
				"queue %s has no command %" PRIu64
				": it was never scheduled, or it was forgotten",
				queue->name, part->items[i]);
		bool succeeded =
			entry[1].value &&
			queue_read(&queue_result_record, &entry[1], &result, NULL) == STATUS_OK &&
			result.state == QUEUE_SUCCEEDED;
		if (!entry->value || (succeeded && !again))
			continue;
		left->items = xgrow(left->items, left->count, &left->room, sizeof(*left->items));
		left->items[left->count++] = part->items[i];
	}
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

enum status queue_after(struct queue *queue, const struct parse_numbers *ids, bool again,
	char **left, struct error *err)
{
	struct parse_numbers open = {0};
	enum status status = STATUS_OK;
	size_t most = store_operations(queue->store) / 2;
	for (size_t at = 0; at < ids->count && status == STATUS_OK; at += most) {
		size_t count = ids->count - at < most ? ids->count - at : most;
		status = add_open(queue, &(struct parse_numbers){ids->items + at, count, count},
			again, &open, err);
	}
	if (status == STATUS_OK && open.count > QUEUE_AFTER_MAX)
		status = error_set(err, STATUS_USAGE,
			"a command may wait for at most %d others, not for %zu", QUEUE_AFTER_MAX,
			open.count);
	if (status == STATUS_OK) {
		parse_numbers_sort(&open);
		*left = write_ids(open.items, open.count);
	}
	parse_numbers_release(&open);
	return status;
}

void queue_block(const struct queue *queue, struct transaction *t, const struct queue_item *item,
	const struct queue_history *history, const char *after)
{
	const struct queue_blocked blocked = {(char *)(uintptr_t)after, item->priority, *history};
	transaction_put(t, queue_own_key_at(queue, t, "blocked", item->id),
		queue_write(&queue_blocked_record, &blocked));
}

void queue_block_new(const struct queue *queue, struct transaction *t, uint64_t first,
	uint64_t last, const char *after)
{
	const struct queue_block block = {last, (char *)(uintptr_t)after};
	transaction_put(t, queue_own_key_at(queue, t, "pending/new", first),
		queue_write(&queue_block_record, &block));
}

enum status queue_dependents(struct queue *queue, const uint64_t *ids, size_t count,
	store_revision *revisions, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	for (size_t i = 0; i < count; i++)
		transaction_get(&t, queue_own_key_at(queue, &t, "after", ids[i]));
	enum status status = count ? transaction_ask(&t, queue->store, &answer, err) : STATUS_OK;
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		revisions[i] = answer.entries[i].revision;
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

/* ---- After scheduling: note the dependents at the commands that block them ---- */

/* Add span to the dependents of one command. entries: its item, result and known dependents. */
static enum status block_by(struct queue *queue, struct transaction *t,
	const struct store_entry entries[3], struct queue_dependents span, struct error *err)
{
	const struct store_entry *item = &entries[0], *done = &entries[1], *after = &entries[2];
	struct queue_dependents known = {0};
	uint64_t id;
	if (!queue_key_id(item->key, &id))
		return queue_damaged(item, err);
	if (after->value) {
		enum status status = queue_read(&queue_dependents_record, after, &known, err);
		if (status != STATUS_OK)
			return status;
		span.first = known.first < span.first ? known.first : span.first;
		span.last = known.last > span.last ? known.last : span.last;
	}
	/* Whether it is over, or forgotten, must not change before this is noted. */
	transaction_require(t, transaction_own(t, item->key), item->revision);
	transaction_require(t, transaction_own(t, done->key), done->revision);
	transaction_require(t, transaction_own(t, after->key), after->revision);
	transaction_put(
		t, transaction_own(t, after->key), queue_write(&queue_dependents_record, &span));
	if (done->value || !item->value)
		transaction_put(t, queue_own_key_at(queue, t, "pending/over", id),
			json_object_new_object());
	return STATUS_OK;
}

/* Add span to as many of ids as fit into one transaction; the rest stays pending. */
static enum status block_some(struct queue *queue, const struct store_entry *pending,
	const struct parse_numbers *ids, struct queue_dependents span, struct error *err)
{
	static const char *const what[] = {"item", "done", "after"};
	struct transaction t = {0}, look = {0};
	struct store_answer answer = {0};
	size_t most = (store_operations(queue->store) - 1) / 3;
	size_t count = ids->count < most ? ids->count : most;
	for (size_t i = 0; i < 3 * count; i++)
		transaction_get(
			&look, queue_own_key_at(queue, &look, what[i % 3], ids->items[i / 3]));
	enum status status = transaction_ask(&look, queue->store, &answer, err);
	const char *key = transaction_own(&t, pending->key);
	transaction_require(&t, key, pending->revision);
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		status = block_by(queue, &t, &answer.entries[3 * i], span, err);
	char *rest = write_ids(ids->items + count, ids->count - count);
	if (rest)
		queue_block_new(queue, &t, span.first, span.last, rest);
	else
		transaction_delete(&t, key);
	if (status == STATUS_OK)
		status = transaction_run(&t, queue->store, err);
	free(rest);
	store_answer_release(&answer);
	transaction_release(&look);
	transaction_release(&t);
	return status;
}

static enum status carry_on_new(
	struct queue *queue, const struct store_entry *pending, uint64_t id, struct error *err)
{
	struct queue_block block;
	struct parse_numbers ids = {0};
	enum status status = queue_read(&queue_block_record, pending, &block, err);
	if (status != STATUS_OK)
		return status;
	status = read_ids(pending, block.after, &ids, err);
	if (status == STATUS_OK)
		status = block_some(
			queue, pending, &ids, (struct queue_dependents){id, block.last}, err);
	parse_numbers_release(&ids);
	free(block.after);
	return status;
}

/* ---- After the end of a command: release or cancel its dependents ---- */

struct over {
	uint64_t id;
	const struct store_entry *pending;
	struct queue_dependents span;
	bool succeeded;
	uint64_t because; /* the failed command that caused it; 0: none */
	char why[128];
};

static enum status read_over(struct queue *queue, struct over *over, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	struct queue_result result;
	transaction_get(&t, queue_own_key_at(queue, &t, "after", over->id));
	transaction_get(&t, queue_own_key_at(queue, &t, "done", over->id));
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	if (status == STATUS_OK && answer.entries[0].value)
		status = queue_read(&queue_dependents_record, &answer.entries[0], &over->span, err);
	if (status == STATUS_OK) {
		bool known = queue_read(&queue_result_record, &answer.entries[1], &result, NULL) ==
			     STATUS_OK;
		over->succeeded = known && result.state == QUEUE_SUCCEEDED;
		bool failed = known && result.state == QUEUE_FAILED;
		over->because = failed ? over->id : known ? result.because : 0;
		snprintf(over->why, sizeof(over->why), "cancelled because command %" PRIu64 " %s",
			over->id,
			failed	? "failed"
			: known ? "was cancelled"
				: "was forgotten");
	}
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

/* A command that blocked item has succeeded; those in left (NULL: none) still block item. */
static void unblock(struct moves *moves, const struct queue_item *item,
	const struct queue_history *history, const char *left)
{
	struct transaction *t = &moves->t;
	if (left) {
		queue_block(moves->queue, t, item, history, left);
		return;
	}
	transaction_delete(t, queue_own_key_at(moves->queue, t, "blocked", item->id));
	queue_wait(moves->queue, t, item, history);
}

/* page lists blocked commands: unblock or cancel those that wait for over->id. */
static enum status move_dependents(struct moves *moves, const struct over *over,
	const struct store_answer *page, struct error *err)
{
	enum status status = STATUS_OK;
	uint64_t ids[QUEUE_SCHEDULE_BATCH] = {0}, id;
	store_revision dependents[QUEUE_SCHEDULE_BATCH];
	size_t cancelled = 0;
	for (size_t i = 0; i < page->count && status == STATUS_OK; i++) {
		const struct store_entry *entry = &page->entries[i];
		struct queue_blocked blocked;
		struct parse_numbers by = {0};
		bool found = false;
		if (!queue_key_id(entry->key, &id))
			continue;
		status = queue_read(&queue_blocked_record, entry, &blocked, err);
		if (status != STATUS_OK)
			break;
		status = read_ids(entry, blocked.after, &by, err);
		char *left = status == STATUS_OK ? without(&by, over->id, &found) : NULL;
		if (found) {
			transaction_require(
				&moves->t, transaction_own(&moves->t, entry->key), entry->revision);
			if (over->succeeded) {
				const struct queue_item item = {
					.id = id, .priority = blocked.priority};
				unblock(moves, &item, &blocked.history, left);
			} else {
				moves_cancel(moves, entry->key, id, &blocked.history, over->because,
					over->why);
				ids[cancelled++] = id;
			}
		}
		free(left);
		parse_numbers_release(&by);
		free(blocked.after);
	}
	if (status == STATUS_OK)
		status = queue_dependents(moves->queue, ids, cancelled, dependents, err);
	for (size_t i = 0; i < cancelled && status == STATUS_OK; i++)
		moves_over(moves, ids[i], dependents[i]);
	return status;
}

/* Unblock or cancel its dependents in one page. STATUS_NO: a key has changed since it was read. */
static enum status tell_page(struct queue *queue, const struct over *over,
	const struct store_answer *page, bool last, struct error *err)
{
	struct moves moves = {.queue = queue};
	enum status status = over->succeeded ? STATUS_OK : moves_begin(&moves, queue, err);
	struct transaction *t = &moves.t;
	transaction_require(t, transaction_own(t, over->pending->key), over->pending->revision);
	if (last) {
		transaction_delete(t, queue_own_key_at(queue, t, "after", over->id));
		transaction_delete(t, transaction_own(t, over->pending->key));
	}
	if (status == STATUS_OK)
		status = move_dependents(&moves, over, page, err);
	if (status == STATUS_OK && moves.tally.cancelled)
		status = moves_run_told(&moves, err);
	else if (status == STATUS_OK && t->op_count)
		status = transaction_run(t, queue->store, err);
	moves_release(&moves);
	return status;
}

static enum status carry_on_over(struct queue *queue, const struct store_entry *pending,
	uint64_t id, size_t *steps, struct error *err)
{
	struct over over = {.id = id, .pending = pending, .span = {1, 0}};
	char key[QUEUE_KEY_MAX];
	/* Each needs three operations and two compares. */
	size_t most = (store_operations(queue->store) - 4) / 3;
	struct store_range range = {
		.after = key, .limit = most < QUEUE_SCHEDULE_BATCH ? most : QUEUE_SCHEDULE_BATCH};
	enum status status = read_over(queue, &over, err);
	queue_key_at(queue, key, "blocked", over.span.first - 1);
	for (bool last = false; status == STATUS_OK && !last; ++*steps) {
		struct store_answer page = {0};
		uint64_t end = 0;
		status = queue_list(queue, "blocked", range, &page, err);
		if (status != STATUS_OK)
			break;
		last = !page.more || !page.count ||
		       (queue_key_id(page.entries[page.count - 1].key, &end) &&
			       end >= over.span.last);
		if (!last)
			snprintf(key, sizeof(key), "%s", page.entries[page.count - 1].key);
		status = tell_page(queue, &over, &page, last, err);
		store_answer_release(&page);
	}
	return status;
}

/* ---- */

static enum status carry_on_one(
	struct queue *queue, const struct store_entry *pending, size_t *steps, struct error *err)
{
	uint64_t id;
	if (!queue_key_id(pending->key, &id))
		return queue_damaged(pending, err);
	++*steps;
	const char *name = pending->key + strlen(queue->prefix);
	enum status status = !strncmp(name, "pending/new/", strlen("pending/new/"))
				     ? carry_on_new(queue, pending, id, err)
				     : carry_on_over(queue, pending, id, steps, err);
	/* Another process was faster, or has changed a key: the next call looks again. */
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status queue_carry_on(struct queue *queue, bool *left, struct error *err)
{
	/* Act as a client, even in a worker: after a lost answer, a step is simply repeated. */
	struct queue client = *queue;
	enum status status = STATUS_OK;
	size_t steps = 0;
	snprintf(client.who, sizeof(client.who), "@clients");
	client.tallied = -1;
	*client.unknown = '\0';
	for (bool some = true; some && status == STATUS_OK;) {
		struct store_answer answer = {0};
		status = queue_list(
			&client, "pending", (struct store_range){.limit = STEPS}, &answer, err);
		some = status == STATUS_OK && answer.count;
		if (left)
			*left = some;
		for (size_t i = 0; i < answer.count && status == STATUS_OK; i++) {
			if (left && steps >= STEPS)
				some = false;
			else
				status = carry_on_one(&client, &answer.entries[i], &steps, err);
		}
		store_answer_release(&answer);
	}
	return status;
}
