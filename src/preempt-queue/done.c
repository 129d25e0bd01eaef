/* SPDX-License-Identifier: MIT */
/* preempt-queue done: whether all commands, or the chosen ones, have ended, without waiting. */
#include <inttypes.h>

#include "base/clock.h"
#include "client.h"
#include "queue/after.h"

static const char *tag;

const struct args_option done_options[] = {
	{"tag", "T", "only commands with this tag", ARGS_TEXT, .target = &tag},
	{0},
};

static enum status look_once(
	struct queue *queue, const struct queue_selection *set, struct error *err)
{
	struct queue_failure failure;
	struct queue_count count;
	struct queue_awaited outcome;
	enum status status;
	do {
		status = queue_carry_on(queue, NULL, err);
		if (status == STATUS_OK)
			status = queue_count(queue, &count, err);
		/* Look for a failure after the count: one transaction changes both. */
		if (status == STATUS_OK)
			status = queue_raise(queue, clock_now(), -1, &failure, err);
	} while (status == STATUS_OK);
	if (status != STATUS_NO && status != STATUS_TIMEOUT)
		return status;
	status = queue_awaited(queue, set, &count, &outcome, err);
	if (status != STATUS_OK || !outcome.going_on)
		return status == STATUS_OK ? queue_awaited_answer(queue, set, &outcome, err)
					   : status;
	if (set->count || set->tag)
		return error_set(err, STATUS_NO,
			"queue %s: %" PRIu64 " of these commands wait or run", queue->name,
			outcome.going_on);
	return error_set(err, STATUS_NO, "queue %s: %" PRIu64 " commands wait, %" PRIu64 " run",
		queue->name, count.waiting, count.running);
}

int run_done(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	struct parse_numbers ids = {0};
	struct queue_selection set;
	enum status status = client_select(rest, tag, &ids, &set, &err);
	if (status == STATUS_OK)
		status = client_open(&client, 0, &err);
	if (status == STATUS_OK)
		status = look_once(&client.queue, &set, &err);
	parse_numbers_release(&ids);
	return client_end_asked(&client, status, &err);
}
