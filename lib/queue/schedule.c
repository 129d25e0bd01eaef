/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/after.h"

enum { SETTLE_TRIES = 5, SETTLE_PAUSE = 50 /* ms, doubled each time */ };

/* What --once has scheduled so far: ranges of numbers, each with the id of its first. */
struct once {
	struct once_run {
		uint64_t number, id, count;
	} * runs;
	size_t count;
	store_revision revision;
};

static bool once_get(struct json_object *run, size_t i, uint64_t *value)
{
	struct json_object *number = json_object_array_get_idx(run, i);
	if (!json_object_is_type(number, json_type_int) || json_object_get_int64(number) < 0)
		return false;
	*value = (uint64_t)json_object_get_int64(number);
	return true;
}

static enum status once_read(const struct store_entry *entry, struct once *once, struct error *err)
{
	free(once->runs);
	*once = (struct once){.revision = entry->revision};
	if (!entry->value)
		return STATUS_OK;
	struct json_object *array = json_parse(entry->value, entry->length);
	bool good = json_object_is_type(array, json_type_array);
	size_t count = good ? json_object_array_length(array) : 0;
	once->runs = xcalloc(count + 1, sizeof(*once->runs));
	for (size_t i = 0; good && i < count; i++) {
		struct once_run *run = &once->runs[once->count++];
		struct json_object *triple = json_object_array_get_idx(array, i);
		good = json_object_is_type(triple, json_type_array) &&
		       json_object_array_length(triple) == 3 && once_get(triple, 0, &run->number) &&
		       once_get(triple, 1, &run->id) && once_get(triple, 2, &run->count) &&
		       run->id >= 1 && run->id <= QUEUE_ID_MAX &&
		       run->count <= QUEUE_ID_MAX - run->id + 1;
	}
	json_object_put(array);
	return good ? STATUS_OK : queue_damaged(entry, err);
}

/* The id that was given to `number`; 0: none yet. */
static uint64_t once_find(const struct once *once, uint64_t number)
{
	for (size_t i = 0; i < once->count; i++) {
		const struct once_run *run = &once->runs[i];
		if (number >= run->number && number - run->number < run->count)
			return run->id + (number - run->number);
	}
	return 0;
}

/* Write the record, with the range `more` added; more.count 0: nothing is added. */
static struct json_object *once_write(const struct once *once, struct once_run more)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i <= once->count; i++) {
		struct once_run run = i < once->count ? once->runs[i] : more;
		if (i == once->count && !more.count)
			break;
		if (i < once->count && run.number + run.count == more.number &&
			run.id + run.count == more.id) {
			run.count += more.count;
			more.count = 0;
		}
		struct json_object *triple = json_object_new_array();
		json_object_array_add(triple, json_object_new_int64((int64_t)run.number));
		json_object_array_add(triple, json_object_new_int64((int64_t)run.id));
		json_object_array_add(triple, json_object_new_int64((int64_t)run.count));
		json_object_array_add(array, triple);
	}
	return array;
}

/* The state of one call. */
struct scheduling {
	struct queue *queue;
	struct queue_item *items;
	size_t count, old; /* the first `old` were scheduled before */
	uint64_t number;
	const struct queue_schedule *how;
	char batch[17];
	char next_key[QUEUE_KEY_MAX], error_key[QUEUE_KEY_MAX], once_key[QUEUE_KEY_MAX],
		settings_key[QUEUE_KEY_MAX];
	struct queue_settings settings;
	struct queue_tally next; /* from count/@next: ids 1 .. scheduled are given */
	store_revision next_revision;
	struct once once;
	bool failing; /* an error is pending */
};

/* Take over the current count/@next, error, and record of --once. */
static enum status take_note(
	struct scheduling *s, const struct store_entry *entries, struct error *err)
{
	enum status status = STATUS_OK;
	s->next = (struct queue_tally){0};
	s->next_revision = entries[0].revision;
	if (entries[0].value)
		status = queue_read(&queue_tally_record, &entries[0], &s->next, err);
	s->failing = entries[1].value;
	if (status == STATUS_OK && s->how->once)
		status = once_read(&entries[2], &s->once, err);
	for (s->old = 0; s->how->once && s->old < s->count; s->old++)
		if (!(s->items[s->old].id = once_find(&s->once, s->number + s->old)))
			break;
	return status;
}

static enum status look(struct scheduling *s, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	transaction_get(&t, s->next_key);
	transaction_get(&t, s->error_key);
	if (s->how->once)
		transaction_get(&t, s->once_key);
	if (s->how->use_settings)
		transaction_get(&t, s->settings_key);
	enum status status = transaction_ask(&t, s->queue->store, &answer, err);
	if (status == STATUS_OK)
		status = take_note(s, answer.entries, err);
	const struct store_entry *set = s->how->use_settings && status == STATUS_OK
						? &answer.entries[answer.count - 1]
						: NULL;
	if (set && set->value)
		status = queue_read(&queue_settings_record, set, &s->settings, err);
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

/* Put item i in its place, waiting or blocked. Neighbours with the same --after share one record
 * pending/new/ID. */
static void put_place(struct scheduling *s, struct transaction *t, size_t i)
{
	static const struct queue_history fresh;
	const struct queue_item *item = &s->items[i];
	size_t last = i;
	if (!item->after) {
		queue_wait(s->queue, t, item, &fresh);
		return;
	}
	queue_block(s->queue, t, item, &fresh, item->after);
	if (i > s->old && item[-1].after && !strcmp(item[-1].after, item->after))
		return;
	while (last + 1 < s->count && s->items[last + 1].after &&
		!strcmp(s->items[last + 1].after, item->after))
		last++;
	queue_block_new(s->queue, t, item->id, item->id + (last - i), item->after);
}

static enum status put_items(struct scheduling *s, struct transaction *t, struct error *err)
{
	for (size_t i = s->old; i < s->count; i++) {
		struct queue_item *item = &s->items[i];
		item->id = s->next.scheduled + 1 + (i - s->old);
		if (s->next.scheduled >= QUEUE_ID_MAX || item->id > QUEUE_ID_MAX)
			return error_set(err, STATUS_USAGE,
				"queue %s has used up its ids: use another queue", s->queue->name);
		if (s->how->use_settings)
			item->halt = s->settings.halt;
		free(item->batch);
		item->batch = xstrdup(s->batch);
		transaction_put(t, queue_own_key_at(s->queue, t, "item", item->id),
			queue_write(&queue_item_record, item));
		if (t->op_count && t->ops[t->op_count - 1].length > QUEUE_ITEM_MAX)
			return error_set(err, STATUS_USAGE,
				"the command has %zu bytes with all its options; at most %d can be "
				"kept: put what it needs into a file",
				t->ops[t->op_count - 1].length, QUEUE_ITEM_MAX);
		put_place(s, t, i);
	}
	return STATUS_OK;
}

/* One try. STATUS_NO: another process was faster; its changes are taken over. */
static enum status put(struct scheduling *s, bool *known, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	size_t fresh = s->count - s->old;
	struct queue_tally sum = s->next;
	transaction_require_told(&t, s->next_key, s->next_revision);
	transaction_require_told(&t, s->error_key, 0);
	if (s->how->once) {
		transaction_require_told(&t, s->once_key, s->once.revision);
		transaction_put(&t, s->once_key,
			once_write(&s->once, (struct once_run){s->number + s->old,
						     s->next.scheduled + 1, fresh}));
	}
	sum.scheduled += fresh;
	transaction_put(&t, s->next_key, queue_write(&queue_tally_record, &sum));
	enum status status = put_items(s, &t, err);
	*known = true;
	if (status == STATUS_OK) {
		status = transaction_ask(&t, s->queue->store, &answer, err);
		*known = answer.known;
	}
	if (status == STATUS_OK && answer.held) {
		s->next = sum;
		s->next_revision = answer.revision;
	} else if (status == STATUS_OK) {
		status = take_note(s, answer.entries, err);
		status = status == STATUS_OK ? STATUS_NO : status;
	}
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

/*
 * After a lost answer: STATUS_OK: the items are scheduled. STATUS_NO: they are not, and the lost
 * transaction can no longer be made: it compares count/@next, and if no other process has changed
 * that key, this function has.
 */
static enum status settle_once(struct scheduling *s, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	struct queue_item first = {0};
	struct queue_tally same = s->next;
	queue_draw_token(same.last);
	transaction_require_told(&t, s->next_key, s->next_revision);
	transaction_require_told(
		&t, queue_own_key_at(s->queue, &t, "item", s->next.scheduled + 1), 0);
	transaction_put(&t, s->next_key, queue_write(&queue_tally_record, &same));
	enum status status = transaction_ask(&t, s->queue->store, &answer, err);
	if (status == STATUS_OK && (answer.held || !answer.entries[1].value))
		status = STATUS_NO;
	else if (status == STATUS_OK)
		status = queue_read(&queue_item_record, &answer.entries[1], &first, err);
	if (status == STATUS_OK && (!first.batch || strcmp(first.batch, s->batch) != 0))
		status = STATUS_NO;
	queue_item_release(&first);
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

/*
 * Call settle_once several times, because its answer may be lost, too. A later try has the same
 * result, whether an earlier one was made or not.
 */
static enum status settle(struct scheduling *s, struct error *err)
{
	enum status status = settle_once(s, err);
	for (int tries = 1; tries < SETTLE_TRIES && status == STATUS_TEMPORARY; tries++) {
		clock_sleep_until(clock_after(clock_jitter(SETTLE_PAUSE << tries)));
		status = settle_once(s, err);
	}
	if (status == STATUS_TEMPORARY)
		error_prefix(err,
			"cannot find out whether the last commands (%zu) were scheduled: look with "
			"preempt-queue list",
			s->count - s->old);
	return status;
}

/* Wait until the queue has room. STATUS_TIMEOUT: it is full. STATUS_NO: how->wake is readable. */
static enum status wait_for_room(struct scheduling *s, struct error *err)
{
	struct queue_count count;
	char prefix[QUEUE_KEY_MAX];
	size_t fresh = s->count - s->old;
	/* A batch larger than the limit goes into an empty queue. */
	uint64_t limit = s->how->limit > fresh ? s->how->limit : fresh;
	if (!s->how->limit)
		return STATUS_OK;
	queue_key(s->queue, prefix, "count/");
	for (;;) {
		enum status status = queue_count(s->queue, &count, err);
		if (status != STATUS_OK || count.waiting + fresh <= limit)
			return status;
		/* Report a pending failure instead of waiting. One that comes after queue_count
		 * changes a count, which ends the wait below. */
		status = look(s, err);
		if (status != STATUS_OK || s->failing || s->old == s->count)
			return status;
		status = store_wait(s->queue->store, prefix, &count.revision, s->how->deadline,
			s->how->wake, err);
		if (status == STATUS_TIMEOUT)
			return error_set(err, status,
				"queue %s is full: %" PRIu64
				" commands wait and the limit is %" PRIu64,
				s->queue->name, count.waiting, s->how->limit);
		if (status != STATUS_OK)
			return status;
	}
}

static enum status raise_error(struct scheduling *s, struct error *err)
{
	struct queue_failure failure;
	enum status status = queue_raise(s->queue, s->how->deadline, s->how->wake, &failure, err);
	if (status != STATUS_OK)
		return status;
	queue_failure_say(s->queue, &failure, err);
	return STATUS_BROKEN;
}

size_t queue_schedule_most(const struct queue *queue)
{
	/* Operations: two for each item; one each for count/@next, once/KEY and pending/new/ID. */
	size_t most = (store_operations(queue->store) - 3) / 2;
	return most < QUEUE_SCHEDULE_BATCH ? most : QUEUE_SCHEDULE_BATCH;
}

enum status queue_schedule(struct queue *queue, struct queue_item *items, size_t count,
	uint64_t number, const struct queue_schedule *how, struct error *err)
{
	struct scheduling s = {
		.queue = queue, .items = items, .count = count, .number = number, .how = how};
	bool known;
	queue_key(queue, s.next_key, "count/@next");
	queue_key(queue, s.error_key, "error");
	queue_key(queue, s.settings_key, "settings");
	queue_key(queue, s.once_key, "once/%s", how->once ? how->once : "");
	queue_draw_token(s.batch);
	enum status status = look(&s, err);
	while (status == STATUS_OK && s.old < s.count) {
		if (s.failing) {
			status = raise_error(&s, err);
			if (status == STATUS_NO) /* Another process has reported it. */
				status = look(&s, err);
			continue;
		}
		status = wait_for_room(&s, err);
		if (status != STATUS_OK || s.failing || s.old == s.count)
			continue;
		status = put(&s, &known, err);
		if (status != STATUS_OK && !known) {
			status = settle(&s, err);
			if (status == STATUS_NO)
				status = look(&s, err);
			else if (status == STATUS_OK)
				break;
		} else if (status == STATUS_OK) {
			break;
		} else if (status == STATUS_NO) {
			status = STATUS_OK;
		}
	}
	free(s.once.runs);
	return status;
}
