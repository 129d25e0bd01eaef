/* SPDX-License-Identifier: MIT */
/* preempt-queue fetch: print what commands have written. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "client.h"
#include "queue/output.h"
#include "queue/template.h"

struct fetcher {
	int64_t deadline;
	char token[QUEUE_TOKEN]; /* of the start that is printed, up to byte at */
	uint64_t at;
	int code; /* of the first printed command that did not succeed */
};

/* While a failure is pending, no worker takes a command: raise it, so that the wait can end. */
static enum status tell_failure(struct queue *queue, struct error *err)
{
	enum status status = client_raise(queue, 0, NULL, err);
	if (status == STATUS_BROKEN)
		message_error("%s", err->text);
	return status_is_error(status) && status != STATUS_TIMEOUT ? status : STATUS_OK;
}

/* Print what is there beyond what was printed; the output of another start as a whole. */
static enum status print(struct queue *queue, struct fetcher *fetcher,
	const struct queue_view *view, struct error *err)
{
	if (strcmp(fetcher->token, view->token) != 0)
		fetcher->at = 0;
	memcpy(fetcher->token, view->token, sizeof(fetcher->token));
	return output_print(queue, view, options.from_stderr ? OUTPUT_ERR : OUTPUT_OUT,
		&fetcher->at, STDOUT_FILENO, err);
}

/* With --wait or --follow, wait until the command is over; print what it writes meanwhile. */
static enum status wait_for(struct queue *queue, struct fetcher *fetcher, uint64_t id,
	struct queue_view *view, struct error *err)
{
	store_revision since = queue->revision;
	for (;;) {
		enum status status = queue_inspect(queue, id, view, err);
		if (status == STATUS_NO)
			return error_set(err, status, "queue %s: there is no command %" PRIu64,
				queue->name, id);
		if (status != STATUS_OK || view->state > QUEUE_RUNNING)
			return status;
		const char *state = queue_state_word(view->state);
		bool follows = options.follow && view->state == QUEUE_RUNNING;
		if (follows)
			status = print(queue, fetcher, view, err);
		queue_view_release(view);
		if (!(options.wait || options.follow) || client_interrupted())
			return error_set(err, STATUS_NO,
				"command %" PRIu64 " is not over: it is %s", id, state);
		if (status == STATUS_OK && clock_now() >= fetcher->deadline)
			return error_set(err, STATUS_TIMEOUT,
				"command %" PRIu64 " was not over in time: it is %s", id, state);
		if (status == STATUS_OK && !follows)
			status = tell_failure(queue, err);
		if (status == STATUS_OK)
			status = client_wait(queue, QUEUE_OVER, &since,
				clock_earlier(clock_after(follows ? 300 : 5000), fetcher->deadline),
				err);
		if (status != STATUS_OK)
			return status;
	}
}

static void name_output(const struct queue_view *view)
{
	char *name = template_fill_name(
		view->item.output, view->item.directory, view->item.id, view->result.worker);
	message_info("command %" PRIu64 ": its stdout is in %s", view->item.id, name);
	free(name);
}

/* Print the output of one command. */
static enum status fetch_one(
	struct queue *queue, struct fetcher *fetcher, uint64_t id, struct error *err)
{
	struct queue_view view = {0};
	char how[64];
	*fetcher->token = '\0';
	enum status status = wait_for(queue, fetcher, id, &view, err);
	bool in_file = status == STATUS_OK && view.item.output && !options.from_stderr;
	if (status == STATUS_OK && view.state == QUEUE_CANCELLED)
		status = error_set(err, STATUS_NO, "command %" PRIu64 " was cancelled", id);
	else if (status == STATUS_OK && view.state == QUEUE_DAMAGED)
		status = error_set(
			err, STATUS_DAMAGED, "the row of command %" PRIu64 " cannot be read", id);
	else if (in_file)
		name_output(&view);
	else if (status == STATUS_OK)
		status = print(queue, fetcher, &view, err);
	if (status == STATUS_OK && view.state == QUEUE_FAILED) {
		if (!fetcher->code)
			fetcher->code = queue_ending_code(&view.result.ending);
		queue_ending_describe(&view.result.ending, how);
		message_info("command %" PRIu64 " has failed: it %s", id, how);
	}
	queue_view_release(&view);
	return status;
}

static enum status fetch(struct queue *queue, void *context, struct error *err)
{
	struct fetcher *fetcher = context;
	enum status status = STATUS_OK;
	for (size_t i = 0; i < options.set.count && status == STATUS_OK; i++)
		status = fetch_one(queue, fetcher, options.set.ids[i], err);
	return status;
}

int run_fetch(const struct args_rest *rest)
{
	struct fetcher fetcher = {.deadline = client_deadline()};
	if (options.wait || options.follow)
		client_catch();
	int code = client_run(rest, 0, fetch, &fetcher);
	return code == STATUS_OK && options.exit_status ? fetcher.code : code;
}
