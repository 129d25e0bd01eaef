/* SPDX-License-Identifier: MIT */
/*
 * A ticket queue in shared memory for threads of any processes: first come, first served. Waiting
 * has a deadline and needs no signal. A process that is killed, waiting or being served, is skipped
 * at once.
 *
 * A mutex is not fair: a process that has just released it takes it again before a waiting process
 * has woken up; with 64 processes some waited for seconds. Here each process has its own place and
 * waits for the one before it.
 */
#ifndef STORE_MACHINE_TICKET_QUEUE_H
#define STORE_MACHINE_TICKET_QUEUE_H

#include <pthread.h>
#include <stdint.h>

#define TICKET_QUEUE_PLACES 448

struct ticket_queue_place {
	pthread_mutex_t taken; /* robust: held by its owner from its draw until it leaves */
	uint64_t ticket;
	uint64_t served; /* its owner's turn came */
};

/* In shared memory. Only ticket_queue.c touches the inside. */
struct ticket_queue {
	pthread_mutex_t door;	  /* robust: held for a moment, to draw a ticket */
	_Atomic uint64_t next;	  /* ticket */
	_Atomic uint64_t serving; /* the newest ticket whose turn came */
	struct ticket_queue_place places[TICKET_QUEUE_PLACES];
};

/* A process's place in the queue; zeroed: it is not in the queue. */
struct queue_ticket {
	struct ticket_queue_place *place;
	uint64_t number;
};

/* Once, by the process that made the memory, before any other process sees it. */
void ticket_queue_init(struct ticket_queue *queue);

/*
 * Draw a ticket; its place is NULL where all places are taken: such a process goes on without a
 * turn. Then wait for its turn, which may be tried again after ETIMEDOUT, and leave in any case.
 * Both answer 0, ETIMEDOUT, or another errno: the memory is damaged, and the queue must not be used
 * any more.
 */
#define TICKET_QUEUE_AT_ONCE 0 /* a deadline: look whether it has come, and do not wait */
int ticket_queue_draw(struct ticket_queue *queue, struct queue_ticket *ticket, int64_t deadline);
int ticket_queue_wait(struct ticket_queue *queue, struct queue_ticket *ticket, int64_t deadline);
/* In the thread that drew the ticket. */
void ticket_queue_leave(struct queue_ticket *ticket);

#endif
