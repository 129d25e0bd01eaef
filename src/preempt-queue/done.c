/* SPDX-License-Identifier: MIT */
/* done: whether all is over, and whether a command failed. */
#include <inttypes.h>

#include "base/clock.h"
#include "client.h"
#include "commands.h"
#include "queue/records.h"

static enum status look(struct queue *queue, struct error *err)
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
	if (status == STATUS_NO)
		return client_end_missing(&client, &err);
	if (status == STATUS_OK)
		status = look(&client.queue, &err);
	return client_end(&client, status, &err);
}
