/* SPDX-License-Identifier: MIT */
#include "store/line.h"

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

void line_init(struct line *line)
{
	init_mutex(&line->door);
	for (int i = 0; i < LINE_PLACES; i++)
		init_mutex(&line->places[i].taken);
	/* So that the ticket before the first is not negative. */
	line->next = LINE_PLACES;
	line->serving = LINE_PLACES - 1;
}

/* 0, ETIMEDOUT, or that the mutex is damaged. That its owner was killed is told by what he left. */
static int take(pthread_mutex_t *mutex, int64_t deadline)
{
	struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
	int result = deadline == CLOCK_NEVER
			     ? pthread_mutex_lock(mutex)
			     : pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
	return result == EOWNERDEAD ? pthread_mutex_consistent(mutex) : result;
}

/* Draw a ticket and take its place. The place stays NULL where all are taken. */
static int draw(struct line *line, struct line_place **place, uint64_t *ticket, int64_t deadline)
{
	int result = take(&line->door, deadline);
	if (result != 0)
		return result;
	*ticket = line->next;
	/* One is left free, so that nobody waits for a place whose owner waits for him. */
	if (*ticket - line->serving < LINE_PLACES - 1) {
		struct line_place *mine = &line->places[*ticket % LINE_PLACES];
		result = take(&mine->taken, deadline);
		if (result == 0) {
			mine->ticket = *ticket;
			mine->served = false;
			line->next = *ticket + 1;
			*place = mine;
		}
	}
	(void)pthread_mutex_unlock(&line->door);
	return result;
}

/*
 * Wait for the owner of the place before ours to go. If he went before his turn came (he was killed
 * or gave up), whom he waited for is still to be waited for.
 */
static int wait_for_turn(struct line *line, uint64_t ticket, int64_t deadline)
{
	for (uint64_t before = ticket - 1; before >= line->serving; before--) {
		struct line_place *place = &line->places[before % LINE_PLACES];
		int result = take(&place->taken, deadline);
		if (result != 0)
			return result;
		/* A greater ticket: the place was used again, so his turn is long over. */
		bool over = place->ticket > before || (place->ticket == before && place->served);
		(void)pthread_mutex_unlock(&place->taken);
		if (over)
			break;
	}
	return 0;
}

int line_enter(struct line *line, struct line_ticket *ticket, int64_t deadline)
{
	uint64_t number;
	struct line_place *place = NULL;
	int result = draw(line, &place, &number, deadline);
	if (result != 0 || !place)
		return result;
	result = wait_for_turn(line, number, deadline);
	if (result != 0) {
		(void)pthread_mutex_unlock(&place->taken);
		return result;
	}
	place->served = true;
	line->serving = number;
	ticket->place = place;
	return 0;
}

void line_leave(struct line_ticket *ticket)
{
	if (ticket->place)
		(void)pthread_mutex_unlock(&ticket->place->taken);
	ticket->place = NULL;
}
