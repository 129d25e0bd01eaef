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
#include "commands.h"
#include "queue/joblog.h"
#include "queue/worker/output.h"
#include "queue/workers/workers.h"
#include "rows.h"

static const char *state_word, *tag;
static bool follow, joblog, fetch_wait, fetch_stderr, exit_status;

const struct args_option list_options[] = {
	{"state", "S", "any (default), waiting, running, succeeded, failed or cancelled: which",
		ARGS_TEXT, .target = &state_word},
	{"tag", "T", "only those with this tag", ARGS_TEXT, .target = &tag},
	{"follow", NULL, "then go on: print each that ends", ARGS_FLAG, .target = &follow,
		.letter = 'f'},
	{"joblog", NULL, "those that have run, in the columns of GNU parallel", ARGS_FLAG,
		.target = &joblog},
	{0},
};
const struct args_option fetch_options[] = {
	{"wait", NULL, "wait until it is over", ARGS_FLAG, .target = &fetch_wait},
	{"stderr", NULL, "its stderr, not its stdout", ARGS_FLAG, .target = &fetch_stderr},
	{"exit-status", NULL, "leave with the command's own code", ARGS_FLAG,
		.target = &exit_status},
	{0},
};

/* ---- list ---- */

struct lister {
	struct client client;
	enum queue_state state;
	uint64_t rows;
	struct error *err;
};

static enum status print_row(void *context, const struct queue_view *view)
{
	struct lister *lister = context;
	struct text row = {0};
	bool over = view->state >= QUEUE_SUCCEEDED;
	if ((state_word && view->state != lister->state) ||
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
	return client_interrupted() ? STATUS_NO : STATUS_OK;
}

/* Each that ends, from now on. STATUS_TIMEOUT: --timeout has passed. */
static enum status follow_ends(
	struct lister *lister, int wake, store_revision since, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	int64_t deadline = client_deadline();
	enum status status = STATUS_OK;
	queue_key(&lister->client.queue, prefix, "done/");
	while (status == STATUS_OK && !client_interrupted()) {
		store_revision revision;
		if (client_stdout_lost())
			return error_set(err, STATUS_TEMPORARY, "cannot write to stdout");
		status = store_wait(
			lister->client.store, prefix, since, deadline, wake, &revision, err);
		if (status == STATUS_OK)
			status = queue_visit_done(
				&lister->client.queue, &since, NULL, print_row, lister, err);
	}
	return status;
}

int run_list(const struct args_rest *rest)
{
	struct error err = {0};
	struct lister lister = {.err = &err};
	struct queue_count count = {0};
	struct text heading = {0};
	(void)rest;
	if (state_word && !strcmp(state_word, "any"))
		state_word = NULL;
	if (state_word && !queue_state_parse(state_word, &lister.state)) {
		message_error("--state: \"%s\" is not waiting, running, succeeded, failed or "
			      "cancelled; see preempt-queue list --help",
			state_word);
		return STATUS_USAGE;
	}
	if (joblog && client_options.json) {
		message_error("--joblog and --json exclude each other");
		return STATUS_USAGE;
	}
	int wake = follow ? client_catch() : -1;
	enum status status = client_open(&lister.client, 0, &err);
	if (status == STATUS_OK)
		status = queue_count(&lister.client.queue, &count, &err);
	if (status != STATUS_OK)
		return client_end(&lister.client, status, &err);
	if (joblog)
		text_add(&heading, JOBLOG_HEADING);
	else if (!client_options.json)
		rows_heading(&heading);
	fputs(text_string(&heading), stdout);
	text_release(&heading);
	status = queue_visit(&lister.client.queue, 0, print_row, &lister, &err);
	if (status == STATUS_OK && follow)
		status = follow_ends(&lister, wake, count.revision, &err);
	return client_end(&lister.client, status, &err);
}

/* ---- show, fetch ---- */

/* The command that is named; the client is opened for the first. */
static enum status find(
	struct client *client, const char *word, struct queue_view *view, struct error *err)
{
	uint64_t id;
	enum status status = client_parse_id(word, &id, err);
	if (status == STATUS_OK && !client->store)
		status = client_open(client, 0, err);
	if (status == STATUS_OK)
		status = queue_inspect(&client->queue, id, view, err);
	return status;
}

int run_show(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	struct queue_view view = {0};
	struct text text = {0};
	enum status status = find(&client, rest->words[0], &view, &err);
	if (status == STATUS_OK && client_options.json)
		rows_add_json(&text, &view);
	else if (status == STATUS_OK)
		rows_describe(&text, &view, clock_utc());
	fputs(text_string(&text), stdout);
	text_release(&text);
	queue_view_release(&view);
	return client_end(&client, status, &err);
}

/* STATUS_OK: it is over. STATUS_NO: it is not, or a signal has come. */
static enum status wait_until_over(struct client *client, int wake, int64_t deadline,
	struct queue_view *view, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	uint64_t id = view->item.id;
	/* Wait for changes after the state that was read. */
	store_revision since = view->revision;
	queue_key_at(&client->queue, prefix, "done", id);
	while (view->state < QUEUE_SUCCEEDED) {
		if (!fetch_wait)
			return error_set(err, STATUS_NO, "command %" PRIu64 " is not over: it %s",
				id, view->state == QUEUE_RUNNING ? "runs" : "waits");
		/* Then continue from the revision of the wait: that of the view may be older. */
		enum status status =
			store_wait(client->store, prefix, since, deadline, wake, &since, err);
		if (status == STATUS_TIMEOUT)
			return error_set(err, status,
				"command %" PRIu64 " was not over in time: it %s", id,
				view->state == QUEUE_RUNNING ? "runs" : "waits");
		if (status != STATUS_OK)
			return status;
		queue_view_release(view);
		status = queue_inspect(&client->queue, id, view, err);
		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

/* Print the output of one command. *code: its exit code, if it has failed. */
static enum status fetch(struct client *client, const char *word, int wake, int64_t deadline,
	int *code, struct error *err)
{
	struct queue_view view = {0};
	char how[64];
	enum status status = find(client, word, &view, err);
	if (status == STATUS_OK)
		status = wait_until_over(client, wake, deadline, &view, err);
	if (status == STATUS_OK && view.state == QUEUE_CANCELLED)
		status = error_set(err, STATUS_NO, "command %" PRIu64 " was cancelled%s%s",
			view.item.id, *view.result.ending.text ? ": " : "",
			view.result.ending.text);
	if (status == STATUS_OK)
		status = output_print(&client->queue, view.item.id, &view.result,
			fetch_stderr ? OUTPUT_ERR : OUTPUT_OUT, STDOUT_FILENO, err);
	if (status == STATUS_OK && view.state == QUEUE_FAILED) {
		*code = queue_ending_code(&view.result.ending);
		queue_ending_describe(&view.result.ending, how);
		message_info("command %" PRIu64 " has failed: it %s", view.item.id, how);
	}
	queue_view_release(&view);
	return status;
}

int run_fetch(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	int wake = fetch_wait ? client_catch() : -1;
	int64_t deadline = client_deadline();
	int code = 0;
	uint64_t id;
	enum status status = STATUS_OK;
	/* Print nothing if one of the IDs is not a number. */
	for (size_t i = 0; i < rest->count && status == STATUS_OK; i++)
		status = client_parse_id(rest->words[i], &id, &err);
	for (size_t i = 0; i < rest->count && status == STATUS_OK; i++) {
		int own = 0;
		status = fetch(&client, rest->words[i], wake, deadline, &own, &err);
		code = code ? code : own;
	}
	int answer = client_end(&client, status, &err);
	return status == STATUS_OK && exit_status ? code : answer;
}

/* ---- workers ---- */

struct load {
	const struct queue_worker *workers;
	size_t count;
	uint64_t *running; /* by each of them */
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
		text_add(&text, json_line(object));
		json_object_put(object);
	} else {
		struct text name = {0}, host = {0};
		rows_escape(&name, worker->name);
		rows_escape(&host, worker->process.host);
		text_addf(&text, "%-24s %5" PRIu64 " %5" PRIu64 " %7" PRIu64 " %-16s %8d %s",
			text_string(&name), worker->index, worker->slots, running,
			text_string(&host), (int)worker->process.pid, started);
		text_release(&name);
		text_release(&host);
	}
	puts(text_string(&text));
	text_release(&text);
}

int run_workers(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	struct queue_worker *workers = NULL;
	struct load load = {0};
	(void)rest;
	enum status status = client_open(&client, 0, &err);
	if (status == STATUS_OK)
		status = workers_list(&client.queue, &workers, &load.count, &err);
	if (status == STATUS_OK) {
		load.workers = workers;
		load.running = xcalloc(load.count + 1, sizeof(*load.running));
		status = queue_visit_running(&client.queue, count_load, &load, &err);
	}
	if (status == STATUS_OK && !client_options.json)
		printf("%-24s %5s %5s %7s %-16s %8s %s\n", "WORKER", "INDEX", "SLOTS", "RUNNING",
			"HOST", "PID", "STARTED");
	for (size_t i = 0; i < load.count && status == STATUS_OK; i++)
		print_worker(&workers[i], load.running[i]);
	free(load.running);
	free(workers);
	return client_end(&client, status, &err);
}
