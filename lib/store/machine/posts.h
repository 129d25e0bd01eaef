/* SPDX-License-Identifier: MIT */
/*
 * The requests of the processes in a queue (ticket_queue.h): each process may post one request in
 * the room of its place. The process at the head may take the requests behind it, run them with its
 * own, and answer them before it leaves the queue. request_room.h has the states and contents of a
 * room.
 *
 * The rooms are in shared memory. Memory for a room is allocated when it is first used, so a store
 * with few processes needs little.
 *
 * A room belongs to one ticket. ticket_queue_draw reuses a place only TICKET_QUEUE_PLACES tickets
 * later, and not before each process that may still write an answer there has left the queue.
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
		_Atomic pid_t taker;   /* the process that took the request, for messages */
		_Atomic bool has_room; /* the room's memory is allocated */
	} posts[TICKET_QUEUE_PLACES];
	/* The last member, because this part of the file may be sparse. */
	struct request_room rooms[TICKET_QUEUE_PLACES] __attribute__((aligned(REQUEST_ROOM)));
};

/* A request of ours, in private memory. */
struct post {
	uint64_t seed; /* request_room_seed */
	bool changes;  /* store_request_changes */
	bool posted;   /* posts_post was true */
	int64_t since; /* clock_now when it was posted */
	enum request_fate fate;
	pid_t taker; /* with FATE_UNKNOWN: the process that took it */
	struct request_room
		room; /* the request; then, with FATE_ANSWERED or FATE_CHECK, the answer */
};

/*
 * Post a request in the room of our ticket. False: there was no memory for the room. descriptor:
 * the mapped file, in which the posts are at this offset.
 */
bool posts_post(
	struct posts *posts, int descriptor, off_t offset, uint64_t ticket, struct post *post);
/* We have stopped waiting: set post->fate, and copy the answer into post->room if there is one. */
void posts_end(struct posts *posts, uint64_t ticket, bool my_turn, struct post *post);

/* Whether any of the tickets first to end - 1 has a request that waits. */
bool posts_any(const struct posts *posts, uint64_t first, uint64_t end);
/*
 * Take the request of a ticket, and copy it into room. False: it has none, or none that is
 * complete. The taker then calls posts_return or posts_answer; if it does not know whether the
 * request was committed, it leaves it COMMITTING.
 */
bool posts_take(struct posts *posts, uint64_t ticket, uint64_t seed, struct request_room *room);
/* Leave the request to its owner; nothing of it was committed. */
void posts_return(struct posts *posts, uint64_t ticket);
/* Seal room, which has the answer, and put it into the ticket's room. state: REQUEST_COMMITTING or
 * REQUEST_ANSWERED. */
void posts_answer(struct posts *posts, uint64_t ticket, enum request_state state, uint64_t seed,
	struct request_room *room);

#endif
