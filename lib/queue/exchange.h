/* SPDX-License-Identifier: MIT */
/*
 * What a worker does with the store: in one transaction it hands in what has ended and takes what
 * it has room for. A result is accepted only while the lease that it was taken with still stands.
 */
#ifndef QUEUE_EXCHANGE_H
#define QUEUE_EXCHANGE_H

#include "queue/workers.h"

/* A command that has ended, and where it goes (rules_decide). */
struct queue_return {
	struct queue_item *item;
	store_revision lease; /* as it was taken */
	char token[17];
	enum queue_state state;	    /* QUEUE_WAITING: given back, with result.history */
	struct queue_result result; /* filled whole, also where it is given back */
	const char *out, *err;	    /* its output where that is not filed; result.out bytes */
	/* The answer, once it is known: it counts, or the lease was lost and others have it. */
	bool answered, accepted;
};

/* A command that is ours now. */
struct queue_taken {
	struct queue_item item;	      /* to be released */
	struct queue_history history; /* this start counted */
	char token[17];
	store_revision lease;
	int64_t since; /* UTC, ms */
};

/* A command that waits, and that we would like to have. */
struct exchange_candidate {
	char key[QUEUE_KEY_MAX];
	uint64_t id;
	store_revision revision;
	struct queue_lease lease;
};

enum { EXCHANGE_PAUSED = 64 };

/* What an exchange remembers between calls. Zeroed is fresh. */
struct exchange {
	/* Commands that this worker leaves alone for a while (rules_pause). */
	struct {
		uint64_t id;
		int64_t until;
	} paused[EXCHANGE_PAUSED];
	size_t spread; /* among how many more at the head it chooses: grows by conflicts */
	/*
	 * Why fewer commands were taken than wanted, for store_wait: none (or no more) waited at
	 * revision `seen` ("wait/"), or an error was pending then ("error").
	 */
	bool error_pending;
	store_revision seen;
	/* A transaction whose answer was lost may have been made: what it would have taken. */
	bool unknown;
	char handed_in[QUEUE_BATCH][17]; /* the tokens of the returns that were in it */
	size_t handed_in_count;
	struct exchange_candidate candidates[QUEUE_BATCH];
	size_t candidate_count;
};

/*
 * Hand in returns (at most QUEUE_BATCH) and take at most want (at most QUEUE_BATCH); *got of them
 * were there (taken has room for QUEUE_BATCH). Nothing is taken while an error is pending, nor
 * where other workers were faster many times in a row: then seen is 0, and store_wait returns at
 * once. Tries again by itself until it is known what was accepted, or until deadline.
 * STATUS_TEMPORARY, STATUS_TIMEOUT: returns that are not answered must be handed in again before
 * anything else is done (others may be added); *got may be set all the same, and what was taken is
 * ours. STATUS_NO: this worker's registration is gone: nothing was taken, and what was not accepted
 * was refused (it was given to others).
 */
enum status exchange_run(struct exchange *exchange, struct queue *queue,
	const struct queue_worker *worker, struct queue_return *returns, size_t count,
	struct queue_taken *taken, size_t want, size_t *got, int64_t deadline, struct error *err);

/* When the next paused command is free again; CLOCK_NEVER: none is paused. */
int64_t exchange_due(const struct exchange *exchange);

#endif
