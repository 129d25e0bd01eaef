/* SPDX-License-Identifier: MIT */
#include "live/outage.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/process/descriptor.h"

#define RETRY_EVERY 250 /* ms */

bool outage_retry(struct outage *outage, enum status *status, struct error *err)
{
	if (*status != STATUS_TEMPORARY) {
		if (outage->said)
			message_info("the store answers again");
		outage->said = false;
		return false;
	}
	int64_t next = clock_after(RETRY_EVERY);
	if (clock_now() >= outage->deadline)
		return false;
	if (!outage->said)
		message_error("%s; trying again", err->text);
	outage->said = true;
	if (next > outage->deadline)
		next = outage->deadline;
	if (!descriptor_wait(outage->cancel, next))
		return true;
	*status = error_set(err, STATUS_NO, "cancelled while the store did not answer");
	return false;
}

enum status outage_open(struct store **store, const char *url, int64_t deadline, struct error *err)
{
	enum status status = store_open(store, url, 0, deadline, err);
	if (status != STATUS_NO)
		return status;
	struct error missing = *err;
	return error_set(err, STATUS_TEMPORARY,
		"%s any more; put it back, or mount its filesystem again", missing.text);
}

bool outage_is_joined(void)
{
	const char *life = getenv("PREEMPT_LIFE");
	return life && *life;
}

enum status outage_open_joined(
	struct store **store, const char *url, int64_t deadline, struct error *err)
{
	return outage_is_joined() ? outage_open(store, url, deadline, err)
				  : store_open(store, url, 0, deadline, err);
}
