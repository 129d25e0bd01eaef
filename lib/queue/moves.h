/* SPDX-License-Identifier: MIT */
/*
 * Moves of commands from place to place, built into one transaction together with the tally that
 * counts them (struct queue_tally), so that no move is uncounted. The caller says what a move
 * requires: moves_require, or transaction_require_told on moves->t.
 *
 *	moves_begin(&moves, queue, &err);
 *	moves_require(&moves, "run", id, revision);
 *	moves_end(&moves, &run, true);
 *	status = moves_run(&moves, &answer, &err);
 *	... answer.entries
 *	store_answer_release(&answer);
 *	moves_release(&moves);
 *
 * The answer to a worker's transaction can be lost: whether it was made, or still will be, is
 * unknown then. queue->unknown says so, and the worker begins no other moves until moves_settle has
 * found out. That is sound because
 *  - no other process writes count/WORKER, and each transaction that moves something compares it
 *    and puts a fresh token there: a transaction that settles and one that is made late exclude
 *    each other by the store's own compares;
 *  - queue->tallied is not read again while the outcome is unknown;
 *  - settling compares the registration, too: a worker that was declared dead leaves no tally.
 * Clients share count/@clients: each of their calls may be repeated instead.
 */
#ifndef QUEUE_MOVES_H
#define QUEUE_MOVES_H

#include "queue/queue.h"
#include "store/builder.h"

/* A command in the hands of a worker: what was asked, the lease, and how it ended. */
struct queue_run {
	struct queue_item item;
	struct queue_lease lease;
	store_revision revision;   /* of run/ID */
	store_revision dependents; /* of after/ID, where that is known: moves_over */
	/* All of it is filled, also where it goes back to waiting; run_end does some. */
	struct queue_result result;
	char *out, *err; /* its output where that is not filed: result.out and .err bytes */
	/* What is known of handing it in. */
	enum run_outcome {
		RUN_PENDING,  /* it is to be handed in */
		RUN_SENT,     /* it was, and the outcome is unknown */
		RUN_ACCEPTED, /* it counts */
		RUN_REFUSED,  /* the lease was lost: the command was given to another worker */
	} outcome;
};
/* It has ended as result.ending says: fill in where it goes (rules.h), and of whom the result is.
 */
void run_end(struct queue_run *run);
/* Whether it is a failure that ends other commands. */
bool run_halts_others(const struct queue_run *run);
void run_release(struct queue_run *run);

struct moves {
	struct transaction t;
	struct queue *queue;
	struct queue_tally tally; /* what is added to the queue's by these moves */
	bool failing;		  /* one of them is a failure that ends the others */
};

/* Reads this process's tally first where it is not known (STATUS_TEMPORARY...). */
enum status moves_begin(struct moves *moves, struct queue *queue, struct error *err);

/* A key, "queue/NAME/" + rest, that lives as long as the transaction. */
const char *queue_own_key(const struct queue *queue, struct transaction *t, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* "queue/NAME/WHAT/ID" */
const char *queue_own_key_at(
	const struct queue *queue, struct transaction *t, const char *what, uint64_t id);
/* "WHAT/ID" must be at this revision (0: absent); where it is not, the answer has the key as it is.
 */
void moves_require(struct moves *moves, const char *what, uint64_t id, store_revision revision);

/* waiting to running. Its item is read: the next of the answer's entries. */
void moves_take(
	struct moves *moves, const char *waiting_key, uint64_t id, const struct queue_lease *lease);
/*
 * running to where run->result.state says: QUEUE_WAITING, or over, with its output where that is
 * short. Notes a failure (struct queue_failure) unless note is false, or one of these moves has
 * noted one already; the caller then requires that the key error is absent.
 */
void moves_end(struct moves *moves, const struct queue_run *run, bool note);
/* One that runs: its worker is told to end it; because that command failed, or 0. */
void moves_request_cancel(struct moves *moves, uint64_t id, uint64_t because);
/* What stands in "cancel/ID" of that; 0: the entry is empty, or does not say it. */
uint64_t queue_cancel_cause(const struct store_entry *cancel_request);
/* waiting or blocked to over, without having run; because this command failed, or 0. */
void moves_cancel(struct moves *moves, const char *waiting_key, uint64_t id,
	const struct queue_history *history, uint64_t because, const char *why);
/*
 * One comes to be over: dependents is the revision of after/ID (after.h; 0: absent), which must
 * still be so. Where it is there, those that it blocks are to be told: queue_carry_on.
 */
void moves_over(struct moves *moves, uint64_t id, store_revision dependents);
/* It waits for a worker: for every move that ends there. */
void queue_wait(const struct queue *queue, struct transaction *t, const struct queue_item *item,
	const struct queue_history *history);
/*
 * over to waiting, or to blocked by those in after (NULL: none), its output and what it has used up
 * forgotten; its starts go on being counted.
 */
void moves_reopen(struct moves *moves, const struct queue_item *item, enum queue_state was,
	uint64_t starts, const char *after);

/*
 * STATUS_OK with answer->held: done. Not held: the answer's entries are the keys that were
 * required, in that order; this process's tally is the last of them and was taken note of: begin
 * again. Where it fails, nothing was changed if answer->known; else queue->unknown is set.
 */
enum status moves_run(struct moves *moves, struct store_answer *answer, struct error *err);
/* The same, of which only the outcome counts. STATUS_NO: a requirement does not hold. */
enum status moves_run_told(struct moves *moves, struct error *err);
void moves_release(struct moves *moves);

bool moves_are_unknown(const struct queue *queue);
/*
 * Find out whether the transaction of unknown outcome was made, as the worker with this token,
 * which was registered at this revision. After MOVES_MADE and MOVES_FENCED it stays unknown, so
 * that this can be asked again, until moves_settled.
 */
struct moves_fate {
	enum {
		MOVES_NOT_MADE, /* and it never will be */
		MOVES_MADE,
		MOVES_FENCED, /* this worker was declared dead, before or after; it never will be */
	} outcome;
	store_revision revision; /* MOVES_MADE: of all that it put */
};
enum status moves_settle(struct queue *queue, const char *token, store_revision registered,
	struct moves_fate *fate, struct error *err);
void moves_settled(struct queue *queue);

/* What is told of a command that failed. */
void queue_failure_of(const struct queue_item *item, const struct queue_result *result,
	struct queue_failure *failure);
#endif
