/* SPDX-License-Identifier: MIT */
/*
 * A store that was opened before and does not answer now: retry until a deadline, and never create
 * a new store in its place.
 */
#ifndef LIVE_OUTAGE_H
#define LIVE_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct outage {
	int64_t deadline; /* until which the store is asked again */
	int cancel;	  /* a descriptor: give up once it is readable; -1: none */
	bool said;	  /* it was reported that the store does not answer */
};

/*
 * To be called after each try, with its *status. True: the store did not answer and a moment has
 * passed: try again. False: *status is final; it has become STATUS_NO, with err, if cancel is
 * readable. Reports on stderr when the store stops answering and when it answers again.
 */
bool outage_retry(struct outage *outage, enum status *status, struct error *err);

/* Open a store that this process has opened before. A missing one is STATUS_TEMPORARY. */
enum status outage_open(struct store **store, const char *url, int64_t deadline, struct error *err);

/* Whether an agent or preempt-store join has joined for this process (PREEMPT_LIFE). */
bool outage_is_joined(void);
/* Like outage_open if outage_is_joined(); otherwise a missing store is STATUS_NO. */
enum status outage_open_joined(
	struct store **store, const char *url, int64_t deadline, struct error *err);

#endif
