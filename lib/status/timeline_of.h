/* SPDX-License-Identifier: MIT */
/* Make lanes for the drawing (timeline.h) of what the store shows of an attempt. */
#ifndef STATUS_TIMELINE_OF_H
#define STATUS_TIMELINE_OF_H

#include "status/run_status.h"
#include "status/timeline.h"

/*
 * Pure. utc: when it was read. The phases are those of the newest round. Clocks of machines differ:
 * an event that seems to come before one that it must follow (a save before the decision) is moved
 * to the time of that. attempt points to strings of status, which must live longer.
 */
void timeline_of(const struct run_status *status, int64_t utc, struct timeline_attempt *attempt);
void timeline_release(struct timeline_attempt *attempt);

#endif
