/* SPDX-License-Identifier: MIT */
/* A view from the store: whole, only what changed, or what this process has written itself. */
#include "proto/view.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/builder.h"

void view_init(struct view *view, const struct attempt *attempt)
{
	*view = (struct view){.attempt = *attempt};
	view->agreement = (struct agreement_view){.tasks = attempt->tasks,
		.deadline = CLOCK_NEVER,
		.deadline_latest = CLOCK_NEVER,
		.deadline_told = CLOCK_NEVER};
	view->agreement.peers = xcalloc(attempt->tasks, sizeof(*view->agreement.peers));
	view->members = xcalloc(attempt->tasks, sizeof(*view->members));
}

void view_release(struct view *view)
{
	free(view->agreement.peers);
	free(view->members);
	*view = (struct view){0};
}

const char *const view_records[] = {"TASK/", "STEP/", "SAVED/", "LEFT/", "RECEIVED_SIGNAL_", NULL};

void view_feed_news(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading)
{
	for (size_t i = 0; i < answer->count; i++)
		view_feed_entry(view, &answer->entries[i], reading);
	if (answer->revision > view->store)
		view->store = answer->revision;
	if (reading->began > view->unchanged)
		view->unchanged = reading->began;
}

void view_feed(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading)
{
	view_feed_news(view, answer, reading);
	if (answer->revision > view->revision)
		view->revision = answer->revision;
	view->written = view->written_all = 0;
}

void view_feed_written(struct view *view, const struct transaction *written,
	store_revision revision, const struct view_reading *reading)
{
	store_revision all_saved_at = view->all_saved_at;
	if (revision <= view->revision)
		return; /* it was read since */
	for (size_t i = 0; i < written->op_count; i++) {
		const struct store_op *op = &written->ops[i];
		struct store_entry entry = {.key = (char *)op->key,
			.value = (char *)op->value,
			.length = op->length,
			.revision = revision};
		if (op->kind == STORE_PUT)
			view_feed_entry(view, &entry, reading);
	}
	/* A deadline that replaces ours was written after we began to write ours. */
	if (view->deadline_revision == revision)
		view->deadline_unchanged = reading->began;
	view->all_saved_at = all_saved_at;
	if (revision > view->store)
		view->store = revision;
	if (revision > view->stage && revision > view->written_at)
		view->written++;
	view->written_all += revision > view->written_at;
	view->written_at = revision;
}

uint64_t view_unseen(const struct view *view)
{
	store_revision from = view->stage > view->revision ? view->stage : view->revision;
	store_revision changes = view->store - from - (store_revision)view->written;
	return changes > 0 ? (uint64_t)changes : 0;
}

bool view_is_whole(const struct view *view)
{
	return view_unseen(view) == 0 && view->stage <= view->revision;
}

enum status view_refresh(struct view *view, struct store *store, struct error *err)
{
	char group[KEYS_GROUP];
	struct store_answer answer = {0};
	struct store_range range = {.prefix = view->attempt.prefix, .since = view->revision};
	struct view_reading reading = {
		.unchanged = store_unchanged(store, view->revision), .began = clock_now()};
	keys_group(&view->attempt, group);
	uint32_t heard = store_news(store, group);
	enum status status = store_list(store, &range, &answer, err);
	reading.ended = clock_now();
	if (status == STATUS_OK) {
		view_feed(view, &answer, &reading);
		view->heard = heard;
	}
	store_answer_release(&answer);
	return status;
}

enum status view_await(
	struct view *view, struct store *store, int64_t deadline, int wake, struct error *err)
{
	char group[KEYS_GROUP];
	keys_group(&view->attempt, group);
	struct store_awaited awaited = {.group = group,
		.heard = view->heard,
		.prefix = view->attempt.prefix,
		.since = view->revision,
		.every = VIEW_EVERY};
	return store_await_news(store, &awaited, deadline, wake, err);
}
