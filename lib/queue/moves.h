/* SPDX-License-Identifier: MIT */
/*
 * Moves of commands from place to place, built into one transaction together with the tally that
 * counts them (count.h), so that no move is ever uncounted. What a move requires is the caller's to
 * say with transaction_require_told on moves->t.
 *
 *	moves_begin(&moves, queue);
 *	transaction_require_told(&moves.t, key, revision);
 *	moves_end(&moves, item, state, &result, out, err);
 *	status = moves_run(&moves, &answer, &err);
 *	... answer.entries
 *	store_answer_release(&answer);
 *	moves_release(&moves);
 */
#ifndef QUEUE_MOVES_H
#define QUEUE_MOVES_H

#include "queue/queue.h"
#include "store/builder.h"

struct moves {
	struct transaction t;
	struct queue *queue;
	struct queue_tally tally; /* what is added to the queue's by these moves */
	bool failing;		  /* one of them is a failure that ends the others */
};

/* Reads this process's tally first where it is not known (STATUS_TEMPORARY...). */
enum status moves_begin(struct moves *moves, struct queue *queue, struct error *err);

/* waiting to running. Its spec is read: the next of the answer's entries. */
void moves_take(
	struct moves *moves, const char *waiting_key, uint64_t id, const struct queue_lease *lease);
/*
 * running to where state says: QUEUE_WAITING (with result->history), or over, with its output where
 * that is short (NULL: none or filed). Notes a failure (queue_failure) unless note is false, or one
 * of these moves has noted one already; the caller then requires that the key error is absent.
 */
void moves_end(struct moves *moves, const struct queue_item *item, enum queue_state state,
	const struct queue_result *result, const char *out, const char *err, bool note);
/* One that runs: its worker is told to end it; because that command failed, or 0. */
void moves_request_cancel(struct moves *moves, uint64_t id, uint64_t because);
/* What stands in "cancel/ID" of that; 0: the entry is empty, or does not say it. */
uint64_t queue_cancel_cause(const struct store_entry *cancel_request);
/* waiting to over, without having run; because this command failed, or 0. */
void moves_cancel(struct moves *moves, const char *waiting_key, uint64_t id,
	const struct queue_history *history, uint64_t because, const char *why);
/* over to waiting, its output and what it has used up forgotten; its starts go on being counted. */
void moves_reopen(
	struct moves *moves, const struct queue_item *item, enum queue_state was, uint64_t starts);

/*
 * STATUS_OK with answer->held: done. Not held: the answer's entries are the keys that were
 * required, in that order; this process's tally is the last of them and was taken note of: begin
 * again. Where it fails, the outcome is unknown unless answer->known; the tally will be read again.
 */
enum status moves_run(struct moves *moves, struct store_answer *answer, struct error *err);
void moves_release(struct moves *moves);

/* What is told of a command that failed. */
void queue_failure_of(const struct queue_item *item, const struct queue_result *result,
	struct queue_failure *failure);
#endif
