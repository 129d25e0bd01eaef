/* SPDX-License-Identifier: MIT */
/*
 * Requests in shared memory: each place of a ticket queue (ticket_queue.h) has a room, in which the
 * process that has the place may post one request. The process at the head may take the requests
 * behind it, run them with its own, and answer them before it leaves the queue. request_room.h has
 * the states and contents of a room.
 *
 * Memory for a room is allocated when it is first used, so a store with few processes needs little.
 *
 * A room belongs to one ticket at a time. ticket_queue_draw reuses its place TICKET_QUEUE_PLACES
 * tickets later: then each process that could still write an answer into it has left the queue.
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
		room; /* the request; after posts_end the answer, if FATE_ANSWERED or FATE_CHECK */
};

/*
 * Post a request in the room of our ticket. False: there was no memory for the room. descriptor,
 * offset: the mapped file, and where posts begins in it.
 */
bool posts_post(
	struct posts *posts, int descriptor, off_t offset, uint64_t ticket, struct post *post);
/* Withdraw a request that was not taken, set post->fate, and copy an answer into post->room. */
void posts_end(struct posts *posts, uint64_t ticket, bool my_turn, struct post *post);

/* True if one of the tickets first to end - 1 has a request in state REQUEST_WAITING. */
bool posts_any(const struct posts *posts, uint64_t first, uint64_t end);
/*
 * Take the request of a ticket, and copy it into room. False: no request waits there, or its
 * checksum is wrong. The taker then calls posts_return or posts_answer. If it does not know whether
 * it has committed the request, the state stays REQUEST_COMMITTING.
 */
bool posts_take(struct posts *posts, uint64_t ticket, uint64_t seed, struct request_room *room);
/* Leave the request to its owner; nothing of it was committed. */
void posts_return(struct posts *posts, uint64_t ticket);
/* Seal room, our copy with the answer, and copy it into the room of the ticket. state: the new
 * one, REQUEST_COMMITTING or REQUEST_ANSWERED. */
void posts_answer(struct posts *posts, uint64_t ticket, enum request_state state, uint64_t seed,
	struct request_room *room);

#endif
