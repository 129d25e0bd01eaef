/* SPDX-License-Identifier: MIT */
/*
 * The records of a queue: an input is a store, a line "KEY VALUE" for each key, of queue "q". What
 * is read of it is shown, counted and judged, and each record is written again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/joblog.h"
#include "queue/moves.h"
#include "queue/resource.h"
#include "queue/rules.h"
#include "queue/template.h"
#include "queue/workers.h"
#include "support/fuzz.h"

/* ---- Each record by itself: what is written is read as the same, and written as the same ---- */

static char *write_line(struct json_object *object)
{
	const char *line = json_line(object);
	char *copy = fuzz_text(line, strlen(line));
	json_object_put(object);
	return copy;
}

static void compare_lines(char *one, char *other)
{
	FUZZ_HOLDS(strcmp(one, other) == 0);
	free(one);
	free(other);
}

static void check_item(const struct store_entry *entry)
{
	struct queue_item item, again;
	if (queue_item_read(entry->key, entry->value, entry->length, &item, NULL) != STATUS_OK)
		return;
	FUZZ_HOLDS(item.argv && item.argv[0]);
	FUZZ_HOLDS(item.timeout >= 0);
	char *line = write_line(queue_item_write(&item));
	FUZZ_HOLDS(queue_item_read(entry->key, line, strlen(line), &again, NULL) == STATUS_OK);
	compare_lines(line, write_line(queue_item_write(&again)));
	queue_item_release(&item);
	queue_item_release(&again);
}

static void check_history(const struct store_entry *entry)
{
	struct queue_history history, again;
	if (queue_history_read(entry->key, entry->value, entry->length, &history, NULL) !=
		STATUS_OK)
		return;
	FUZZ_HOLDS(rules_pause(&history) >= 0);
	char *line = write_line(queue_history_write(&history));
	FUZZ_HOLDS(queue_history_read("k", line, strlen(line), &again, NULL) == STATUS_OK);
	compare_lines(line, write_line(queue_history_write(&again)));
}

static void check_lease(const struct store_entry *entry)
{
	struct queue_lease lease, again;
	if (queue_lease_read(entry->key, entry->value, entry->length, &lease, NULL) != STATUS_OK)
		return;
	char *line = write_line(queue_lease_write(&lease));
	FUZZ_HOLDS(queue_lease_read("k", line, strlen(line), &again, NULL) == STATUS_OK);
	compare_lines(line, write_line(queue_lease_write(&again)));
}

static void check_ending(const struct queue_ending *ending)
{
	char text[64];
	int code = queue_ending_code(ending);
	FUZZ_HOLDS(code >= 0 && code <= 255);
	queue_ending_describe(ending, text);
}

static void check_result(const struct store_entry *entry)
{
	struct queue_result result, again;
	char *words[] = {(char *)"a", (char *)"b c\n", NULL};
	struct queue_item item = {.id = 1, .argv = words};
	struct text row = {0};
	if (queue_result_read(entry->key, entry->value, entry->length, &result, NULL) != STATUS_OK)
		return;
	check_ending(&result.ending);
	joblog_row(&row, &item, &result);
	/* One line, of nine columns. */
	const char *text = text_string(&row);
	FUZZ_HOLDS(strchr(text, '\n') == text + strlen(text) - 1);
	size_t tabs = 0;
	for (const char *at = text; *at; at++)
		tabs += *at == '\t';
	FUZZ_HOLDS(tabs == 8);
	text_release(&row);
	char *line = write_line(queue_result_write(&result));
	FUZZ_HOLDS(queue_result_read("k", line, strlen(line), &again, NULL) == STATUS_OK);
	compare_lines(line, write_line(queue_result_write(&again)));
}

static void check_failure(const struct queue *queue, const struct store_entry *entry)
{
	struct queue_failure failure, again;
	struct error err;
	if (queue_failure_read(entry->key, entry->value, entry->length, &failure, NULL) !=
		STATUS_OK)
		return;
	check_ending(&failure.ending);
	queue_failure_say(queue, &failure, &err);
	char *line = write_line(queue_failure_write(&failure));
	FUZZ_HOLDS(queue_failure_read("k", line, strlen(line), &again, NULL) == STATUS_OK);
	compare_lines(line, write_line(queue_failure_write(&again)));
}

static void check_tally(const struct store_entry *entry)
{
	struct queue_tally tally, again;
	if (queue_tally_read(entry->key, entry->value, entry->length, &tally, NULL) != STATUS_OK)
		return;
	char *line = write_line(queue_tally_write(&tally));
	FUZZ_HOLDS(queue_tally_read("k", line, strlen(line), &again, NULL) == STATUS_OK);
	compare_lines(line, write_line(queue_tally_write(&again)));
}

static void check_worker(const struct store_entry *entry)
{
	struct queue_worker worker, again;
	if (workers_read(entry, &worker, NULL) != STATUS_OK)
		return;
	(void)workers_beat_token(&worker);
	char *line = write_line(workers_write(&worker));
	struct store_entry copy = {.key = entry->key, .value = line, .length = strlen(line)};
	FUZZ_HOLDS(workers_read(&copy, &again, NULL) == STATUS_OK);
	compare_lines(line, write_line(workers_write(&again)));
}

/* Every value is tried as every record: the key decides only in the store. */
static void check_records(const struct queue *queue)
{
	struct store_answer answer = {0};
	struct store_range range = {.prefix = ""};
	FUZZ_HOLDS(store_list(queue->store, &range, &answer, NULL) == STATUS_OK);
	for (size_t i = 0; i < answer.count; i++) {
		const struct store_entry *entry = &answer.entries[i];
		check_item(entry);
		check_history(entry);
		check_lease(entry);
		check_result(entry);
		check_failure(queue, entry);
		check_tally(entry);
		check_worker(entry);
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

/* Nothing can be raised in a store that is read only. */
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
	char **argv, **filled, *directory;
	if (resource_find(queue, "x", &argv, &directory, NULL) != STATUS_OK)
		return;
	FUZZ_HOLDS(argv[0] && *directory == '/');
	if (template_fill_worker(argv, "w", 3, &filled, NULL) == STATUS_OK)
		template_free(filled);
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
