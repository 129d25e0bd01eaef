/* SPDX-License-Identifier: MIT */
/*
 * A worker's exchange with the store: in one transaction it hands in the runs that have ended and
 * takes new commands. A result is accepted only if the lease of its run still exists.
 */
#ifndef QUEUE_EXCHANGE_H
#define QUEUE_EXCHANGE_H

#include "queue/moves.h"
#include "queue/workers/workers.h"

/*
 * The commands that a worker leaves alone for a while (rules_pause), until exchange_pauses_end.
 * Initially zero.
 */
struct exchange_pauses {
	struct exchange_pause {
		uint64_t id;
		int64_t until;
	} * items;
	size_t count, room;
};
/* When the first pause is over; CLOCK_NEVER: there is none. */
int64_t exchange_pauses_due(const struct exchange_pauses *pauses);
/* Remove the pauses that are over. Returns whether there was one. */
bool exchange_pauses_end(struct exchange_pauses *pauses, int64_t now);
void exchange_pauses_release(struct exchange_pauses *pauses);

/* Initially zero except queue, worker and pauses. Keep it from call to call. */
struct exchange {
	struct queue *queue;
	const struct queue_worker *worker;

	/* The caller sets the next three before each call. */
	struct queue_run *ended[QUEUE_BATCH]; /* after run_end; RUN_PENDING or RUN_SENT */
	size_t ended_count;
	size_t want; /* commands to take, at most QUEUE_BATCH; 0 after the call */

	/* The answer: the first `got` are this worker's now; the caller releases them. */
	struct queue_run taken[QUEUE_BATCH];
	size_t got;
	/*
	 * If fewer commands were taken than wanted: at revision `seen`, no more were waiting, or
	 * (if error_pending) an error was pending. The caller can wait for a change after `seen`.
	 */
	bool error_pending;
	store_revision seen;
	bool pending; /* set: queue_carry_on has to be called; the caller clears it */

	struct exchange_pauses *pauses; /* NULL: it leaves no command alone */
	size_t spread;	   /* choose among this many more than wanted; grows with conflicts */
	size_t candidates; /* how many of taken are chosen, but not (known to be) ours yet */
	char waiting[QUEUE_BATCH][QUEUE_KEY_MAX]; /* the keys of the candidates */
	bool fenced;
};

/*
 * Hand in ended runs and take commands. No command is taken while an error is pending, or if other
 * workers were faster many times in a row: in that case seen is 0, so store_wait returns at once.
 * STATUS_OK: each ended run is RUN_ACCEPTED or RUN_REFUSED. STATUS_NO: this worker was declared
 * dead; no command was taken, and all runs that are not accepted are refused. After another status
 * (STATUS_TEMPORARY, for example) call this again, with the runs that are RUN_PENDING or RUN_SENT
 * before others; some runs may have been accepted, and commands taken: if the next command that
 * waits is damaged, the ended runs are handed in before this returns STATUS_DAMAGED. While
 * moves_are_unknown(queue), begin no other moves.
 */
enum status exchange_run(struct exchange *exchange, struct error *err);

/*
 * Whether one of the ended runs, not handed in yet, is a failure that stops the queue. If so, ask
 * for no commands: they would be taken together with the failure.
 */
bool exchange_has_failure(const struct exchange *exchange);

#endif
