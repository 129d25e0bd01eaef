/* SPDX-License-Identifier: MIT */
/* list, show, fetch, workers: print commands, their results and the workers. */
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
#include "queue/output/joblog.h"
#include "queue/workers/workers.h"
#include "rows.h"

static const char *state_words, *tag;
static uint64_t most;
static bool follow, joblog, fetch_wait, fetch_follow, fetch_stderr, exit_status;

const struct args_option list_options[] = {
	{"state", "S", "any (default), waiting, running, blocked, succeeded, failed or cancelled",
		ARGS_TEXT, .target = &state_words},
	{"tag", "T", "only commands with this tag", ARGS_TEXT, .target = &tag},
	{"limit", "N", "print at most N", ARGS_UNSIGNED, .target = &most, .min = 1,
		.max = QUEUE_ID_MAX},
	{"follow", NULL, "then print each command that ends", ARGS_FLAG, .target = &follow,
		.letter = 'f'},
	{"joblog", NULL, "commands that have run, in the columns of GNU parallel", ARGS_FLAG,
		.target = &joblog},
	{0},
};
const struct args_option fetch_options[] = {
	{"wait", NULL, "wait until it is over", ARGS_FLAG, .target = &fetch_wait},
	{"follow", NULL, "print it as it grows, until the command is over; on the worker's machine",
		ARGS_FLAG, .target = &fetch_follow, .letter = 'f'},
	{"stderr", NULL, "its stderr, not its stdout", ARGS_FLAG, .target = &fetch_stderr},
	{"exit-status", NULL, "exit with the command's own code", ARGS_FLAG,
		.target = &exit_status},
	{0},
};

/* ---- list ---- */

struct lister {
	bool any, states[QUEUE_CANCELLED + 1]; /* which states to print */
	uint64_t rows;
	int wake;
	struct error *err;
};

static bool is_full(const struct lister *lister)
{
	return most && lister->rows >= most;
}

static enum status print_row(void *context, const struct queue_view *view)
{
	struct lister *lister = context;
	struct text row = {0};
	bool over = view->state >= QUEUE_SUCCEEDED;
	if ((!lister->any && !lister->states[view->state]) ||
		(tag && (!view->item.tag || strcmp(view->item.tag, tag) != 0)) ||
		(joblog && (!over || !view->result.started)))
		return STATUS_OK;
	if (joblog)
		joblog_row(&row, &view->item, &view->result);
	else if (client_options.json)
		rows_add_json(&row, view);
	else
		rows_add(&row, view, clock_utc());
	fputs(text_string(&row), stdout);
	text_release(&row);
	if (++lister->rows % 256 == 0 && client_stdout_lost())
		return error_set(lister->err, STATUS_TEMPORARY, "cannot write to stdout");
	return is_full(lister) || client_interrupted() ? STATUS_NO : STATUS_OK;
}

/* Print each command that ends from now on. STATUS_TIMEOUT: --timeout has passed. */
static enum status follow_ends(struct queue *queue, struct lister *lister, store_revision since)
{
	char prefix[QUEUE_KEY_MAX];
	int64_t deadline = client_deadline();
	struct error *err = lister->err;
	enum status status = STATUS_OK;
	queue_key(queue, prefix, "done/");
	while (status == STATUS_OK && !client_interrupted()) {
		store_revision changed = since;
		if (client_stdout_lost())
			return error_set(err, STATUS_TEMPORARY, "cannot write to stdout");
		status = store_wait(queue->store, prefix, &changed, deadline, lister->wake, err);
		if (status == STATUS_TIMEOUT)
			return error_set(
				err, status, "queue %s: --timeout has passed", queue->name);
		if (status == STATUS_OK)
			status = queue_visit_done(queue, &since, NULL, print_row, lister, err);
	}
	return status;
}

static enum status list(struct queue *queue, void *context, struct error *err)
{
	struct lister *lister = context;
	struct queue_count count = {0};
	struct text heading = {0};
	lister->err = err;
	enum status status = queue_count(queue, &count, err);
	if (status != STATUS_OK)
		return status;
	if (joblog)
		text_add(&heading, JOBLOG_HEADING);
	else if (!client_options.json)
		rows_heading(&heading);
	fputs(text_string(&heading), stdout);
	text_release(&heading);
	status = queue_visit(queue, 0, print_row, lister, err);
	if (status == STATUS_OK && follow)
		status = follow_ends(queue, lister, count.revision);
	return status == STATUS_NO && is_full(lister) ? STATUS_OK : status;
}

/* Parse names of states, separated by commas. */
static enum status parse_states(struct lister *lister, struct error *err)
{
	char *copy = xstrdup(state_words), *rest = copy;
	enum status status = STATUS_OK;
	for (char *word; status == STATUS_OK && (word = strsep(&rest, ","));) {
		enum queue_state state;
		if (!strcmp(word, "any"))
			lister->any = true;
		else if (queue_state_parse(word, &state))
			lister->states[state] = true;
		else
			status = error_set(err, STATUS_USAGE,
				"--state: \"%s\" is not waiting, running, blocked, succeeded, failed or "
				"cancelled; see preempt-queue list --help",
				word);
	}
	free(copy);
	return status;
}

int run_list(const struct args_rest *rest)
{
	struct error err;
	struct lister lister = {.wake = follow ? client_catch() : -1, .any = !state_words};
	(void)rest;
	if (state_words && parse_states(&lister, &err) != STATUS_OK)
		return message_fail(&err);
	if (joblog && client_options.json)
		return client_refuse("--joblog and --json exclude each other");
	return client_run(0, list, &lister);
}

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
		enum status status = store_wait(
			queue->store, prefix, &since, fetcher->deadline, fetcher->wake, err);
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
		fetcher->deadline, fetcher->wake};
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
