/* SPDX-License-Identifier: MIT */
/* Turn what the store shows of an attempt into the input of the drawing (timeline.h). */
#ifndef STATUS_TIMELINE_OF_H
#define STATUS_TIMELINE_OF_H

#include "status/run_status.h"
#include "status/timeline.h"

/*
 * Pure. utc: when status was read. Clocks of machines differ: if a save seems to come before the
 * decision, it is moved to the time of the decision, and likewise for other events. attempt points
 * to strings of status, which must live longer.
 */
void timeline_of(const struct run_status *status, int64_t utc, struct timeline_attempt *attempt);
void timeline_release(struct timeline_attempt *attempt);

#endif
