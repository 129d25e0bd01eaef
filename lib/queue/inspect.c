/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "queue/moves.h"

/* Commands of which all is read at once. */
#define PAGE 1000

void queue_view_release(struct queue_view *view)
{
	queue_item_release(&view->item);
	*view = (struct queue_view){0};
}

/* ---- What stands at a command's places. The one that is furthest is looked at last. ---- */

static enum status see_waiting(
	struct queue_view *view, const struct store_entry *entry, struct error *err)
{
	view->state = QUEUE_WAITING;
	view->revision = entry->revision;
	return queue_read(&queue_history_record, entry, &view->history, err);
}

static enum status see_running(
	struct queue_view *view, const struct store_entry *entry, struct error *err)
{
	enum status status = queue_read(&queue_lease_record, entry, &view->lease, err);
	view->state = QUEUE_RUNNING;
	view->revision = entry->revision;
	view->history = view->lease.history;
	return status;
}

static enum status see_done(
	struct queue_view *view, const struct store_entry *entry, struct error *err)
{
	enum status status = queue_read(&queue_result_record, entry, &view->result, err);
	view->state = view->result.state;
	view->revision = entry->revision;
	view->history = view->result.history;
	view->cancelling = false;
	return status;
}

/* ---- Some, by their ids ---- */

static void get(struct transaction *t, const struct queue *queue, const char *what, uint64_t id)
{
	char key[QUEUE_KEY_MAX];
	queue_key_at(queue, key, what, id);
	transaction_get(t, transaction_own(t, key));
}

static enum status read_items(struct queue *queue, const uint64_t *ids, size_t count,
	struct queue_view *views, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	for (size_t i = 0; i < count; i++)
		get(&t, queue, "item", ids[i]);
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		const struct store_entry *entry = &answer.entries[i];
		if (entry->value)
			status = queue_read(&queue_item_record, entry, &views[i].item, err);
	}
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

/* Where they are, all at the same instant. One that is nowhere is forgotten: its item goes. */
static enum status read_places(
	struct queue *queue, size_t count, struct queue_view *views, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	char key[QUEUE_KEY_MAX];
	for (size_t i = 0; i < count; i++) {
		if (!views[i].item.id)
			continue;
		queue_key_waiting(queue, key, views[i].item.priority, views[i].item.id);
		transaction_get(&t, transaction_own(&t, key));
		get(&t, queue, "run", views[i].item.id);
		get(&t, queue, "done", views[i].item.id);
		get(&t, queue, "cancel", views[i].item.id);
	}
	if (!t.op_count) {
		transaction_release(&t);
		return STATUS_OK;
	}
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	const struct store_entry *entry = answer.entries;
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		if (!views[i].item.id)
			continue;
		views[i].cancelling = entry[3].value;
		if (entry[0].value)
			status = see_waiting(&views[i], &entry[0], err);
		else if (entry[1].value)
			status = see_running(&views[i], &entry[1], err);
		else if (entry[2].value)
			status = see_done(&views[i], &entry[2], err);
		else
			queue_view_release(&views[i]);
		entry += 4;
	}
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

enum status queue_inspect_some(struct queue *queue, const uint64_t *ids, size_t count,
	struct queue_view *views, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		views[i] = (struct queue_view){0};
	enum status status = read_items(queue, ids, count, views, err);
	if (status == STATUS_OK)
		status = read_places(queue, count, views, err);
	for (size_t i = 0; i < count && status != STATUS_OK; i++)
		queue_view_release(&views[i]);
	return status;
}

enum status queue_inspect(
	struct queue *queue, uint64_t id, struct queue_view *view, struct error *err)
{
	struct queue_view seen;
	enum status status = queue_inspect_some(queue, &id, 1, &seen, err);
	if (status != STATUS_OK)
		return status;
	if (!seen.item.id)
		return error_set(
			err, STATUS_NO, "queue %s has no command %" PRIu64, queue->name, id);
	*view = seen;
	return STATUS_OK;
}

/* ---- All, a page at a time ---- */

struct page {
	struct queue *queue;
	struct queue_view *views; /* in the order of ids */
	bool *seen;
	size_t count;
	char after[11]; /* "ID" before the first */
};

static void page_release(struct page *page)
{
	for (size_t i = 0; i < page->count; i++)
		queue_view_release(&page->views[i]);
	page->count = 0;
}

static size_t page_find(const struct page *page, uint64_t id)
{
	size_t low = 0, high = page->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (page->views[middle].item.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < page->count && page->views[low].item.id == id ? low : page->count;
}

/* What is below "queue/NAME/" + what from the page's first command on: one each at most. */
static enum status page_list(const struct page *page, const char *what, size_t limit,
	struct store_answer *answer, struct error *err)
{
	char prefix[QUEUE_KEY_MAX], after[QUEUE_KEY_MAX];
	queue_key(page->queue, prefix, "%s/", what);
	queue_key(page->queue, after, "%s/%s", what, page->after);
	struct store_range range = {.prefix = prefix, .after = after, .limit = limit};
	return store_list(page->queue->store, &range, answer, err);
}

static enum status page_items(struct page *page, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct store_answer answer = {0};
	enum status status = page_list(page, "item", PAGE, &answer, err);
	for (size_t i = 0; i < answer.count && status == STATUS_OK; i++) {
		const struct store_entry *entry = &answer.entries[i];
		struct queue_view *view = &page->views[page->count];
		*view = (struct queue_view){0};
		status = queue_read(&queue_item_record, entry, &view->item, err);
		if (status != STATUS_OK)
			continue;
		page->seen[page->count++] = false;
		/* The next page begins after this id: a key that is not the id's own would lead
		 * back. */
		queue_key_at(page->queue, key, "item", view->item.id);
		if (strcmp(entry->key, key) != 0)
			status = queue_damaged(entry, err);
	}
	store_answer_release(&answer);
	return status;
}

static enum status page_places(struct page *page, const char *what, size_t limit,
	enum status (*see)(struct queue_view *, const struct store_entry *, struct error *),
	struct error *err)
{
	struct store_answer answer = {0};
	enum status status = page_list(page, what, limit, &answer, err);
	for (size_t i = 0; i < answer.count && status == STATUS_OK; i++) {
		uint64_t id = 0;
		size_t at = queue_key_id(answer.entries[i].key, &id) ? page_find(page, id)
								     : page->count;
		if (at == page->count)
			continue;
		status = see(&page->views[at], &answer.entries[i], err);
		page->seen[at] = true;
	}
	store_answer_release(&answer);
	return status;
}

/* Those that wait stand by their priority: one list for each that there is. */
static enum status page_waiting(struct page *page, struct error *err)
{
	enum status status = STATUS_OK;
	char key[QUEUE_KEY_MAX];
	static const int count = 2 * QUEUE_PRIORITY_MAX + 1;
	uint16_t *of = xcalloc((size_t)count, sizeof(*of));
	for (size_t i = 0; i < page->count; i++)
		of[QUEUE_PRIORITY_MAX - page->views[i].item.priority]++;
	for (int i = 0; i < count && status == STATUS_OK; i++) {
		if (!of[i])
			continue;
		snprintf(key, sizeof(key), "wait/%04d", i);
		status = page_places(page, key, of[i], see_waiting, err);
	}
	free(of);
	return status;
}

static enum status see_cancelling(
	struct queue_view *view, const struct store_entry *entry, struct error *err)
{
	(void)entry, (void)err;
	view->cancelling = true;
	return STATUS_OK;
}

/* Commands move on while we read: where they come to is read after where they come from. */
static enum status page_fill(struct page *page, struct error *err)
{
	enum status status = page_items(page, err);
	if (status != STATUS_OK || !page->count)
		return status;
	status = page_waiting(page, err);
	if (status == STATUS_OK)
		status = page_places(page, "run", page->count, see_running, err);
	if (status == STATUS_OK)
		status = page_places(page, "cancel", page->count, see_cancelling, err);
	if (status == STATUS_OK)
		status = page_places(page, "done", page->count, see_done, err);
	/* One that went back meanwhile was seen nowhere. */
	for (size_t i = 0; i < page->count && status == STATUS_OK; i++) {
		struct queue_view again;
		if (page->seen[i])
			continue;
		status = queue_inspect(page->queue, page->views[i].item.id, &again, err);
		if (status == STATUS_OK) {
			queue_view_release(&page->views[i]);
			page->views[i] = again;
			page->seen[i] = true;
		} else if (status == STATUS_NO) {
			status = STATUS_OK;
		}
	}
	return status;
}

enum status queue_visit(struct queue *queue, uint64_t after,
	enum status (*visit)(void *context, const struct queue_view *view), void *context,
	struct error *err)
{
	enum status status = STATUS_OK;
	struct page page = {.queue = queue,
		.views = xcalloc(PAGE, sizeof(*page.views)),
		.seen = xcalloc(PAGE, sizeof(*page.seen))};
	for (bool more = true; more && status == STATUS_OK;) {
		snprintf(page.after, sizeof(page.after), "%010" PRIu64,
			after < QUEUE_ID_MAX ? after : (uint64_t)QUEUE_ID_MAX);
		status = page_fill(&page, err);
		for (size_t i = 0; i < page.count && status == STATUS_OK; i++)
			if (page.seen[i])
				status = visit(context, &page.views[i]);
		more = page.count == PAGE;
		if (page.count)
			after = page.views[page.count - 1].item.id;
		page_release(&page);
	}
	free(page.views);
	free(page.seen);
	return status;
}

/* ---- Those of one place ---- */

struct place_visit {
	struct queue *queue;
	const char *what; /* "run", "done" */
	enum status (*see)(struct queue_view *, const struct store_entry *, struct error *);
	const enum queue_state *only; /* NULL: all */
	enum status (*visit)(void *context, const struct queue_view *view);
	void *context;
};

/* Those of these entries that are meant; revisions above `until` are for the next time. */
static enum status visit_entries(const struct place_visit *place, const struct store_answer *answer,
	store_revision until, struct error *err)
{
	struct queue_view views[QUEUE_CHANGE_BATCH], seen[QUEUE_CHANGE_BATCH];
	uint64_t ids[QUEUE_CHANGE_BATCH];
	size_t count = 0;
	enum status status = STATUS_OK;
	for (size_t i = 0; i <= answer->count && status == STATUS_OK; i++) {
		const struct store_entry *entry = i < answer->count ? &answer->entries[i] : NULL;
		if (entry && entry->revision <= until && queue_key_id(entry->key, &ids[count])) {
			seen[count] = (struct queue_view){0};
			status = place->see(&seen[count], entry, err);
			count += status == STATUS_OK &&
				 (!place->only || seen[count].state == *place->only);
		}
		if (status != STATUS_OK || !count || (count < QUEUE_CHANGE_BATCH && entry))
			continue;
		for (size_t k = 0; k < count; k++)
			views[k] = (struct queue_view){0};
		status = read_items(place->queue, ids, count, views, err);
		for (size_t k = 0; k < count; k++) {
			seen[k].item = views[k].item;
			if (status == STATUS_OK && seen[k].item.id)
				status = place->visit(place->context, &seen[k]);
			queue_view_release(&seen[k]);
		}
		count = 0;
	}
	return status;
}

static enum status visit_place(
	const struct place_visit *place, store_revision *since, struct error *err)
{
	char prefix[QUEUE_KEY_MAX], last[QUEUE_KEY_MAX];
	struct store_answer answer = {0};
	struct store_range range = {.prefix = prefix, .since = *since, .limit = PAGE};
	store_revision until = 0;
	enum status status = STATUS_OK;
	queue_key(place->queue, prefix, "%s/", place->what);
	for (bool more = true; more && status == STATUS_OK;) {
		status = store_list(place->queue->store, &range, &answer, err);
		if (status != STATUS_OK)
			break;
		until = until ? until : answer.revision;
		status = visit_entries(place, &answer, until, err);
		more = answer.more && answer.count;
		if (more) {
			snprintf(last, sizeof(last), "%s", answer.entries[answer.count - 1].key);
			range.after = last;
		}
		store_answer_release(&answer);
	}
	if (status == STATUS_OK && until)
		*since = until;
	return status;
}

enum status queue_visit_running(struct queue *queue,
	enum status (*visit)(void *context, const struct queue_view *view), void *context,
	struct error *err)
{
	store_revision since = 0;
	const struct place_visit place = {queue, "run", see_running, NULL, visit, context};
	return visit_place(&place, &since, err);
}

enum status queue_visit_done(struct queue *queue, store_revision *since,
	const enum queue_state *only,
	enum status (*visit)(void *context, const struct queue_view *view), void *context,
	struct error *err)
{
	const struct place_visit place = {queue, "done", see_done, only, visit, context};
	return visit_place(&place, since, err);
}
