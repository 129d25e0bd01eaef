/* SPDX-License-Identifier: MIT */
#include "store/machine/ticket_queue.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"

static void init_mutex(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

void ticket_queue_init(struct ticket_queue *queue)
{
	init_mutex(&queue->door);
	for (int i = 0; i < TICKET_QUEUE_PLACES; i++)
		init_mutex(&queue->places[i].taken);
	/* The number before the first ticket must not be negative. */
	queue->next = TICKET_QUEUE_PLACES;
	queue->serving = TICKET_QUEUE_PLACES - 1;
}

/*
 * Lock a mutex. Returns 0, ETIMEDOUT, or another errno: the mutex is damaged. If its owner was
 * killed, the mutex is made usable again; what it protects shows how far the owner got.
 */
static int take(pthread_mutex_t *mutex, int64_t deadline)
{
	struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
	int result;
	if (deadline == TICKET_QUEUE_AT_ONCE)
		result = pthread_mutex_trylock(mutex);
	else if (deadline == CLOCK_NEVER)
		result = pthread_mutex_lock(mutex);
	else
		result = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
	if (result == EBUSY)
		return ETIMEDOUT;
	return result == EOWNERDEAD ? pthread_mutex_consistent(mutex) : result;
}

int ticket_queue_draw(struct ticket_queue *queue, struct queue_ticket *ticket, int64_t deadline)
{
	int result = take(&queue->door, deadline);
	if (result != 0)
		return result;
	uint64_t number = queue->next;
	/* Give no ticket whose place a waiting process may still need: the two would wait for each
	 * other. So one place stays free. */
	if (number - queue->serving < TICKET_QUEUE_PLACES - 1) {
		struct ticket_queue_place *mine = &queue->places[number % TICKET_QUEUE_PLACES];
		result = take(&mine->taken, deadline);
		if (result == 0) {
			mine->ticket = number;
			mine->served = false;
			queue->next = number + 1;
			*ticket = (struct queue_ticket){.place = mine, .number = number};
		}
	}
	(void)pthread_mutex_unlock(&queue->door);
	return result;
}

/*
 * Wait until the owner of the place before ours leaves. If it left before its turn (it was killed
 * or gave up), wait for the place before that one, too.
 */
int ticket_queue_wait(struct ticket_queue *queue, struct queue_ticket *ticket, int64_t deadline)
{
	for (uint64_t before = ticket->number - 1; before >= queue->serving; before--) {
		struct ticket_queue_place *place = &queue->places[before % TICKET_QUEUE_PLACES];
		int result = take(&place->taken, deadline);
		if (result != 0)
			return result;
		/* A greater ticket: the place is used again, so that turn ended long ago. */
		bool over = place->ticket > before || (place->ticket == before && place->served);
		(void)pthread_mutex_unlock(&place->taken);
		if (over)
			break;
	}
	ticket->place->served = true;
	queue->serving = ticket->number;
	return 0;
}

void ticket_queue_leave(struct queue_ticket *ticket)
{
	if (ticket->place)
		(void)pthread_mutex_unlock(&ticket->place->taken);
	ticket->place = NULL;
}
