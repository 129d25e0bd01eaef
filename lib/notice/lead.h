/* SPDX-License-Identifier: MIT */
/* How long before a known end its notice is given. Pure. */
#ifndef NOTICE_LEAD_H
#define NOTICE_LEAD_H

#include <stdint.h>

/*
 * Return grace (ms) if the user gave one (not negative); otherwise 5 minutes, but at most a quarter
 * of whole, the ms from start to end: a short job must not get its notice at its start. The group
 * trains on after a first save if time is left, so a long lead costs only one more checkpoint.
 */
int64_t notice_lead(int64_t grace, int64_t whole);

#endif
