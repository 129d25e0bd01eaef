/* SPDX-License-Identifier: MIT */
/*
 * Commands that wait for others: each is blocked (blocked/ID) until all commands that it names have
 * succeeded, and is cancelled when one of them ends in another way. Ids are given as text, "3-7,9".
 *
 * The transaction that blocks a command does not look at the commands that it waits for; it puts
 * pending/new/ID. The transaction that ends a command X only compares after/X; if that exists, it
 * puts pending/over/X. The rest is done by queue_carry_on, in batches, in any process that looks at
 * the queue: workers, join, done, schedule, retry, forget. Each of its transactions compares the
 * pending record, so a process may be killed at any point, and several may do the same work.
 * Always:
 *  - if blocked/D names X, then pending/new/... still has D and X; or after/X spans D, and either X
 *    is not over, or pending/over/X exists;
 *  - while pending/over/X exists, X is over, and is neither put back nor forgotten.
 */
#ifndef QUEUE_AFTER_H
#define QUEUE_AFTER_H

#include "base/parse.h"
#include "queue/moves.h"

#define QUEUE_AFTER_MAX 1000 /* the most commands that a command may wait for */

/*
 * Find which of ids a command has to wait for, as text to be freed; NULL: none. It need not wait
 * for commands that have succeeded. STATUS_USAGE: the queue has no command with one of ids, or more
 * than QUEUE_AFTER_MAX are left. again: the command is put back, perhaps together with some of ids;
 * then succeeded ones are included (queue_carry_on removes them), and forgotten ones are left out.
 */
enum status queue_after(struct queue *queue, const struct parse_numbers *ids, bool again,
	char **left, struct error *err);

/* Put blocked/ID for this item, which waits for `after`. */
void queue_block(const struct queue *queue, struct transaction *t, const struct queue_item *item,
	const struct queue_history *history, const char *after);
/* Put pending/new/FIRST: the blocked commands first to last wait for `after`. */
void queue_block_new(const struct queue *queue, struct transaction *t, uint64_t first,
	uint64_t last, const char *after);

/* Read the revisions of after/ID for these ids (at most store_operations); 0: absent. */
enum status queue_dependents(struct queue *queue, const uint64_t *ids, size_t count,
	store_revision *revisions, struct error *err);

/*
 * Work off the pending records: all of them if left is NULL, else only for about 32 transactions;
 * *left then says whether some may still be pending.
 */
enum status queue_carry_on(struct queue *queue, bool *left, struct error *err);

#endif
