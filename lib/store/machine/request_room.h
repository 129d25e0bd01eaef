/* SPDX-License-Identifier: MIT */
/*
 * Requests that one process carries out for another: the format of a request and of its answer in a
 * room of shared memory (posts.h), and the states of a request. Pure functions; only
 * request_room_copy reads shared memory.
 *
 * A room is copied before it is read. Its checksum covers its bytes, the ticket of its owner and a
 * seed that identifies the store, so that a room with another request is not mistaken for this one.
 * All lengths in it are checked, too.
 */
#ifndef STORE_MACHINE_REQUEST_ROOM_H
#define STORE_MACHINE_REQUEST_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* ---- States ---- */

/*
 * The word of a room holds the ticket of its owner and the state of the request. Only the owner
 * posts the request (WAITING) and withdraws it (WAITING to NONE); only the process at the head of
 * the queue makes the other changes. When it leaves the queue, none of the requests that it took is
 * still TAKEN, and only those whose outcome it does not know are still COMMITTING.
 */
enum request_state {
	REQUEST_NONE,	 /* not posted, or left to its owner */
	REQUEST_WAITING, /* may be taken */
	REQUEST_TAKEN,	 /* another process runs it; nothing of it is committed yet */
	/* Another process may have committed it; if so, the answer is in the room. */
	REQUEST_COMMITTING,
	REQUEST_ANSWERED, /* the answer is in the room */
};

uint64_t request_word(uint64_t ticket, enum request_state state);
bool request_is_of(uint64_t word, uint64_t ticket);

/* What the owner does after it has stopped waiting. */
enum request_fate {
	FATE_OURS,     /* nothing was changed: run it, unless the deadline has passed */
	FATE_ANSWERED, /* read the answer */
	FATE_CHECK,    /* ask the store if it was committed: if so, read the answer, else run it */
	FATE_UNKNOWN,  /* it was committed, was not, or still may be */
};

/*
 * word: read after the owner has withdrawn its request, if it was still WAITING. my_turn: all
 * processes before the owner have left the queue or are dead. changes: the request may change
 * something.
 */
enum request_fate request_fate(uint64_t word, uint64_t ticket, bool my_turn, bool changes);

/* ---- Rooms ---- */

#define REQUEST_ROOM	   4096 /* bytes */
#define REQUEST_ROOM_BYTES (REQUEST_ROOM - 16)
#define REQUEST_COMPARES   16
#define REQUEST_OPS	   32 /* of each branch */

struct request_room {
	uint64_t checksum;
	uint32_t length;
	uint32_t unused;
	unsigned char bytes[REQUEST_ROOM_BYTES];
};

/* The seed for request_room_seal and request_room_copy, the same for all processes of a store. */
uint64_t request_room_seed(const char *nonce, const char *path);
/* Set the checksum of a room that is complete. */
void request_room_seal(struct request_room *room, uint64_t seed, uint64_t ticket);
/* Copy a room to which others may write at the same time. False: the copy has a wrong checksum. */
bool request_room_copy(
	struct request_room *to, const struct request_room *from, uint64_t seed, uint64_t ticket);

/* A request that was read from a room, with pointers into the room. */
struct posted_request {
	struct store_request request;
	store_revision newest; /* the newest revision that its owner has seen */
	struct store_compare compares[REQUEST_COMPARES];
	struct store_op then[REQUEST_OPS], otherwise[REQUEST_OPS];
};

/* False: the request does not fit, so only its owner can run it. */
bool request_room_write(
	struct request_room *room, const struct store_request *request, store_revision newest);
/* False: the room has no valid request. */
bool request_room_read(const struct request_room *room, struct posted_request *request);

/* About the transaction that carried a request out. */
struct commit_summary {
	store_revision newest; /* of the store after its commit */
	store_revision floor;  /* of the store when it began */
	uint64_t mark;	       /* the store records it, so that the commit can be recognised */
	uint32_t counter;      /* the database's change counter after its commit */
	uint32_t counted;      /* counter is known */
};

/* False: the answer does not fit. */
bool request_room_write_answer(struct request_room *room, const struct store_answer *answer);
/* Write or read the summary in a room that has an answer already. */
void request_room_write_summary(struct request_room *room, const struct commit_summary *end);
void request_room_read_summary(const struct request_room *room, struct commit_summary *end);

/* Read the answer to request. False: the room has no valid answer, and answer stays empty. */
bool request_room_read_answer(const struct request_room *room, const struct store_request *request,
	struct store_answer *answer);

#endif
