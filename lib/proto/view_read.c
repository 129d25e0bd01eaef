/* SPDX-License-Identifier: MIT */
/* Fill a view: from the store, with all records or only with news, or from our own writes. */
#include "proto/view.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "proto/agreement/facts.h"
#include "proto/agreement/tally.h"
#include "store/builder.h"

#define NEWS_AGE   2000 /* ms: the least view_news_age */
#define LOOKS_MOST 2	/* requests in a millisecond, of all tasks together */

void view_init(struct view *view, const struct attempt *attempt)
{
	*view = (struct view){.attempt = *attempt};
	view->agreement = (struct agreement_view){.tasks = attempt->tasks,
		.deadline = CLOCK_NEVER,
		.deadline_latest = CLOCK_NEVER,
		.deadline_told = CLOCK_NEVER};
	view->agreement.peers = xcalloc(attempt->tasks, sizeof(*view->agreement.peers));
	view->agreement.tally = xcalloc(1, sizeof(*view->agreement.tally));
	view->members = xcalloc(attempt->tasks, sizeof(*view->members));
}

void view_release(struct view *view)
{
	free(view->agreement.peers);
	free(view->agreement.tally);
	free(view->members);
	*view = (struct view){0};
}

const char *const view_records[] = {"TASK/", "STEP/", "SAVED/", "LEFT/", "RECEIVED_SIGNAL_", NULL};

void view_feed_news(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading)
{
	for (size_t i = 0; i < answer->count; i++)
		view_feed_entry(view, &answer->entries[i], reading);
	if (answer->revision > view->seen)
		view->seen = answer->revision;
	if (reading->began > view->unchanged)
		view->unchanged = reading->began;
}

/* After all was read, counted keys that the view does not show are no records: note how many. */
static void note_surplus(struct view *view, enum view_record kind)
{
	const struct view_record_count *counted = &view->counted[kind];
	if (counted->revision <= view->revision && counted->keys > view->shown[kind])
		view->surplus[kind] = counted->keys - view->shown[kind];
}

void view_feed(
	struct view *view, const struct store_answer *answer, const struct view_reading *reading)
{
	view_feed_news(view, answer, reading);
	if (answer->revision > view->revision)
		view->revision = answer->revision;
	for (enum view_record kind = 0; kind < RECORD_KINDS; kind++)
		note_surplus(view, kind);
}

enum view_record view_awaited_kind(const struct view *view)
{
	if (view->agreement.decided)
		return RECORD_SAVED;
	return view->agreement.round ? RECORD_STEP : RECORD_TASK;
}

static bool is_of_round(enum view_record kind)
{
	return kind == RECORD_STEP || kind == RECORD_SAVED;
}

static void request_count(const struct attempt *attempt, struct view_count_request *request,
	size_t place, enum view_record kind)
{
	static const char *const name[] = {[RECORD_TASK] = "TASK",
		[RECORD_STEP] = "STEP",
		[RECORD_SAVED] = "SAVED",
		[RECORD_LEFT] = "LEFT"};
	request->of[place] = kind;
	if (is_of_round(kind))
		keys_of(attempt, request->prefix[place], "%s/%llu/", name[kind],
			(unsigned long long)request->round);
	else
		keys_of(attempt, request->prefix[place], "%s/", name[kind]);
}

/* Whether awaited records may still be written. */
static bool any_outstanding(const struct view *view)
{
	const struct agreement_view *a = &view->agreement;
	return a->round ? !a->closed && !(is_final(a) && a->all_saved == a->round)
			: !view->all_joined;
}

void view_request_counts(const struct view *view, struct view_count_request *request)
{
	*request = (struct view_count_request){.round = view->agreement.round};
	request_count(&view->attempt, request, 0, RECORD_LEFT);
	if (any_outstanding(view))
		request_count(&view->attempt, request, 1, view_awaited_kind(view));
}

void view_count_prefixes(const struct view_count_request *request, const char *count[STORE_COUNTS])
{
	for (size_t i = 0; i < STORE_COUNTS; i++)
		count[i] = *request->prefix[i] ? request->prefix[i] : NULL;
}

void view_feed_counts(struct view *view, const struct view_count_request *request,
	const uint64_t counted[STORE_COUNTS], store_revision revision)
{
	for (size_t i = 0; i < STORE_COUNTS; i++) {
		struct view_record_count *known = &view->counted[request->of[i]];
		bool other_round =
			is_of_round(request->of[i]) && request->round != view->agreement.round;
		if (*request->prefix[i] && counted[i] && !other_round &&
			revision >= known->revision)
			*known = (struct view_record_count){counted[i], revision};
	}
}

void view_feed_written(struct view *view, const struct transaction *written,
	store_revision revision, const struct view_reading *reading)
{
	if (revision < view->revision)
		return; /* it was read in the meantime */
	for (size_t i = 0; i < written->op_count; i++) {
		const struct store_op *op = &written->ops[i];
		struct store_entry entry = {
			.key = (char *)op->key, /* view_feed_entry only reads these */
			.value = (char *)op->value,
			.length = op->length,
			.revision = revision};
		if (op->kind == STORE_PUT)
			view_feed_entry(view, &entry, reading);
	}
	/* If this wrote DEADLINE, any later one is written after we began to write. */
	if (view->deadline_revision == revision)
		view->deadline_unchanged = reading->began;
	/* If this revision directly follows those shown, there was no other change in between. */
	if (view->revision == view->seen && revision == view->seen + 1)
		view->revision = revision;
	if (revision == view->seen + 1)
		view->seen = revision;
}

uint64_t view_unseen(const struct view *view, enum view_record kind)
{
	const struct view_record_count *counted = &view->counted[kind];
	uint64_t shown = view->shown[kind] + view->surplus[kind];
	if (counted->revision <= view->revision)
		return 0;
	return counted->keys > shown ? counted->keys - shown : 0;
}

static enum status refresh(struct view *view, struct store *store, struct store_range *range,
	struct store_answer *answer, struct error *err)
{
	char group[KEYS_GROUP];
	struct view_reading reading = {
		.unchanged = store_unchanged(store, range->since), .began = clock_now()};
	range->prefix = view->attempt.prefix;
	keys_group(&view->attempt, group);
	uint32_t heard = store_news(store, group);
	enum status status = store_list(store, range, answer, err);
	reading.ended = clock_now();
	if (status != STATUS_OK)
		return status;
	if (range->skip)
		view_feed_news(view, answer, &reading);
	else
		view_feed(view, answer, &reading);
	view->heard = heard;
	return STATUS_OK;
}

enum status view_refresh(struct view *view, struct store *store, struct error *err)
{
	struct store_answer answer = {0};
	struct store_range range = {.since = view->revision};
	enum status status = refresh(view, store, &range, &answer, err);
	store_answer_release(&answer);
	return status;
}

enum status view_wait(
	const struct view *view, struct store *store, int64_t deadline, int wake, struct error *err)
{
	store_revision since = view->revision;
	return store_wait(store, view->attempt.prefix, &since, deadline, wake, err);
}

enum status view_refresh_news(struct view *view, struct store *store, struct error *err)
{
	struct store_answer answer = {0};
	struct store_range range = {.since = view->seen, .skip = view_records};
	struct view_count_request counts;
	view_request_counts(view, &counts);
	view_count_prefixes(&counts, range.count);
	enum status status = refresh(view, store, &range, &answer, err);
	if (status == STATUS_OK)
		view_feed_counts(view, &counts, answer.counted, answer.revision);
	store_answer_release(&answer);
	return status;
}

enum status view_read_task(struct view *view, struct store *store, uint64_t task, struct error *err)
{
	char joined[KEYS_MAX], left[KEYS_MAX];
	struct store_answer answer = {0};
	const struct view_reading reading = {0}; /* only DEADLINE depends on when it was read */
	const struct store_op ops[] = {
		{.kind = STORE_GET, .key = joined}, {.kind = STORE_GET, .key = left}};
	const struct store_request request = {.then = ops, .then_count = 2};
	keys_of(&view->attempt, joined, "TASK/%llu", (unsigned long long)task);
	keys_of(&view->attempt, left, "LEFT/%llu", (unsigned long long)task);
	enum status status = store_txn(store, &request, &answer, err);
	for (size_t i = 0; i < answer.count && status == STATUS_OK; i++)
		view_feed_entry(view, &answer.entries[i], &reading);
	store_answer_release(&answer);
	return status;
}

int64_t view_news_age(uint64_t tasks)
{
	return clock_later(NEWS_AGE, (int64_t)(tasks / LOOKS_MOST));
}

enum status view_wait_for_news(
	struct view *view, struct store *store, int64_t deadline, int wake, struct error *err)
{
	char group[KEYS_GROUP];
	keys_group(&view->attempt, group);
	struct store_awaited awaited = {.group = group,
		.heard = view->heard,
		.prefix = view->attempt.prefix,
		.since = view->seen,
		.every = VIEW_EVERY,
		.age = view_news_age(view->attempt.tasks)};
	return store_await_news(store, &awaited, deadline, wake, err);
}
