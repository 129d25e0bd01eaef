/* SPDX-License-Identifier: MIT */
/*
 * The requests of the processes in a queue (ticket_queue.h): each may post one in the room of its
 * place. The process at the head may take those behind it, run them with its own, and answer them
 * before it leaves the queue. request_room.h has the states and the contents of a room.
 *
 * This is in shared memory. A room gets its memory at its first use, so a store with few processes
 * needs little.
 *
 * A room belongs to one ticket until its owner has left the queue and the queue has gone on:
 * ticket_queue_draw gives a place out again only TICKET_QUEUE_PLACES tickets later, and not before
 * the turn of the process is over that may still write an answer there.
 */
#ifndef STORE_MACHINE_POSTS_H
#define STORE_MACHINE_POSTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/machine/request_room.h"
#include "store/machine/ticket_queue.h"

struct posts {
	struct {
		_Atomic uint64_t word; /* request_word */
		_Atomic pid_t taker;   /* who took it, for messages */
		_Atomic bool has_room; /* its memory is there */
	} posts[TICKET_QUEUE_PLACES];
	/* Nothing behind it: this part of the file may be sparse. */
	struct request_room rooms[TICKET_QUEUE_PLACES] __attribute__((aligned(REQUEST_ROOM)));
};

/* A request of ours, in private memory. */
struct post {
	uint64_t seed; /* request_room_seed */
	bool changes;  /* store_request_changes */
	bool posted;   /* it was */
	int64_t since; /* when (clock_now) */
	enum request_fate fate;
	pid_t taker;		  /* with FATE_UNKNOWN: the process that took it */
	struct request_room room; /* the request; with FATE_ANSWERED and FATE_CHECK the answer */
};

/*
 * Post it in the room of our ticket. False: there is no memory for it, and nothing is posted.
 * descriptor: of the file that is mapped, with the posts at this offset.
 */
bool posts_post(
	struct posts *posts, int descriptor, off_t offset, uint64_t ticket, struct post *post);
/* We wait no longer: fill post's fate, and the answer if there is one. */
void posts_end(struct posts *posts, uint64_t ticket, bool my_turn, struct post *post);

/* Whether any of the tickets from first to before end has a request that waits. */
bool posts_any(const struct posts *posts, uint64_t first, uint64_t end);
/*
 * Take the request of a ticket: copy it into room. False: it has none, or not a whole one. What is
 * taken is given one of the next two later, or is left COMMITTING: whether it was committed is not
 * known to us either.
 */
bool posts_take(struct posts *posts, uint64_t ticket, uint64_t seed, struct request_room *room);
/* Its owner is to run it; nothing was changed. */
void posts_return(struct posts *posts, uint64_t ticket);
/* room: the answer, which is sealed here; state: REQUEST_COMMITTING or REQUEST_ANSWERED. */
void posts_answer(struct posts *posts, uint64_t ticket, enum request_state state, uint64_t seed,
	struct request_room *room);

#endif
