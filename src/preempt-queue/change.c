/* SPDX-License-Identifier: MIT */
/* cancel, retry and forget, for commands chosen by id or by state; and resource. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "client.h"
#include "queue/worker/resource.h"

static bool all, failed, cancelled, finished, older_than_given;
static const char *tag;
static int64_t older_than;

/* clang-format off */
#define TAG(what) {"tag", "T", what " those with this tag", ARGS_TEXT, .target = &tag}
/* clang-format on */
const struct args_option cancel_options[] = {
	{"all", NULL, "cancel all that wait or run", ARGS_FLAG, .target = &all},
	TAG("cancel"),
	{0},
};
const struct args_option retry_options[] = {
	{"failed", NULL, "put back those that failed", ARGS_FLAG, .target = &failed},
	{"cancelled", NULL, "put back those that were cancelled", ARGS_FLAG, .target = &cancelled},
	{"tag", "T", "only those with this tag; alone: that failed or were cancelled", ARGS_TEXT,
		.target = &tag},
	{0},
};
const struct args_option forget_options[] = {
	{"finished", NULL, "forget all that are over", ARGS_FLAG, .target = &finished},
	{"older-than", "D", "with --finished: that ended longer ago than this", ARGS_DURATION,
		.target = &older_than, .given = &older_than_given},
	TAG("of them, only"),
	{0},
};

/* Which commands to change, and how. */
struct chosen {
	enum queue_change how;
	bool (*is_meant)(const struct queue_view *view);
	bool named; /* chosen by id */
	struct parse_numbers ids;
	size_t refused;
	int wake; /* readable when a signal has come */
};

static enum status choose(void *context, const struct queue_view *view)
{
	struct chosen *chosen = context;
	bool tagged = !tag || (view->item.tag && strcmp(view->item.tag, tag) == 0);
	if (!tagged || !chosen->is_meant(view))
		return STATUS_OK;
	struct parse_numbers *ids = &chosen->ids;
	ids->items = xgrow(ids->items, ids->count, &ids->room, sizeof(*ids->items));
	ids->items[ids->count++] = view->item.id;
	return STATUS_OK;
}

/*
 * Report pending failures, as schedule does. While one is pending, no worker takes what is put
 * back, and the call that reports it would cancel that again.
 */
static enum status report_failures(struct queue *queue, int wake, struct error *err)
{
	int64_t deadline = clock_now();
	for (;;) {
		enum status status = client_report_failure(queue, deadline, wake, err);
		if (status == STATUS_TIMEOUT && deadline != CLOCK_NEVER) {
			message_info("%s; waiting for their end", err->text);
			deadline = CLOCK_NEVER;
		} else if (status != STATUS_OK) {
			return status == STATUS_NO ? STATUS_OK : status;
		}
	}
}

/*
 * Change a batch at a time, the newest commands first: workers are taking the oldest ones, so a
 * transaction on those would often fail. Retry the oldest first, so that a command which must come
 * after others (--after) is blocked by them again. Prints the id of each changed command, and
 * reports each named one that could not be changed.
 */
static enum status change(struct queue *queue, void *context, struct error *err)
{
	struct chosen *chosen = context;
	uint64_t told = 0;
	bool puts_back = chosen->how == QUEUE_RETRY || chosen->how == QUEUE_RETRY_ANY;
	enum status status = puts_back ? report_failures(queue, chosen->wake, err) : STATUS_OK;
	if (status == STATUS_OK && !chosen->named)
		status = queue_visit(queue, 0, choose, chosen, err);
	for (size_t end = chosen->ids.count; end > 0 && status == STATUS_OK;) {
		enum queue_changed changed[QUEUE_CHANGE_BATCH];
		size_t count = end < QUEUE_CHANGE_BATCH ? end : QUEUE_CHANGE_BATCH;
		size_t at = puts_back ? chosen->ids.count - end : end - count;
		const uint64_t *ids = chosen->ids.items + at;
		if (client_interrupted() || client_stdout_lost())
			break;
		status = queue_change(queue, chosen->how, ids, count, changed, err);
		for (size_t i = count; i-- > 0 && status == STATUS_OK;) {
			told += changed[i] == QUEUE_CHANGED_REQUESTED;
			bool absent = changed[i] == QUEUE_CHANGED_ABSENT;
			bool refused = absent || changed[i] == QUEUE_CHANGED_NOT;
			chosen->refused += refused;
			if (!refused)
				printf("%" PRIu64 "\n", ids[i]);
			else if (chosen->named && absent)
				message_info(
					"queue %s has no command %" PRIu64, queue->name, ids[i]);
			else if (chosen->named)
				message_info("command %" PRIu64 " is %s over", ids[i],
					chosen->how == QUEUE_CANCEL ? "already" : "not");
		}
		end -= count;
	}
	if (told && status == STATUS_OK)
		message_info("%" PRIu64 " running %s asked to end, and may still succeed", told,
			told == 1 ? "command was" : "commands were");
	return status;
}

/* Requires either ids, or an option that chooses by state or tag (by_kind), but not both. */
static int run_change(
	const struct args_rest *rest, struct chosen chosen, bool by_kind, const char *cure)
{
	struct error err;
	enum status status = STATUS_OK;
	chosen.named = rest->count > 0;
	if (chosen.named == by_kind)
		return client_refuse(cure);
	chosen.wake = client_catch();
	if (chosen.named)
		status = client_parse_ids(rest, &chosen.ids, &err);
	parse_numbers_sort(&chosen.ids);
	int code = status == STATUS_OK ? client_run(0, change, &chosen) : message_fail(&err);
	parse_numbers_release(&chosen.ids);
	return code == STATUS_OK && chosen.named && chosen.refused ? CODE_NO : code;
}

static bool is_going_on(const struct queue_view *view)
{
	return view->state < QUEUE_SUCCEEDED;
}

int run_cancel(const struct args_rest *rest)
{
	return run_change(rest, (struct chosen){QUEUE_CANCEL, .is_meant = is_going_on}, all || tag,
		"cancel: name either IDs, or --all or --tag; see preempt-queue cancel --help");
}

static bool is_to_be_retried(const struct queue_view *view)
{
	bool any = !failed && !cancelled;
	return (view->state == QUEUE_FAILED && (failed || any)) ||
	       (view->state == QUEUE_CANCELLED && (cancelled || any));
}

int run_retry(const struct args_rest *rest)
{
	/* A command that is named by its id is put back even if it succeeded. */
	enum queue_change how = rest->count ? QUEUE_RETRY_ANY : QUEUE_RETRY;
	return run_change(rest, (struct chosen){how, .is_meant = is_to_be_retried},
		failed || cancelled || tag,
		"retry: name either IDs, or --failed, --cancelled or --tag; see preempt-queue "
		"retry --help");
}

static bool is_to_be_forgotten(const struct queue_view *view)
{
	return !is_going_on(view) &&
	       (!older_than_given || clock_utc() - view->result.ended >= older_than);
}

int run_forget(const struct args_rest *rest)
{
	if ((older_than_given || tag) && !finished)
		return client_refuse("forget: --older-than and --tag are for --finished");
	return run_change(rest, (struct chosen){QUEUE_FORGET, .is_meant = is_to_be_forgotten},
		finished,
		"forget: name either IDs, or --finished; see preempt-queue forget --help");
}

struct definition {
	const struct args_rest *rest;
	char *directory;
};

static enum status define(struct queue *queue, void *context, struct error *err)
{
	const struct definition *made = context;
	return resource_define(
		queue, made->rest->words[0], made->rest->command, made->directory, err);
}

int run_resource(const struct args_rest *rest)
{
	struct definition made = {rest, getcwd(NULL, 0)};
	struct error err;
	if (!made.directory) {
		error_set(&err, STATUS_USAGE, "this directory has no path: %s", strerror(errno));
		return message_fail(&err);
	}
	int code = client_run(STORE_CREATE, define, &made);
	free(made.directory);
	return code;
}
