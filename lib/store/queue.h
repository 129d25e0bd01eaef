/* SPDX-License-Identifier: MIT */
/*
 * A queue of threads of any processes in memory that they share: who comes first is served first,
 * waiting has a deadline and needs no signal, and whoever is killed, waiting or served, is passed
 * over at once.
 *
 * A mutex is not a queue: who has just left it and comes again is faster than who must be woken
 * first; with 64 processes some waited for seconds. Here each has a place of his own, and waits for
 * the one before him.
 */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include <pthread.h>
#include <stdint.h>

#define QUEUE_PLACES 448

struct queue_place {
	pthread_mutex_t taken; /* robust: held by its owner from coming to going */
	uint64_t ticket;
	uint64_t served; /* its owner's turn came */
};

/* Lies in shared memory; nobody else touches the inside. */
struct queue {
	pthread_mutex_t door;	  /* robust: held for a moment, to draw a ticket */
	uint64_t next;		  /* ticket */
	_Atomic uint64_t serving; /* the newest ticket whose turn came */
	struct queue_place places[QUEUE_PLACES];
};

/* What one who is in the queue remembers; zeroed: he is not. */
struct queue_ticket {
	struct queue_place *place;
};

/* Once, by who made the memory, before anybody else sees it. */
void queue_init(struct queue *queue);

/*
 * Wait for one's turn: 0 when it has come (or when there are more than QUEUE_PLACES, without it),
 * ETIMEDOUT, or another errno: the memory is damaged, and the queue must not be used any more.
 */
int queue_enter(struct queue *queue, struct queue_ticket *ticket, int64_t deadline);
/* In the thread that entered. */
void queue_leave(struct queue_ticket *ticket);

#endif
