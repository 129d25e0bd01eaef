/* SPDX-License-Identifier: MIT */
/* What a reading of the store tells the agreement, and when it needs the next one. */
#ifndef PROTO_AGREEMENT_READING_H
#define PROTO_AGREEMENT_READING_H

#include "proto/agreement/agreement.h"

#define POLL_OFTEN 1000 /* ms between readings while something is awaited: of a few tasks */

/* The view has changed: note what is new in it. */
void agreement_take_in(struct agreement *a, int64_t now);
/*
 * The store has answered, and the reports were counted, or not. Only time in which it answered is
 * silence of the others, and only as far as they were counted.
 */
void agreement_count_silence(struct agreement *a, int64_t now, bool counted);
/*
 * ms to wait for a notification before reading anyway, at most: the task that should send it may be
 * dead.
 */
int64_t agreement_pace(const struct agreement *a);
/* ms between two counts of records, of which each costs the store as much as there are records. */
int64_t agreement_count_pace(const struct agreement *a);
/* ms by which this task waits for those that act before it. */
int64_t agreement_turn_delay(const struct agreement *a);
/* ms for which the store may say nothing to this task although it works. */
int64_t agreement_store_patience(const struct agreement *a);
/*
 * Once all the records (awaited of them) that this task waits for are there: read them, at once if
 * its agent wrote the last one. Else the agent that did has time to read them and to tell the rest.
 */
void agreement_await(struct agreement *a, struct agreement_plan *plan, uint64_t awaited);
/* What was measured here and what the reports of the newest round say. */
struct grace_measure agreement_measure(const struct agreement *a);

#endif
