/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "queue/moves.h"

/* The number of commands to read at once. */
#define PAGE 1000

void queue_view_release(struct queue_view *view)
{
	queue_item_release(&view->item);
	free(view->after);
	*view = (struct queue_view){0};
}

/* ---- Where a command is ---- */

/* In the order in which a command moves. */
enum place { PLACE_BLOCKED, PLACE_WAIT, PLACE_RUN, PLACE_CANCEL, PLACE_DONE, PLACES };
static const char *const place_names[] = {"blocked", "wait", "run", "cancel", "done"};

static enum status see_blocked(
	struct queue_view *view, const struct store_entry *entry, struct error *err)
{
	struct queue_blocked blocked;
	enum status status = queue_read(&queue_blocked_record, entry, &blocked, err);
	view->state = QUEUE_BLOCKED;
	view->history = blocked.history;
	view->after = blocked.after;
	return status;
}

static enum status see(struct queue_view *view, enum place place, const struct store_entry *entry,
	struct error *err)
{
	enum status status = STATUS_OK;
	if (place != PLACE_CANCEL) {
		view->revision = entry->revision;
		free(view->after);
		view->after = NULL;
	}
	switch (place) {
	case PLACE_BLOCKED: return see_blocked(view, entry, err);
	case PLACE_WAIT:
		view->state = QUEUE_WAITING;
		return queue_read(&queue_history_record, entry, &view->history, err);
	case PLACE_RUN:
		status = queue_read(&queue_lease_record, entry, &view->lease, err);
		view->state = QUEUE_RUNNING;
		view->history = view->lease.history;
		break;
	case PLACE_CANCEL: view->cancelling = true; break;
	case PLACE_DONE:
		status = queue_read(&queue_result_record, entry, &view->result, err);
		view->state = view->result.state;
		view->history = view->result.history;
		view->cancelling = false;
		break;
	case PLACES: break;
	}
	return status;
}

/* ---- Commands by their ids ---- */

static enum status item_damaged(struct queue *queue, uint64_t id, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	queue_key_at(queue, key, "item", id);
	return queue_damaged(&(struct store_entry){.key = key}, err);
}

/* Read the items of these ids into views. One that is damaged can still be forgotten. */
static enum status read_items(struct queue *queue, const uint64_t *ids, size_t count,
	struct queue_view *views, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	for (size_t i = 0; i < count; i++)
		transaction_get(&t, queue_own_key_at(queue, &t, "item", ids[i]));
	enum status status = transaction_ask(&t, queue->store, &answer, err);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		const struct store_entry *entry = &answer.entries[i];
		if (entry->value)
			queue_item_take(entry, ids[i], &views[i].item);
	}
	store_answer_release(&answer);
	transaction_release(&t);
	return status;
}

static bool is_unseen(const struct queue_view *view)
{
	return view->item.id && !view->revision;
}

/*
 * Find the place of each view that has none yet, all at the same instant. A command without a place
 * is forgotten: its item is dropped.
 */
static enum status read_places(
	struct queue *queue, size_t count, struct queue_view *views, struct error *err)
{
	struct transaction t = {0};
	struct store_answer answer = {0};
	enum status status = STATUS_OK;
	for (size_t i = 0; i < count; i++) {
		char key[QUEUE_KEY_MAX];
		if (!is_unseen(&views[i]))
			continue;
		transaction_get(&t, queue_own_key_at(queue, &t, "blocked", views[i].item.id));
		queue_key_waiting(queue, key, views[i].item.priority, views[i].item.id);
		transaction_get(&t, transaction_own(&t, key));
		for (enum place place = PLACE_RUN; place <= PLACE_DONE; place++)
			transaction_get(&t,
				queue_own_key_at(queue, &t, place_names[place], views[i].item.id));
	}
	if (t.op_count)
		status = transaction_ask(&t, queue->store, &answer, err);
	const struct store_entry *entry = answer.entries;
	for (size_t i = 0; i < count && t.op_count && status == STATUS_OK; i++) {
		if (!is_unseen(&views[i]))
			continue;
		for (enum place place = PLACE_BLOCKED; place <= PLACE_DONE; place++, entry++)
			if (entry->value && status == STATUS_OK)
				status = see(&views[i], place, entry, err);
		/* It may wait with a priority that cannot be read. */
		if (status == STATUS_OK && is_unseen(&views[i]) && views[i].item.damaged)
			status = item_damaged(queue, views[i].item.id, err);
		if (status == STATUS_OK && is_unseen(&views[i]))
			queue_view_release(&views[i]);
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
	enum status status = queue_inspect_some(queue, &id, 1, view, err);
	if (status == STATUS_OK && !view->item.id)
		status = error_set(
			err, STATUS_NO, "queue %s has no command %" PRIu64, queue->name, id);
	if (status == STATUS_OK && view->item.damaged) {
		queue_view_release(view);
		status = item_damaged(queue, id, err);
	}
	return status;
}

/* ---- All commands, a page at a time ---- */

struct page {
	struct queue *queue;
	struct queue_view *views; /* sorted by id */
	size_t count;
	uint64_t after, last; /* the id before the first one; the last id */
};

/* List "queue/NAME/WHAT/", from the first command of the page on. */
static enum status page_list(const struct page *page, const char *what, size_t limit,
	struct store_answer *answer, struct error *err)
{
	char after[QUEUE_KEY_MAX];
	queue_key_at(page->queue, after, what, page->after);
	return queue_list(page->queue, what, (struct store_range){.after = after, .limit = limit},
		answer, err);
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
			break;
		page->count++;
		page->last = view->item.id;
		/* The next page begins after this id. If it did not match its key, we could go
		 * round in circles. */
		queue_key_at(page->queue, key, "item", view->item.id);
		if (strcmp(entry->key, key) != 0)
			status = queue_damaged(entry, err);
	}
	store_answer_release(&answer);
	return status;
}

static enum status page_place(
	struct page *page, enum place place, const char *where, size_t limit, struct error *err)
{
	struct store_answer answer = {0};
	size_t at = 0;
	uint64_t id;
	enum status status = page_list(page, where, limit, &answer, err);
	for (size_t i = 0; i < answer.count && status == STATUS_OK; i++) {
		if (!queue_key_id(answer.entries[i].key, &id))
			continue;
		while (at < page->count && page->views[at].item.id < id)
			at++;
		if (at < page->count && page->views[at].item.id == id)
			status = see(&page->views[at], place, &answer.entries[i], err);
	}
	store_answer_release(&answer);
	return status;
}

/* Waiting commands are listed by priority: read one list for each priority in the page. */
static enum status page_waiting(struct page *page, struct error *err)
{
	enum status status = STATUS_OK;
	uint16_t of[2 * QUEUE_PRIORITY_MAX + 1] = {0};
	for (size_t i = 0; i < page->count; i++)
		of[QUEUE_PRIORITY_MAX - page->views[i].item.priority]++;
	for (int i = 0; i <= 2 * QUEUE_PRIORITY_MAX && status == STATUS_OK; i++) {
		char where[16];
		snprintf(where, sizeof(where), "wait/%04d", i);
		if (of[i])
			status = page_place(page, PLACE_WAIT, where, of[i], err);
	}
	return status;
}

/*
 * Commands move while we read, so the places are read in the order in which a command moves. If one
 * was seen nowhere, it has moved back: then read all its places at one instant.
 */
static enum status page_fill(struct page *page, struct error *err)
{
	size_t chunk = store_operations(page->queue->store) / PLACES;
	enum status status = page_items(page, err);
	if (status == STATUS_OK && page->count)
		status = page_place(page, PLACE_BLOCKED, "blocked", page->count, err);
	if (status == STATUS_OK)
		status = page_waiting(page, err);
	for (enum place place = PLACE_RUN; place <= PLACE_DONE && page->count; place++)
		if (status == STATUS_OK)
			status = page_place(page, place, place_names[place], page->count, err);
	for (size_t at = 0; at < page->count && status == STATUS_OK; at += chunk) {
		size_t count = page->count - at < chunk ? page->count - at : chunk;
		status = read_places(page->queue, count, page->views + at, err);
	}
	return status;
}

enum status queue_visit(
	struct queue *queue, uint64_t after, queue_visitor *visit, void *context, struct error *err)
{
	enum status status = STATUS_OK;
	struct page page = {.queue = queue,
		.views = xcalloc(PAGE, sizeof(*page.views)),
		.after = after < QUEUE_ID_MAX ? after : QUEUE_ID_MAX};
	do {
		page.count = 0;
		status = page_fill(&page, err);
		for (size_t i = 0; i < page.count; i++) {
			if (page.views[i].item.id && status == STATUS_OK)
				status = visit(context, &page.views[i]);
			queue_view_release(&page.views[i]);
		}
		page.after = page.last;
	} while (page.count == PAGE && status == STATUS_OK);
	free(page.views);
	return status;
}

/* ---- The commands of one place ---- */

struct place_visit {
	struct queue *queue;
	enum place place;
	const enum queue_state *only; /* NULL: all */
	queue_visitor *visit;
	void *context;
};

/* Visit the entries up to revision `until`; later ones are left for the next call. */
static enum status visit_entries(const struct place_visit *how, const struct store_answer *answer,
	store_revision until, struct error *err)
{
	struct queue_view views[QUEUE_CHANGE_BATCH];
	uint64_t ids[QUEUE_CHANGE_BATCH];
	size_t count = 0;
	enum status status = STATUS_OK;
	for (size_t i = 0; i <= answer->count && status == STATUS_OK; i++) {
		const struct store_entry *entry = i < answer->count ? &answer->entries[i] : NULL;
		if (entry && entry->revision <= until && queue_key_id(entry->key, &ids[count])) {
			views[count] = (struct queue_view){0};
			status = see(&views[count], how->place, entry, err);
			count += status == STATUS_OK &&
				 (!how->only || views[count].state == *how->only);
		}
		if (status != STATUS_OK || !count || (count < QUEUE_CHANGE_BATCH && entry))
			continue;
		status = read_items(how->queue, ids, count, views, err);
		for (size_t k = 0; k < count; k++) {
			if (status == STATUS_OK && views[k].item.id)
				status = how->visit(how->context, &views[k]);
			queue_view_release(&views[k]);
		}
		count = 0;
	}
	return status;
}

static enum status visit_place(
	const struct place_visit *how, store_revision *since, struct error *err)
{
	char last[QUEUE_KEY_MAX];
	struct store_answer answer = {0};
	struct store_range range = {.since = *since, .limit = PAGE};
	store_revision until = 0;
	enum status status = STATUS_OK;
	for (bool more = true; more && status == STATUS_OK;) {
		status = queue_list(how->queue, place_names[how->place], range, &answer, err);
		if (status != STATUS_OK)
			break;
		until = until ? until : answer.revision;
		status = visit_entries(how, &answer, until, err);
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

enum status queue_visit_running(
	struct queue *queue, queue_visitor *visit, void *context, struct error *err)
{
	store_revision since = 0;
	const struct place_visit how = {queue, PLACE_RUN, NULL, visit, context};
	return visit_place(&how, &since, err);
}

enum status queue_visit_done(struct queue *queue, store_revision *since,
	const enum queue_state *only, queue_visitor *visit, void *context, struct error *err)
{
	const struct place_visit how = {queue, PLACE_DONE, only, visit, context};
	return visit_place(&how, since, err);
}
