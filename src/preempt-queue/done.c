/* SPDX-License-Identifier: MIT */
/* done: whether all is over; the first error, told once. */
#include <inttypes.h>

#include "base/clock.h"
#include "client.h"
#include "commands.h"
#include "queue/count.h"

int run_done(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	struct queue_failure failure;
	struct queue_count count = {0};
	(void)rest;
	enum status status = client_open(&client, 0, &err);
	if (status == STATUS_NO) {
		client_say_no_store(&err);
		return client_end(&client, status, &err);
	}
	if (status == STATUS_OK)
		status = queue_count(&client.queue, &count, &err);
	if (status == STATUS_OK) {
		status = queue_raise(&client.queue, clock_now(), -1, &failure, &err);
		if (status == STATUS_OK) {
			queue_failure_say(&client.queue, &failure, &err);
			status = STATUS_BROKEN;
		}
	}
	if (status == STATUS_NO && !count.scheduled)
		client_say_empty(&client);
	if (status == STATUS_NO || status == STATUS_TIMEOUT)
		status = count.waiting || count.running
				 ? error_set(&err, STATUS_NO,
					   "queue %s: %" PRIu64 " commands wait, %" PRIu64 " run",
					   client.queue.name, count.waiting, count.running)
				 : STATUS_OK;
	return client_end(&client, status, &err);
}
