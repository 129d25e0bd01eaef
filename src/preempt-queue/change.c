/* SPDX-License-Identifier: MIT */
/* cancel, retry and forget, for commands chosen by id, tag or state; and resource. */
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
#include "queue/output.h"
#include "queue/resource.h"

/* Which commands to change, and how. */
struct change {
	enum status (*make)(struct queue *queue, const struct queue_selection *set,
		struct queue_changed *changed, struct error *err);
	const char *done, *refused; /* "12 commands VERBED"; "command 3 is already over" */
	bool partly;		    /* one that was given by its id could not be changed */
};

static void say(const struct queue *queue, struct change *change, const struct queue_changed *made)
{
	bool named = options.set.ids;
	change->partly |= named && (made->refused || made->absent);
	message_info("%" PRIu64 " command%s %s", made->changed, made->changed == 1 ? "" : "s",
		change->done);
	if (made->told)
		message_info("%" PRIu64 " running %s told to end, and may still succeed",
			made->told, made->told == 1 ? "command was" : "commands were");
	if (named && made->absent)
		message_info("queue %s has no command %" PRIu64 "%s", queue->name,
			made->first_absent, made->absent > 1 ? ", nor others of these" : "");
	if (made->refused)
		message_info("command %" PRIu64 "%s %s", made->first_refused,
			made->refused > 1 ? " and others" : "", change->refused);
}

static enum status make(struct queue *queue, void *context, struct error *err)
{
	struct change *change = context;
	struct queue_changed made = {0};
	/* Raise a failure that is pending: its raising would cancel again what is put back. */
	enum status status = change->make(queue, &options.set, &made, err);
	while (status == STATUS_BROKEN && !client_interrupted()) {
		status = client_raise(queue, CLOCK_NEVER, NULL, err);
		if (status == STATUS_BROKEN)
			message_error("%s", err->text);
		if (status == STATUS_BROKEN || status == STATUS_NO)
			status = change->make(queue, &options.set, &made, err);
	}
	if (status == STATUS_OK)
		say(queue, change, &made);
	return status;
}

/* Requires either ids, or an option that chooses by state or tag (by_kind), but not both. */
static int run_change(
	const struct args_rest *rest, struct change change, bool by_kind, const char *cure)
{
	if ((rest->count > 0) == by_kind)
		return client_refuse(cure);
	client_catch();
	int code = client_run(rest, 0, make, &change);
	return code == STATUS_OK && change.partly ? CODE_NO : code;
}

int run_cancel(const struct args_rest *rest)
{
	return run_change(rest,
		(struct change){
			.make = queue_cancel, .done = "cancelled", .refused = "is already over"},
		options.all || options.tag,
		"cancel: name either IDs, or --all or --tag; see preempt-queue cancel --help");
}

int run_retry(const struct args_rest *rest)
{
	bool any = !options.failed && !options.cancelled;
	unsigned states = (options.failed || any ? 1u << QUEUE_FAILED : 0) |
			  (options.cancelled || any ? 1u << QUEUE_CANCELLED : 0);
	if (!rest->count)
		options.set.states = states;
	return run_change(rest,
		(struct change){.make = queue_retry,
			.done = "put back",
			.refused = "is not over, or comes after one that failed"},
		options.failed || options.cancelled || options.tag,
		"retry: name either IDs, or --failed, --cancelled or --tag; see preempt-queue "
		"retry --help");
}

static enum status forget(struct queue *queue, const struct queue_selection *set,
	struct queue_changed *changed, struct error *err)
{
	struct parse_numbers gone = {0};
	int64_t before = clock_utc() + 1 - options.older_than;
	enum status status = queue_forget(
		queue, set, options.older_than ? before : INT64_MAX, &gone, changed, err);
	/* Also after an error: these are gone. */
	output_forget(queue, gone.items, gone.count);
	parse_numbers_release(&gone);
	return status;
}

int run_forget(const struct args_rest *rest)
{
	if ((options.older_than || options.tag) && !options.finished)
		return client_refuse("forget: --older-than and --tag are for --finished");
	return run_change(rest,
		(struct change){.make = forget, .done = "forgotten", .refused = "is not over"},
		options.finished,
		"forget: name either IDs, or --finished; see preempt-queue forget --help");
}

/* ---- resource ---- */

static enum status define(struct queue *queue, void *context, struct error *err)
{
	const struct args_rest *rest = context;
	struct queue_item item = {.argv = rest->command};
	enum status status = client_path(".", "resource", &item.directory, err);
	if (status == STATUS_OK)
		status = queue_resource_put(queue, rest->words[0], &item, err);
	free(item.directory);
	return status;
}

int run_resource(const struct args_rest *rest)
{
	struct error err;
	struct args_rest copy = *rest;
	return resource_check_name(rest->words[0], &err) == STATUS_OK
		       ? client_run(NULL, STORE_CREATE, define, &copy)
		       : message_fail(&err);
}
