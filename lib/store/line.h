/* SPDX-License-Identifier: MIT */
/*
 * A line of threads of any processes in memory that they share: who comes first is served first,
 * waiting has a deadline and needs no signal, and whoever is killed, waiting or served, is passed
 * over at once.
 *
 * A mutex is not a line: who has just left it and comes again is faster than who must be woken
 * first; with 64 processes some waited for seconds. Here each has a place of his own, and waits for
 * the one before him.
 */
#ifndef STORE_LINE_H
#define STORE_LINE_H

#include <pthread.h>
#include <stdint.h>

#define LINE_PLACES 448

struct line_place {
	pthread_mutex_t taken; /* robust: held by its owner from coming to going */
	uint64_t ticket;
	uint64_t served; /* its owner's turn came */
};

/* Lies in shared memory; nobody else touches the inside. */
struct line {
	pthread_mutex_t door;	  /* robust: held for a moment, to draw a ticket */
	_Atomic uint64_t next;	  /* ticket */
	_Atomic uint64_t serving; /* the newest ticket whose turn came */
	struct line_place places[LINE_PLACES];
};

/* What one who is in the line remembers; zeroed: he is not. */
struct line_ticket {
	struct line_place *place;
	uint64_t number;
};

/* Once, by who made the memory, before anybody else sees it. */
void line_init(struct line *line);

/*
 * Wait for one's turn: 0 when it has come (or when there are more than LINE_PLACES, without it),
 * ETIMEDOUT, or another errno: the memory is damaged, and the line must not be used any more.
 */
int line_enter(struct line *line, struct line_ticket *ticket, int64_t deadline);
/*
 * The same in two steps: draw a ticket (its place is NULL where all are taken), and wait for its
 * turn, which may be tried again after ETIMEDOUT. Then line_leave in any case.
 */
#define LINE_AT_ONCE 0 /* a deadline: look whether it has come, and do not wait */
int line_draw(struct line *line, struct line_ticket *ticket, int64_t deadline);
int line_wait(struct line *line, struct line_ticket *ticket, int64_t deadline);
/* In the thread that entered. */
void line_leave(struct line_ticket *ticket);

#endif
