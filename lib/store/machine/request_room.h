/* SPDX-License-Identifier: MIT */
/*
 * Requests that one process carries out for another: how a request and its answer are written into
 * a room of the page that the processes of a machine share (posts.h), and the states that a request
 * goes through. Pure: nothing here touches shared memory.
 *
 * A room is read from a private copy. Its checksum covers its bytes, the ticket of its owner and a
 * seed that names the store, so a room that was written for another request is not read as this
 * one. The lengths in it are checked nevertheless.
 */
#ifndef STORE_MACHINE_REQUEST_ROOM_H
#define STORE_MACHINE_REQUEST_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* ---- States ---- */

/*
 * A request's word holds the ticket of its owner in the queue and a state. The owner alone posts
 * (WAITING) and withdraws (WAITING to NONE); the process whose turn it is does the rest. It leaves
 * the queue only when none of those that it took is TAKEN or COMMITTING.
 */
enum request_state {
	REQUEST_NONE,	    /* not posted, or its owner is to run it */
	REQUEST_WAITING,    /* may be taken */
	REQUEST_TAKEN,	    /* another runs it; nothing of it is committed yet */
	REQUEST_COMMITTING, /* another may have committed it; then its answer is the one in the room
			     */
	REQUEST_ANSWERED,   /* the answer is in the room */
};

uint64_t request_word(uint64_t ticket, enum request_state state);
bool request_is_of(uint64_t word, uint64_t ticket);

/* What the owner does once it waits no longer. */
enum request_fate {
	FATE_OURS,     /* run it; at a deadline: nothing was changed */
	FATE_ANSWERED, /* read the answer */
	FATE_CHECK,    /* the store says whether it was committed: read the answer, or run it */
	FATE_UNKNOWN,  /* it may have been committed, or may still be */
};

/*
 * my_turn: all processes before the owner have left the queue or are dead. changes: the request may
 * change something. With FATE_OURS, a word that is still WAITING must be withdrawn first.
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

/* For request_room_seal and request_room_copy: the same in all processes that have the same store
 * open. */
uint64_t request_room_seed(const char *nonce, const char *path);
/* Set the checksum of what was written. */
void request_room_seal(struct request_room *room, uint64_t seed, uint64_t ticket);
/* Copy a room that others may write at the same time. False: the copy is not what was sealed. */
bool request_room_copy(
	struct request_room *to, const struct request_room *from, uint64_t seed, uint64_t ticket);

/* A request that was read from a room, and refers to it. */
struct posted_request {
	struct store_request request;
	store_revision newest; /* that its owner has seen of the store */
	struct store_compare compares[REQUEST_COMPARES];
	struct store_op then[REQUEST_OPS], otherwise[REQUEST_OPS];
};

/* False: it does not fit; then only its owner can run it. */
bool request_room_write(
	struct request_room *room, const struct store_request *request, store_revision newest);
/* False: there is none in it. */
bool request_room_read(const struct request_room *room, struct posted_request *request);

/* Of the transaction in which a request was carried out. */
struct commit_summary {
	store_revision newest; /* of the store when it was committed */
	store_revision floor;  /* when it began */
	uint64_t mark;	       /* by which the store knows it */
	uint32_t counter;      /* the database's change counter when it was committed */
	uint32_t counted;      /* counter is known */
};

/* False: it does not fit. */
bool request_room_write_answer(struct request_room *room, const struct store_answer *answer);
/* Into and from a room that has an answer. */
void request_room_write_summary(struct request_room *room, const struct commit_summary *end);
void request_room_read_summary(const struct request_room *room, struct commit_summary *end);

/* Read the answer to request. False: there is none in it; then answer stays empty. */
bool request_room_read_answer(const struct request_room *room, const struct store_request *request,
	struct store_answer *answer);

#endif
