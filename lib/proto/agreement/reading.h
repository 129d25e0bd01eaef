/* SPDX-License-Identifier: MIT */
/* What a reading of the store tells the agreement, and when it needs the next one. */
#ifndef PROTO_AGREEMENT_READING_H
#define PROTO_AGREEMENT_READING_H

#include "proto/agreement/agreement.h"

#define POLL_OFTEN 1000 /* ms between two readings by the few tasks that read often */

/* The view has changed: note what is new in it. */
void agreement_take_in(struct agreement *a, int64_t now);
/*
 * The store has answered; counted: the reports were counted. Silence of the other tasks is only the
 * time up to the last count, and of this only the time in which the store answered.
 */
void agreement_count_silence(struct agreement *a, int64_t now, bool counted);
/* ms after which to read without a notification: the task that should send it may be dead. */
int64_t agreement_pace(const struct agreement *a);
/* ms between two counts of records: a count costs the store more the more records there are. */
int64_t agreement_count_pace(const struct agreement *a);
/* ms that this task waits for the tasks that act before it. */
int64_t agreement_turn_delay(const struct agreement *a);
/* ms for which this task may get no answer from a store that works. */
int64_t agreement_store_patience(const struct agreement *a);
/*
 * Once all the records that this task waits for (their number: awaited) were counted, plan to read
 * them: at once if its own agent wrote the last one; otherwise after the time in which the agent
 * that wrote the last one can read them and tell the result to all.
 */
void agreement_await(struct agreement *a, struct agreement_plan *plan, uint64_t awaited);
/* The longest durations and the skew: measured here, and by the reports of the newest round. */
struct grace_measure agreement_measure(const struct agreement *a);

#endif
