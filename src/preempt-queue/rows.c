/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "queue/output/joblog.h"
#include "queue/template.h"

struct rows_time rows_time(int64_t milliseconds)
{
	struct rows_time time;
	struct text age = {0};
	text_add_age(&age, milliseconds);
	if (milliseconds >= 0 && milliseconds < 60000)
		snprintf(time.text, sizeof(time.text), "%d.%ds", (int)(milliseconds / 1000),
			(int)(milliseconds % 1000 / 100));
	else
		snprintf(time.text, sizeof(time.text), "%s", text_string(&age));
	text_release(&age);
	return time;
}

void rows_ending(struct text *text, const struct queue_ending *ending)
{
	switch (ending->kind) {
	case ENDING_EXITED: text_addf(text, "exit %d", ending->code); break;
	case ENDING_SIGNALLED:
		text_addf(text, "signal %d (%s)", ending->number,
			sigabbrev_np(ending->number) ? sigabbrev_np(ending->number) : "?");
		break;
	case ENDING_TIMED_OUT: text_add(text, "timed out"); break;
	case ENDING_PREEMPTED: text_add(text, "preempted"); break;
	case ENDING_LOST: text_add(text, "its worker was lost"); break;
	case ENDING_CANCELLED: text_add(text, "cancelled"); break;
	case ENDING_CANNOT: text_add(text, "could not be started"); break;
	}
	if (*ending->text) {
		text_add(text, ": ");
		text_add_escaped(text, ending->text);
	}
}

/* How long it has run, or had run when it ended; negative: it waits, or was never started. */
static int64_t runtime(const struct queue_view *view, int64_t now)
{
	if (view->state == QUEUE_RUNNING)
		return now > view->lease.since ? now - view->lease.since : 0;
	return view->state >= QUEUE_SUCCEEDED && view->result.started
		       ? view->result.ended - view->result.started
		       : -1;
}

void rows_heading(struct text *text)
{
	text_addf(text, "%10s %-10s %5s %8s %-12s %-12s %s\n", "ID", "STATE", "TRIES", "TIME",
		"WORKER", "TAG", "COMMAND");
}

static const char *worker_of(const struct queue_view *view)
{
	/* A waiting command has neither a lease nor a result. */
	return *view->lease.worker ? view->lease.worker : view->result.worker;
}

char *rows_output(const struct queue_view *view)
{
	const struct queue_item *item = &view->item;
	const char *worker = worker_of(view);
	return item->output ? template_fill_name(item->output, item->directory, item->id,
				      *worker ? worker : "{worker}")
			    : NULL;
}

void rows_add(struct text *text, const struct queue_view *view, int64_t now)
{
	struct text worker = {0}, tag = {0};
	int64_t took = runtime(view, now);
	const char *name = worker_of(view);
	text_add_escaped(&worker, *name ? name : "-");
	text_add_escaped(&tag, view->item.tag ? view->item.tag : "-");
	text_addf(text, "%10" PRIu64 " %-10s %5" PRIu64 " %8s ", view->item.id,
		view->cancelling ? "ending" : queue_state_word(view->state), view->history.starts,
		took >= 0 ? rows_time(took).text : "-");
	text_addf(text, "%-12s %-12s ", text_string(&worker), text_string(&tag));
	joblog_command(text, &view->item);
	if (view->state == QUEUE_FAILED) {
		text_add(text, "  (");
		rows_ending(text, &view->result.ending);
		text_add(text, ")");
	}
	if (view->state == QUEUE_CANCELLED && view->item.after)
		text_addf(text, "  (%s)", view->result.ending.text);
	if (view->state == QUEUE_BLOCKED)
		text_addf(text, "  (after %s)", view->after);
	text_add(text, "\n");
	text_release(&worker);
	text_release(&tag);
}

static void put_result(struct json_object *object, const struct queue_result *result)
{
	queue_show(&queue_result_record, result, object);
	json_put_signed(object, "exit", queue_ending_code(&result->ending));
	if (result->started)
		return;
	json_object_object_del(object, "user_ms");
	json_object_object_del(object, "system_ms");
	json_object_object_del(object, "memory_bytes");
}

/* The ids in this text (after.h) as an array. */
static void put_ids(struct json_object *object, const char *name, const char *text)
{
	struct parse_numbers ids = {0};
	if (!text)
		return;
	(void)parse_numbers(text, QUEUE_ID_MAX, &ids, name, NULL);
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < ids.count; i++)
		json_object_array_add(array, json_object_new_int64((int64_t)ids.items[i]));
	json_object_object_add(object, name, array);
	parse_numbers_release(&ids);
}

void rows_add_json(struct text *text, const struct queue_view *view)
{
	struct json_object *object = json_object_new_object();
	json_put_unsigned(object, "id", view->item.id);
	json_put_text(object, "state", queue_state_word(view->state));
	queue_show(&queue_item_record, &view->item, object);
	put_ids(object, "after", view->item.after);
	put_ids(object, "blocked_by", view->after);
	queue_show(&queue_history_record, &view->history, object);
	if (view->state == QUEUE_RUNNING) {
		queue_show(&queue_lease_record, &view->lease, object);
		json_put_bool(object, "cancelling", view->cancelling);
	} else if (view->state >= QUEUE_SUCCEEDED) {
		put_result(object, &view->result);
	}
	/* File names need not be UTF-8, JSON must be. */
	json_add_line(object, text);
	text_add(text, "\n");
	json_object_put(object);
}

/* ---- Everything about one command ---- */

static void add_line(struct text *text, const char *name, const char *value)
{
	if (!value)
		return;
	text_addf(text, "%-12s ", name);
	text_add_escaped(text, value);
	text_add(text, "\n");
}

static void add_instant(struct text *text, const char *name, int64_t utc)
{
	char instant[32];
	if (!utc)
		return;
	clock_format_utc(utc, instant);
	add_line(text, name, instant);
}

static void add_words(struct text *text, const char *name, char *const *words)
{
	for (; words && *words; words++)
		add_line(text, name, *words);
}

static void describe_limits(struct text *text, const struct queue_item *item)
{
	if (item->priority)
		text_addf(text, "%-12s %d\n", "priority", item->priority);
	if (item->max_attempts)
		text_addf(text, "%-12s %" PRIu64 "\n", "max-attempts", item->max_attempts);
	if (item->timeout)
		add_line(text, "timeout", rows_time(item->timeout).text);
	if (item->halt)
		add_line(text, "halt", queue_halt_word(item->halt));
}

static void describe_result(
	struct text *text, const struct queue_item *item, const struct queue_result *result)
{
	struct text ending = {0};
	rows_ending(&ending, &result->ending);
	text_addf(text, "%-12s %s\n", "end", text_string(&ending));
	text_release(&ending);
	if (result->started) {
		add_line(text, "worker", result->worker);
		add_line(text, "host", result->host);
		add_instant(text, "started", result->started);
	}
	add_instant(text, "ended", result->ended);
	if (!result->started)
		return;
	text_addf(text, "%-12s %s, CPU %s, memory ", "took",
		rows_time(result->ended - result->started).text,
		rows_time(result->user + result->system).text);
	text_add_size(text, result->memory);
	text_addf(text, "\n%-12s ", "output");
	if (!item->output) {
		text_add(text, "stdout ");
		text_add_size(text, result->out);
		text_add(text, ", ");
	}
	text_add(text, "stderr ");
	text_add_size(text, result->err);
	text_add(text, "\n");
}

void rows_describe(struct text *text, const struct queue_view *view, int64_t now)
{
	const struct queue_item *item = &view->item;
	const struct queue_history *history = &view->history;
	text_addf(text, "%-12s %" PRIu64 "\n%-12s %s%s\n", "id", item->id, "state",
		queue_state_word(view->state),
		view->cancelling ? ", and its worker was told to end it" : "");
	text_addf(text, "%-12s ", item->shell ? "sh" : "command");
	joblog_command(text, item);
	text_add(text, "\n");
	add_line(text, "tag", item->tag);
	add_line(text, "after", item->after);
	add_line(text, "blocked by", view->after);
	describe_limits(text, item);
	add_line(text, "directory", item->directory);
	add_line(text, "stdin", item->input);
	char *output = rows_output(view);
	add_line(text, "stdout", output);
	free(output);
	add_words(text, "env", item->environment);
	add_words(text, "resource", item->resources);
	add_instant(text, "scheduled", item->scheduled);
	text_addf(text,
		"%-12s %" PRIu64 " starts, %" PRIu64 " attempts used up, %" PRIu64
		" times preempted, %" PRIu64 " workers lost\n",
		"history", history->starts, history->attempts, history->preempted, history->lost);
	if (view->state == QUEUE_RUNNING) {
		add_line(text, "worker", view->lease.worker);
		add_line(text, "host", view->lease.host);
		add_instant(text, "since", view->lease.since);
		add_line(text, "runs for", rows_time(runtime(view, now)).text);
	} else if (view->state >= QUEUE_SUCCEEDED) {
		describe_result(text, item, &view->result);
	}
}
