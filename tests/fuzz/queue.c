/* SPDX-License-Identifier: MIT */
/*
 * The records of a queue: an input is a store, a line "KEY VALUE" for each key, of queue "q". What
 * is read of it is shown, counted and judged. That records are written and read as the same is
 * shown by json_fields.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/moves.h"
#include "queue/rules.h"
#include "queue/template.h"
#include "queue/worker/resource.h"
#include "queue/workers/workers.h"
#include "support/fuzz.h"

/* ---- Each record by itself ---- */

static void check_ending(const struct queue_ending *ending)
{
	char text[64];
	int code = queue_ending_code(ending);
	FUZZ_HOLDS(code >= 0 && code <= 255);
	queue_ending_describe(ending, text);
}

union record {
	struct queue_item item;
	struct queue_history history;
	struct queue_lease lease;
	struct queue_result result;
	struct queue_failure failure;
	struct queue_tally tally;
	struct queue_worker worker;
};

static void check_record(
	const struct queue *queue, const struct queue_record *kind, const struct store_entry *entry)
{
	union record record;
	struct error err;
	if (queue_read(kind, entry, &record, NULL) != STATUS_OK)
		return;
	if (kind == &queue_item_record)
		FUZZ_HOLDS(record.item.argv && record.item.argv[0] && record.item.timeout >= 0);
	else if (kind == &queue_history_record)
		FUZZ_HOLDS(rules_pause(&record.history) >= 0);
	else if (kind == &queue_worker_record)
		(void)workers_beat_token(&record.worker);
	else if (kind == &queue_failure_record)
		queue_failure_say(queue, &record.failure, &err);
	if (kind == &queue_failure_record)
		check_ending(&record.failure.ending);
	if (kind == &queue_result_record)
		check_ending(&record.result.ending);
	json_release_record(kind->fields, &record);
}

/* Every value is tried as every record: the key decides only in the store. */
static void check_records(const struct queue *queue)
{
	static const struct queue_record *const kinds[] = {&queue_item_record,
		&queue_history_record, &queue_lease_record, &queue_result_record,
		&queue_failure_record, &queue_tally_record, &queue_worker_record};
	struct store_answer answer = {0};
	struct store_range range = {.prefix = ""};
	FUZZ_HOLDS(store_list(queue->store, &range, &answer, NULL) == STATUS_OK);
	for (size_t i = 0; i < answer.count; i++) {
		const struct store_entry *entry = &answer.entries[i];
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			check_record(queue, kinds[k], entry);
		(void)queue_cancel_cause(entry);
	}
	store_answer_release(&answer);
}

/* ---- The queue as a whole ---- */

static enum status see(void *context, const struct queue_view *view)
{
	uint64_t *last = context;
	FUZZ_HOLDS(view->item.id && view->item.argv && view->item.argv[0]);
	if (last)
		FUZZ_HOLDS(view->item.id > *last);
	if (last)
		*last = view->item.id;
	return STATUS_OK;
}

static void check_queue(struct queue *queue)
{
	struct queue_count count = {0};
	struct queue_failure failure;
	struct queue_view view;
	struct queue_awaited outcome;
	const uint64_t ids[] = {1, 2, 3};
	struct queue_selection some = {.ids = ids, .count = 3}, all = {0}, tagged = {.tag = "t"};
	uint64_t last = 0;
	store_revision since = 0;
	(void)queue_count(queue, &count, NULL);
	(void)queue_visit(queue, 0, see, &last, NULL);
	(void)queue_visit_running(queue, see, NULL, NULL);
	(void)queue_visit_done(queue, &since, NULL, see, NULL, NULL);
	(void)queue_failure_pending(queue, &failure, NULL);
	if (queue_inspect(queue, 1, &view, NULL) == STATUS_OK)
		queue_view_release(&view);
	const struct queue_selection *sets[] = {&some, &all, &tagged};
	for (size_t i = 0; i < 3; i++)
		if (queue_awaited(queue, sets[i], &count, &outcome, NULL) == STATUS_OK)
			(void)queue_awaited_answer(queue, sets[i], &outcome, NULL);
}

/* (What failed would be waited for until all that runs is over.) */
static void check_schedule(struct queue *queue)
{
	char *argv[] = {(char *)"a", NULL};
	struct queue_item items[] = {{.argv = argv}, {.argv = argv}, {.argv = argv}};
	struct queue_schedule how = {.deadline = CLOCK_NEVER, .once = "o", .wake = -1};
	struct queue_failure failure;
	if (queue_failure_pending(queue, &failure, NULL) == STATUS_OK)
		return;
	if (queue_schedule(queue, items, 3, 1, &how, NULL) == STATUS_OK)
		for (size_t i = 0; i < 3; i++)
			FUZZ_HOLDS(items[i].id >= 1 && items[i].id <= QUEUE_ID_MAX);
	for (size_t i = 0; i < 3; i++)
		free(items[i].batch);
}

static void check_workers(struct queue *queue)
{
	struct judge judge = {0};
	size_t registered, alive;
	for (int i = 0; i < 2; i++)
		if (judge_count_alive(&judge, queue, &registered, &alive, NULL) == STATUS_OK)
			FUZZ_HOLDS(alive <= registered);
	judge_release(&judge);
}

static void check_resource(struct queue *queue)
{
	char **argv, *directory;
	if (resource_find(queue, "x", &argv, &directory, NULL) != STATUS_OK)
		return;
	FUZZ_HOLDS(argv[0] && *directory == '/');
	template_free(argv);
	free(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct queue queue;
	struct store *store = fuzz_store(data, size);
	FUZZ_HOLDS(queue_open(&queue, store, "q", "/nowhere", NULL) == STATUS_OK);
	check_records(&queue);
	check_queue(&queue);
	check_schedule(&queue);
	check_workers(&queue);
	check_resource(&queue);
	queue_release(&queue);
	store_close(store);
	return 0;
}
