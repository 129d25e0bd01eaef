/* SPDX-License-Identifier: MIT */
/* cancel, retry, forget: for commands given by id, or chosen by options; and resource. */
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
#include "commands.h"
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

/* The commands to change. */
struct chosen {
	bool (*is_meant)(const struct queue_view *view);
	uint64_t *ids;
	size_t count, room;
};

static void choose_id(struct chosen *chosen, uint64_t id)
{
	chosen->ids = xgrow(chosen->ids, chosen->count, &chosen->room, sizeof(*chosen->ids));
	chosen->ids[chosen->count++] = id;
}

static enum status choose(void *context, const struct queue_view *view)
{
	struct chosen *chosen = context;
	bool tagged = !tag || (view->item.tag && strcmp(view->item.tag, tag) == 0);
	if (tagged && chosen->is_meant(view))
		choose_id(chosen, view->item.id);
	return STATUS_OK;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
	return one < other ? -1 : one > other;
}

/* The ids on the command line, each once; or those of the commands that are meant. */
static enum status find_chosen(
	struct queue *queue, const struct args_rest *rest, struct chosen *chosen, struct error *err)
{
	enum status status = STATUS_OK;
	if (!rest->count)
		return queue_visit(queue, 0, choose, chosen, err);
	for (size_t i = 0; i < rest->count && status == STATUS_OK; i++) {
		uint64_t id;
		status = client_parse_id(rest->words[i], &id, err);
		if (status == STATUS_OK)
			choose_id(chosen, id);
	}
	if (status != STATUS_OK)
		return status;
	qsort(chosen->ids, chosen->count, sizeof(*chosen->ids), compare_ids);
	size_t kept = 0;
	for (size_t i = 0; i < chosen->count; i++)
		if (!kept || chosen->ids[kept - 1] != chosen->ids[i])
			chosen->ids[kept++] = chosen->ids[i];
	chosen->count = kept;
	return STATUS_OK;
}

/*
 * A batch at a time, the newest first: those at the head are on their way to a worker, and would be
 * compared in vain. Prints the id of each that is changed. *refused: how many could not be, each of
 * which is reported if it was named.
 */
static enum status change(struct client *client, enum queue_change how, const struct chosen *chosen,
	bool named, uint64_t *refused, struct error *err)
{
	uint64_t told = 0;
	enum status status = STATUS_OK;
	for (size_t end = chosen->count; end > 0 && status == STATUS_OK;) {
		enum queue_changed changed[QUEUE_CHANGE_BATCH];
		size_t count = end < QUEUE_CHANGE_BATCH ? end : QUEUE_CHANGE_BATCH;
		const uint64_t *ids = chosen->ids + end - count;
		if (client_interrupted())
			break;
		status = queue_change(&client->queue, how, ids, count, changed, err);
		for (size_t i = count; i-- > 0 && status == STATUS_OK;) {
			told += changed[i] == QUEUE_CHANGED_REQUESTED;
			*refused += changed[i] == QUEUE_CHANGED_NOT;
			if (changed[i] != QUEUE_CHANGED_NOT)
				printf("%" PRIu64 "\n", ids[i]);
			else if (named)
				message_info("command %" PRIu64 " is %sover, or there is none",
					ids[i], how == QUEUE_CANCEL ? "" : "not ");
		}
		end -= count;
		if (status == STATUS_OK && client_stdout_lost())
			break;
	}
	if (told && status == STATUS_OK)
		message_info("%" PRIu64 " %s: told to end", told, told == 1 ? "runs" : "run");
	return status;
}

/* Either IDs are given, or options that choose commands by their kind. */
static int run_change(const struct args_rest *rest, enum queue_change how, bool by_kind,
	const char *cure, bool (*is_meant)(const struct queue_view *view))
{
	struct error err = {0};
	struct client client = {0};
	struct chosen chosen = {.is_meant = is_meant};
	bool named = rest->count > 0;
	uint64_t refused = 0;
	if (named == by_kind) {
		message_error("%s", cure);
		return STATUS_USAGE;
	}
	client_catch();
	enum status status = client_open(&client, 0, &err);
	if (status == STATUS_OK)
		status = find_chosen(&client.queue, rest, &chosen, &err);
	if (status == STATUS_OK)
		status = change(&client, how, &chosen, named, &refused, &err);
	free(chosen.ids);
	return status == STATUS_OK && named && refused ? client_end_with(&client, CODE_NO)
						       : client_end(&client, status, &err);
}

static bool is_going_on(const struct queue_view *view)
{
	return view->state == QUEUE_WAITING || view->state == QUEUE_RUNNING;
}

int run_cancel(const struct args_rest *rest)
{
	return run_change(rest, QUEUE_CANCEL, all || tag,
		"cancel: name either IDs, or --all or --tag; see preempt-queue cancel --help",
		is_going_on);
}

static bool is_to_be_retried(const struct queue_view *view)
{
	bool any = !failed && !cancelled;
	return (view->state == QUEUE_FAILED && (failed || any)) ||
	       (view->state == QUEUE_CANCELLED && (cancelled || any));
}

int run_retry(const struct args_rest *rest)
{
	/* Commands that are named by their ids are put back also if they have succeeded. */
	return run_change(rest, rest->count ? QUEUE_RETRY_ANY : QUEUE_RETRY,
		failed || cancelled || tag,
		"retry: name either IDs, or --failed, --cancelled or --tag; see preempt-queue "
		"retry --help",
		is_to_be_retried);
}

static bool is_to_be_forgotten(const struct queue_view *view)
{
	return !is_going_on(view) &&
	       (!older_than_given || clock_utc() - view->result.ended >= older_than);
}

int run_forget(const struct args_rest *rest)
{
	if ((older_than_given || tag) && !finished) {
		message_error("forget: --older-than and --tag are for --finished");
		return STATUS_USAGE;
	}
	return run_change(rest, QUEUE_FORGET, finished,
		"forget: name either IDs, or --finished; see preempt-queue forget --help",
		is_to_be_forgotten);
}

int run_resource(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	enum status status = STATUS_OK;
	char *here = getcwd(NULL, 0);
	if (!here)
		status = error_set(
			&err, STATUS_USAGE, "this directory has no name: %s", strerror(errno));
	if (status == STATUS_OK)
		status = client_open(&client, STORE_CREATE, &err);
	if (status == STATUS_OK)
		status = resource_define(&client.queue, rest->words[0], rest->command, here, &err);
	free(here);
	return client_end(&client, status, &err);
}
