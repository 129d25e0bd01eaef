/* SPDX-License-Identifier: MIT */
#include "store/machine/posts.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static _Atomic uint64_t *word_of(struct posts *posts, uint64_t ticket)
{
	return &posts->posts[ticket % TICKET_QUEUE_PLACES].word;
}

static struct request_room *room_of(struct posts *posts, uint64_t ticket)
{
	return &posts->rooms[ticket % TICKET_QUEUE_PLACES];
}

/* Set the state of the word; false: it is another ticket's. */
static bool set(struct posts *posts, uint64_t ticket, enum request_state to)
{
	uint64_t word = *word_of(posts, ticket);
	return request_is_of(word, ticket) && atomic_compare_exchange_strong(word_of(posts, ticket),
						      &word, request_word(ticket, to));
}

static bool change(
	struct posts *posts, uint64_t ticket, enum request_state from, enum request_state to)
{
	uint64_t word = request_word(ticket, from);
	return atomic_compare_exchange_strong(
		word_of(posts, ticket), &word, request_word(ticket, to));
}

/* Copy the used part of a room. */
static void put_room(struct posts *posts, uint64_t ticket, const struct request_room *room)
{
	memcpy(room_of(posts, ticket), room, offsetof(struct request_room, bytes) + room->length);
}

bool posts_post(
	struct posts *posts, int descriptor, off_t offset, uint64_t ticket, struct post *post)
{
	size_t place = ticket % TICKET_QUEUE_PLACES;
	off_t at = offset + (off_t)(offsetof(struct posts, rooms) + place * REQUEST_ROOM);
	/* A full /dev/shm must be an error here, not a SIGBUS below. */
	if (!posts->posts[place].has_room && posix_fallocate(descriptor, at, REQUEST_ROOM) != 0)
		return false;
	posts->posts[place].has_room = true;
	request_room_seal(&post->room, post->seed, ticket);
	put_room(posts, ticket, &post->room);
	post->since = clock_now();
	post->posted = true;
	*word_of(posts, ticket) = request_word(ticket, REQUEST_WAITING);
	return true;
}

void posts_end(struct posts *posts, uint64_t ticket, bool my_turn, struct post *post)
{
	/* If this fails, another process has taken the request. */
	(void)change(posts, ticket, REQUEST_WAITING, REQUEST_NONE);
	post->taker = posts->posts[ticket % TICKET_QUEUE_PLACES].taker;
	post->fate = request_fate(*word_of(posts, ticket), ticket, my_turn, post->changes);
	if ((post->fate == FATE_ANSWERED || post->fate == FATE_CHECK) &&
		!request_room_copy(&post->room, room_of(posts, ticket), post->seed, ticket))
		post->fate = FATE_UNKNOWN;
}

bool posts_any(const struct posts *posts, uint64_t first, uint64_t end)
{
	for (uint64_t ticket = first; ticket < end && ticket - first < TICKET_QUEUE_PLACES;
		ticket++)
		if (posts->posts[ticket % TICKET_QUEUE_PLACES].word ==
			request_word(ticket, REQUEST_WAITING))
			return true;
	return false;
}

bool posts_take(struct posts *posts, uint64_t ticket, uint64_t seed, struct request_room *room)
{
	if (!change(posts, ticket, REQUEST_WAITING, REQUEST_TAKEN))
		return false;
	posts->posts[ticket % TICKET_QUEUE_PLACES].taker = getpid();
	if (request_room_copy(room, room_of(posts, ticket), seed, ticket))
		return true;
	posts_return(posts, ticket);
	return false;
}

void posts_return(struct posts *posts, uint64_t ticket)
{
	(void)set(posts, ticket, REQUEST_NONE);
}

void posts_answer(struct posts *posts, uint64_t ticket, enum request_state state, uint64_t seed,
	struct request_room *room)
{
	if (!request_is_of(*word_of(posts, ticket), ticket))
		return;
	request_room_seal(room, seed, ticket);
	put_room(posts, ticket, room);
	(void)set(posts, ticket, state);
}
