/* SPDX-License-Identifier: MIT */
/*
 * What a worker does with the store: in one transaction it hands in what has ended and takes what
 * it has room for. A result is accepted only while the lease that it was taken with still stands.
 */
#ifndef QUEUE_EXCHANGE_H
#define QUEUE_EXCHANGE_H

#include "queue/moves.h"
#include "queue/workers/workers.h"

enum { EXCHANGE_PAUSED = 64 };

/* To begin with, all is zero except queue and worker. It is kept from call to call. */
struct exchange {
	struct queue *queue;
	const struct queue_worker *worker;

	/* What is asked, set before each call. */
	struct queue_run *ended[QUEUE_BATCH]; /* to hand in: run_end, RUN_PENDING or RUN_SENT */
	size_t ended_count;
	size_t want; /* commands to take; at most QUEUE_BATCH; 0 after the call */

	/* The answer: the first got are ours now, and the caller's to release. */
	struct queue_run taken[QUEUE_BATCH];
	size_t got;
	/*
	 * Why fewer commands were taken than wanted, for store_wait: none (or no more) waited at
	 * revision `seen` ("wait/"), or an error was pending then ("error").
	 */
	bool error_pending;
	store_revision seen;
	bool pending; /* queue_carry_on may have to be called: set here, cleared by the caller */

	/* Commands that this worker leaves alone for a while (rules_pause). */
	struct {
		uint64_t id;
		int64_t until;
	} paused[EXCHANGE_PAUSED];
	size_t spread;	   /* among how many more at the head it chooses: grows by conflicts */
	size_t candidates; /* the first of taken that are chosen, or sent and of unknown outcome */
	char waiting[QUEUE_BATCH][QUEUE_KEY_MAX]; /* their keys */
	bool fenced;
};

/*
 * Hand in what has ended and take commands. Nothing is taken while an error is pending, nor where
 * other workers were faster many times in a row: then seen is 0, and store_wait returns at once.
 * STATUS_OK: each ended run is RUN_ACCEPTED or RUN_REFUSED. STATUS_NO: this worker was declared
 * dead: nothing was taken, and what was not accepted was refused. Else (STATUS_TEMPORARY and the
 * like) it is to be called again, with the ended runs that are RUN_PENDING or RUN_SENT before
 * others; runs may have been accepted all the same, and what was taken is ours. While
 * moves_are_unknown(queue), nothing else that moves commands may be begun.
 */
enum status exchange_run(struct exchange *exchange, struct error *err);

/* When the next paused command is free again; CLOCK_NEVER: none is paused. */
int64_t exchange_due(const struct exchange *exchange);

#endif
