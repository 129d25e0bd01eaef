/* SPDX-License-Identifier: MIT */
/*
 * A store that was there and does not answer now, while a process joins: ask it again until the
 * deadline of the join, and never make another one in its place.
 */
#ifndef GROUP_OUTAGE_H
#define GROUP_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct outage {
	int64_t deadline; /* for asking again */
	int cancel;	  /* a descriptor: readable means give up; -1 */
	bool said;	  /* that the store does not answer */
};

/*
 * After a step that answered *status. True: the store could not be asked, a moment has passed, do
 * the step again. False: *status stands; STATUS_NO, with err: cancelled. Says on stderr when the
 * store stops and when it starts to answer.
 */
bool outage_retry(struct outage *outage, enum status *status, struct error *err);

/* Open a store that this process has opened before. A missing one is STATUS_TEMPORARY. */
enum status outage_open(struct store **store, const char *url, int64_t deadline, struct error *err);

#endif
