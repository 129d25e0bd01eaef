/* SPDX-License-Identifier: MIT */
/* What the store shows of an attempt, as lanes for the drawing (timeline.h). */
#ifndef STATUS_TIMELINE_OF_H
#define STATUS_TIMELINE_OF_H

#include "status/run_status.h"
#include "status/timeline.h"

/*
 * Pure. utc: when it was read. The phases of the newest round are drawn. Clocks of machines differ:
 * a time that would come before what it follows (a save before the decision) is moved up to that.
 * The strings are those of status, which must live longer than attempt.
 */
void timeline_of(const struct run_status *status, int64_t utc, struct timeline_attempt *attempt);
void timeline_release(struct timeline_attempt *attempt);

#endif
