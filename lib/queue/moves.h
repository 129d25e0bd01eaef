/* SPDX-License-Identifier: MIT */
/*
 * Moves of commands from place to place. One transaction makes several moves, and changes the tally
 * that counts them (struct queue_tally), so that each move is counted. The caller says what a move
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
 * If the answer to a worker's transaction is lost, it is unknown whether it was carried out, or
 * still will be. queue->unknown is then set, and the worker begins no other moves until
 * moves_settle has found out. This is correct because
 *  - no other process writes count/WORKER, and each transaction with moves compares it and puts a
 *    new token there: so of a late transaction and the one that settles, only one can succeed;
 *  - queue->tallied is not read again while the outcome is unknown;
 *  - the transaction that settles also compares the registration, so a worker that was declared
 *    dead cannot make its tally again.
 * Clients share count/@clients. They do not settle: their calls can be repeated.
 */
#ifndef QUEUE_MOVES_H
#define QUEUE_MOVES_H

#include "queue/queue.h"
#include "store/builder.h"

/* A command that a worker has taken: the item, the lease, and how it ended. */
struct queue_run {
	struct queue_item item;
	struct queue_lease lease;
	store_revision revision;   /* of run/ID */
	store_revision dependents; /* of after/ID, if known: for moves_over */
	/* All members are set (some by run_end), even if the command will wait again. */
	struct queue_result result;
	char *out, *err; /* output that is not in a file: result.out and result.err bytes */
	enum run_outcome {
		RUN_PENDING,  /* not handed in yet */
		RUN_SENT,     /* handed in, with unknown outcome */
		RUN_ACCEPTED, /* the result is in the store */
		RUN_REFUSED,  /* the lease is gone: the command was given to another worker */
	} outcome;
};
/* After result.ending was set: set state, history, token, worker and host of the result. */
void run_end(struct queue_run *run);
/* After run_end: hand it in as cancelled, for this request (cancel/ID). */
void run_end_cancelled(struct queue_run *run, const struct store_entry *cancel_request);
/* Whether it has failed in a way that ends other commands. */
bool run_halts_others(const struct queue_run *run);
void run_release(struct queue_run *run);

struct moves {
	struct transaction t;
	struct queue *queue;
	struct queue_tally tally; /* what these moves add to our tally */
	bool failing;		  /* one of them has put a failure into the key error */
};

/* Begin. Reads the tally of this process if it is not known, so this may fail. */
enum status moves_begin(struct moves *moves, struct queue *queue, struct error *err);

/* A key "queue/NAME/..." that lives as long as the transaction. */
const char *queue_own_key(const struct queue *queue, struct transaction *t, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* "queue/NAME/WHAT/ID" */
const char *queue_own_key_at(
	const struct queue *queue, struct transaction *t, const char *what, uint64_t id);
/* Require that "WHAT/ID" has this revision (0: absent). If not, the answer has the key as it is. */
void moves_require(struct moves *moves, const char *what, uint64_t id, store_revision revision);

/* Move a command from waiting to running. The answer's next entry will be its item. */
void moves_take(
	struct moves *moves, const char *waiting_key, uint64_t id, const struct queue_lease *lease);
/*
 * From running to waiting, or over with run->out and run->err, as run->result.state says. With
 * note, a failure that ends other commands is also put into the key error (struct queue_failure),
 * unless an earlier one of these moves has done so; the caller then requires that key to be absent.
 */
void moves_end(struct moves *moves, const struct queue_run *run, bool note);
/* Tell the worker of a running command to end it. because: the command whose failure is the reason;
 * or 0. */
void moves_request_cancel(struct moves *moves, uint64_t id, uint64_t because);
/* Read that reason from the entry of "cancel/ID"; 0: there is none. */
uint64_t queue_cancel_cause(const struct store_entry *cancel_request);
/* From waiting or blocked to cancelled. because: the command whose failure is the reason; or 0. */
void moves_cancel(struct moves *moves, const char *waiting_key, uint64_t id,
	const struct queue_history *history, uint64_t because, const char *why);
/*
 * A command is over. dependents: the revision that after/ID (after.h) must have; 0: absent. If it
 * exists, note that queue_carry_on has to tell the commands that wait for this one.
 */
void moves_over(struct moves *moves, uint64_t id, store_revision dependents);
/* Put wait/PRIORITY/ID: the command waits for a worker. */
void queue_wait(const struct queue *queue, struct transaction *t, const struct queue_item *item,
	const struct queue_history *history);
/*
 * From over to waiting, or to blocked by `after` (NULL: none). Its output and the attempts that it
 * has used are forgotten; its starts are still counted.
 */
void moves_reopen(struct moves *moves, const struct queue_item *item, enum queue_state was,
	uint64_t starts, const char *after);

/*
 * Run the transaction. STATUS_OK and answer->held: done. STATUS_OK and not held: begin again; the
 * answer's entries are the keys of moves_require and transaction_require_told, in the order of the
 * calls, and last the tally of this process, which is now known. After a failure nothing was
 * changed if answer->known; otherwise, in a worker, queue->unknown is set.
 */
enum status moves_run(struct moves *moves, struct store_answer *answer, struct error *err);
/* The same without the answer. STATUS_NO: a requirement does not hold. */
enum status moves_run_told(struct moves *moves, struct error *err);
void moves_release(struct moves *moves);

bool moves_are_unknown(const struct queue *queue);
struct moves_fate {
	enum {
		MOVES_NOT_MADE, /* the transaction was not made, and never will be */
		MOVES_MADE,
		MOVES_FENCED, /* declared dead; the transaction was made, or never will be */
	} outcome;
	store_revision revision; /* MOVES_MADE: of that transaction */
};
/*
 * Find out whether the transaction of unknown outcome was carried out. We are the worker with this
 * token, registered at this revision. After MOVES_MADE and MOVES_FENCED queue->unknown stays set
 * until moves_settled, so that this can be called again.
 */
enum status moves_settle(struct queue *queue, const char *token, store_revision registered,
	struct moves_fate *fate, struct error *err);
void moves_settled(struct queue *queue);

/* Make the record of a failure. */
void queue_failure_of(const struct queue_item *item, const struct queue_result *result,
	struct queue_failure *failure);
#endif
