/* SPDX-License-Identifier: MIT */
/* show, fetch, workers: print what is known of commands, their results and the workers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "client.h"
#include "queue/output/follow.h"
#include "queue/workers/workers.h"
#include "rows.h"

#define FAILURE_EVERY 5000 /* ms between two looks for a pending failure, while fetch waits */

static bool fetch_wait, fetch_follow, fetch_stderr, exit_status;

const struct args_option fetch_options[] = {
	{"wait", NULL, "wait until it is over", ARGS_FLAG, .target = &fetch_wait},
	{"follow", NULL, "print it as it grows, until the command is over; on the worker's machine",
		ARGS_FLAG, .target = &fetch_follow, .letter = 'f'},
	{"stderr", NULL, "its stderr, not its stdout", ARGS_FLAG, .target = &fetch_stderr},
	{"exit-status", NULL, "exit with the command's own code", ARGS_FLAG,
		.target = &exit_status},
	{0},
};

/* ---- show, fetch ---- */

static enum status show_one(struct queue *queue, uint64_t id, struct error *err)
{
	struct queue_view view;
	struct text text = {0};
	enum status status = queue_inspect(queue, id, &view, err);
	if (status != STATUS_OK)
		return status;
	if (client_options.json)
		rows_add_json(&text, &view);
	else
		rows_describe(&text, &view, clock_utc());
	fputs(text_string(&text), stdout);
	text_release(&text);
	queue_view_release(&view);
	return STATUS_OK;
}

static enum status show(struct queue *queue, void *context, struct error *err)
{
	const struct parse_numbers *ids = context;
	enum status status = STATUS_OK;
	for (size_t i = 0; i < ids->count && status == STATUS_OK; i++) {
		if (i && !client_options.json)
			puts("");
		status = show_one(queue, ids->items[i], err);
	}
	return status;
}

int run_show(const struct args_rest *rest)
{
	struct parse_numbers ids = {0};
	struct error err;
	int code = client_parse_ids(rest, &ids, &err) == STATUS_OK ? client_run(0, show, &ids)
								   : message_fail(&err);
	parse_numbers_release(&ids);
	return code;
}

struct fetcher {
	struct parse_numbers ids;
	int wake;
	int64_t deadline;
	int code; /* of the first printed command that did not succeed */
};

/* While a failure is pending, no worker takes a command: report it, so that the wait can end. */
static enum status report_failure(struct queue *queue, struct error *err)
{
	enum status status = client_report_failure(queue, clock_now(), -1, err);
	return status == STATUS_NO || status == STATUS_TIMEOUT ? STATUS_OK : status;
}

/*
 * STATUS_OK: the command may be over, or a failure is pending. STATUS_NO: a signal has come.
 * STATUS_TIMEOUT: --timeout has passed.
 */
static enum status wait_for_end(struct queue *queue, const struct fetcher *fetcher,
	const char *prefix, store_revision *since, struct error *err)
{
	struct queue_failure failure;
	for (;;) {
		int64_t next = clock_after(FAILURE_EVERY);
		enum status status = store_wait(queue->store, prefix, since,
			clock_earlier(next, fetcher->deadline), fetcher->wake, err);
		if (status != STATUS_TIMEOUT || clock_now() >= fetcher->deadline)
			return status;
		status = queue_failure_pending(queue, &failure, err);
		if (status != STATUS_NO)
			return status;
	}
}

/* STATUS_OK: the command is over. STATUS_NO: it is not, or a signal has come. */
static enum status wait_until_over(struct queue *queue, const struct fetcher *fetcher,
	struct queue_view *view, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	uint64_t id = view->item.id;
	/* Wait for changes after the revision that was read. */
	store_revision since = view->revision;
	queue_key_at(queue, prefix, "done", id);
	while (view->state < QUEUE_SUCCEEDED) {
		const char *doing = view->state == QUEUE_RUNNING   ? "runs"
				    : view->state == QUEUE_BLOCKED ? "is blocked"
								   : "waits";
		if (!fetch_wait)
			return error_set(err, STATUS_NO, "command %" PRIu64 " is not over: it %s",
				id, doing);
		enum status status =
			view->state == QUEUE_RUNNING ? STATUS_OK : report_failure(queue, err);
		if (status == STATUS_OK)
			status = wait_for_end(queue, fetcher, prefix, &since, err);
		if (status == STATUS_TIMEOUT)
			return error_set(err, status,
				"command %" PRIu64 " was not over in time: it %s", id, doing);
		if (status != STATUS_OK)
			return status;
		queue_view_release(view);
		status = queue_inspect(queue, id, view, err);
		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

/* Print the output of one command. */
static enum status fetch_one(
	struct queue *queue, struct fetcher *fetcher, uint64_t id, struct error *err)
{
	struct queue_view view = {0};
	char ending[64];
	const struct follow how = {fetch_stderr ? OUTPUT_ERR : OUTPUT_OUT, STDOUT_FILENO,
		fetcher->deadline, fetcher->wake, report_failure};
	enum status status = fetch_follow ? output_follow(queue, id, &how, &view, err)
					  : queue_inspect(queue, id, &view, err);
	if (status == STATUS_OK && !fetch_follow)
		status = wait_until_over(queue, fetcher, &view, err);
	if (status == STATUS_OK && view.state == QUEUE_CANCELLED)
		status = error_set(err, STATUS_NO, "command %" PRIu64 " was cancelled%s%s", id,
			*view.result.ending.text ? ": " : "", view.result.ending.text);
	if (status == STATUS_OK && view.item.output && !fetch_stderr) {
		char *name = rows_output(&view);
		message_info("command %" PRIu64 ": its stdout is in %s", id, name);
		free(name);
	}
	if (status == STATUS_OK && !fetch_follow)
		status = output_print(queue, id, &view.result, how.stream, how.to, err);
	if (status == STATUS_OK && view.state == QUEUE_FAILED) {
		if (!fetcher->code)
			fetcher->code = queue_ending_code(&view.result.ending);
		queue_ending_describe(&view.result.ending, ending);
		message_info("command %" PRIu64 " has failed: it %s", id, ending);
	}
	queue_view_release(&view);
	return status;
}

static enum status fetch(struct queue *queue, void *context, struct error *err)
{
	struct fetcher *fetcher = context;
	enum status status = STATUS_OK;
	for (size_t i = 0; i < fetcher->ids.count && status == STATUS_OK; i++)
		status = fetch_one(queue, fetcher, fetcher->ids.items[i], err);
	return status;
}

int run_fetch(const struct args_rest *rest)
{
	struct error err;
	struct fetcher fetcher = {.wake = fetch_wait || fetch_follow ? client_catch() : -1,
		.deadline = client_deadline()};
	/* Parse all ids before printing anything. */
	enum status status = client_parse_ids(rest, &fetcher.ids, &err);
	int code = status == STATUS_OK ? client_run(0, fetch, &fetcher) : message_fail(&err);
	parse_numbers_release(&fetcher.ids);
	return code == STATUS_OK && exit_status ? fetcher.code : code;
}

/* ---- workers ---- */

struct load {
	const struct queue_worker *workers;
	size_t count;
	uint64_t *running; /* by each worker */
};

static enum status count_load(void *context, const struct queue_view *view)
{
	struct load *load = context;
	for (size_t i = 0; i < load->count; i++)
		load->running[i] += !strcmp(load->workers[i].token, view->lease.worker_token);
	return STATUS_OK;
}

static void print_worker(const struct queue_worker *worker, uint64_t running)
{
	char started[32];
	struct text text = {0};
	clock_format_utc(worker->started, started);
	if (client_options.json) {
		struct json_object *object = json_object_new_object();
		json_put_text(object, "worker", worker->name);
		json_put_text(object, "token", worker->token);
		json_put_unsigned(object, "index", worker->index);
		json_put_unsigned(object, "slots", worker->slots);
		json_put_unsigned(object, "running", running);
		json_put_text(object, "host", worker->process.host);
		json_put_signed(object, "pid", worker->process.pid);
		json_put_signed(object, "started_utc", worker->started);
		json_add_line(object, &text);
		json_object_put(object);
	} else {
		struct text name = {0}, host = {0};
		text_add_escaped(&name, worker->name);
		text_add_escaped(&host, worker->process.host);
		text_addf(&text, "%-24s %5" PRIu64 " %5" PRIu64 " %7" PRIu64 " %-16s %8d %s",
			text_string(&name), worker->index, worker->slots, running,
			text_string(&host), (int)worker->process.pid, started);
		text_release(&name);
		text_release(&host);
	}
	puts(text_string(&text));
	text_release(&text);
}

static enum status show_workers(struct queue *queue, void *context, struct error *err)
{
	struct queue_worker *workers = NULL;
	struct load load = {0};
	(void)context;
	enum status status = workers_list(queue, &workers, &load.count, NULL, err);
	load.workers = workers;
	load.running = xcalloc(load.count + 1, sizeof(*load.running));
	if (status == STATUS_OK)
		status = queue_visit_running(queue, count_load, &load, err);
	if (status == STATUS_OK && !client_options.json)
		printf("%-24s %5s %5s %7s %-16s %8s %s\n", "WORKER", "INDEX", "SLOTS", "RUNNING",
			"HOST", "PID", "STARTED");
	for (size_t i = 0; i < load.count && status == STATUS_OK; i++)
		print_worker(&workers[i], load.running[i]);
	free(load.running);
	free(workers);
	return status;
}

int run_workers(const struct args_rest *rest)
{
	(void)rest;
	return client_run(0, show_workers, NULL);
}
