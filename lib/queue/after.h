/* SPDX-License-Identifier: MIT */
/*
 * Commands that come after others: each is blocked (blocked/ID) until all that it names have
 * succeeded, and is cancelled when one of them ends otherwise. Ids are given as text, "3-7,9".
 *
 * The transaction that blocks a command looks at none of those that block it: it leaves
 * pending/new/ID, and the one that ends a command only compares after/ID: where that is there, it
 * leaves pending/over/ID. The rest is done by queue_carry_on, in batches, by any process that looks
 * at the queue: workers, join, done, schedule, retry, forget. Each of its transactions compares the
 * record of what is pending, so a process may be killed anywhere, and several may do the same.
 * Always:
 *  - where blocked/D names X, either pending/new/... has D and X still, or after/X spans D, and X
 *    is not over or pending/over/X is there;
 *  - while pending/over/X is there, X is over: it is neither put back nor forgotten before that is
 *    carried on.
 */
#ifndef QUEUE_AFTER_H
#define QUEUE_AFTER_H

#include "base/parse.h"
#include "queue/moves.h"

#define QUEUE_AFTER_MAX 1000 /* that one command may wait for */

/*
 * Those of ids that a command has to wait for, as text to be freed; NULL: none. One that has
 * succeeded is none; one that the queue does not know is STATUS_USAGE. again: of a command that is
 * put back, together with some of these maybe: one that has succeeded is seen to when this is
 * carried on, and one that is not there any more is none.
 */
enum status queue_after(struct queue *queue, const struct parse_numbers *ids, bool again,
	char **left, struct error *err);

/* Put blocked/ID of this item, to wait for after. */
void queue_block(const struct queue *queue, struct transaction *t, const struct queue_item *item,
	const struct queue_history *history, const char *after);
/* Put pending/new/FIRST: the commands from first to last, which are blocked, wait for after. */
void queue_block_new(const struct queue *queue, struct transaction *t, uint64_t first,
	uint64_t last, const char *after);

/* The revisions of after/ID of these (at most store_operations), for moves_over; 0: absent. */
enum status queue_dependents(struct queue *queue, const uint64_t *ids, size_t count,
	store_revision *revisions, struct error *err);

/*
 * Carry on what is pending. left, if it is not NULL: for a while only; whether more is pending
 * then.
 */
enum status queue_carry_on(struct queue *queue, bool *left, struct error *err);

#endif
