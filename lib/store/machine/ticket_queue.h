/* SPDX-License-Identifier: MIT */
/*
 * A fair queue in shared memory for threads of any processes. Waiting has a deadline. A process
 * that is killed while it waits or has its turn is skipped at once.
 *
 * A mutex is not fair: a process that has just released it takes it again before a waiting process
 * has woken up; with 64 processes some waited for seconds. Here each process has its own place, and
 * waits for the mutex of the place before it.
 */
#ifndef STORE_MACHINE_TICKET_QUEUE_H
#define STORE_MACHINE_TICKET_QUEUE_H

#include <pthread.h>
#include <stdint.h>

#define TICKET_QUEUE_PLACES 448

struct ticket_queue_place {
	pthread_mutex_t taken; /* robust: held by its owner from its draw until it leaves */
	uint64_t ticket;
	uint64_t served; /* its owner has had or has its turn */
};

/* In shared memory. Only ticket_queue.c uses the members. */
struct ticket_queue {
	pthread_mutex_t door;	  /* robust: held for a moment, to draw a ticket */
	_Atomic uint64_t next;	  /* the next ticket to draw */
	_Atomic uint64_t serving; /* the newest ticket that has had its turn */
	struct ticket_queue_place places[TICKET_QUEUE_PLACES];
};

/* A process's place in the queue; zeroed: it is not in the queue. */
struct queue_ticket {
	struct ticket_queue_place *place;
	uint64_t number;
};

/* Called once by the process that makes the memory, before any other process sees it. */
void ticket_queue_init(struct ticket_queue *queue);

/*
 * Draw a ticket (place is NULL if all places are taken: then go on without a turn), wait for its
 * turn, and leave in any case. After ETIMEDOUT you may wait again. Both return 0, ETIMEDOUT, or
 * another errno: the memory is damaged, and the queue must not be used any more.
 */
#define TICKET_QUEUE_AT_ONCE 0 /* a deadline in the past: do not wait */
int ticket_queue_draw(struct ticket_queue *queue, struct queue_ticket *ticket, int64_t deadline);
int ticket_queue_wait(struct ticket_queue *queue, struct queue_ticket *ticket, int64_t deadline);
/* Called in the thread that drew the ticket. */
void ticket_queue_leave(struct queue_ticket *ticket);

#endif
