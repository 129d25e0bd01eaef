/* SPDX-License-Identifier: MIT */
/* preempt-queue done: whether all commands have ended, without waiting. */
#include <inttypes.h>

#include "base/clock.h"
#include "client.h"

static enum status look_once(struct queue *queue, struct error *err)
{
	static const struct queue_selection all;
	struct queue_failure failure;
	struct queue_count count;
	struct queue_awaited outcome;
	enum status status;
	do {
		status = queue_count(queue, &count, err);
		/* An error comes together with the count that contains it. */
		if (status == STATUS_OK)
			status = queue_raise(queue, clock_now(), -1, &failure, err);
	} while (status == STATUS_OK);
	if (status != STATUS_NO && status != STATUS_TIMEOUT)
		return status;
	if (count.waiting || count.running)
		return error_set(err, STATUS_NO,
			"queue %s: %" PRIu64 " commands wait, %" PRIu64 " run", queue->name,
			count.waiting, count.running);
	status = queue_awaited(queue, &all, &count, &outcome, err);
	return status == STATUS_OK ? queue_awaited_answer(queue, &all, &outcome, err) : status;
}

int run_done(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	(void)rest;
	enum status status = client_open(&client, 0, &err);
	if (status == STATUS_OK)
		status = look_once(&client.queue, &err);
	return client_end_asked(&client, status, &err);
}
