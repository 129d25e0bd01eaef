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
	int result;
	if (deadline == LINE_AT_ONCE)
		result = pthread_mutex_trylock(mutex);
	else if (deadline == CLOCK_NEVER)
		result = pthread_mutex_lock(mutex);
	else
		result = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
	if (result == EBUSY)
		return ETIMEDOUT;
	return result == EOWNERDEAD ? pthread_mutex_consistent(mutex) : result;
}

int line_draw(struct line *line, struct line_ticket *ticket, int64_t deadline)
{
	int result = take(&line->door, deadline);
	if (result != 0)
		return result;
	uint64_t number = line->next;
	/* Keep one place free, so that no process waits for a place whose owner waits for this
	 * process. */
	if (number - line->serving < LINE_PLACES - 1) {
		struct line_place *mine = &line->places[number % LINE_PLACES];
		result = take(&mine->taken, deadline);
		if (result == 0) {
			mine->ticket = number;
			mine->served = false;
			line->next = number + 1;
			*ticket = (struct line_ticket){.place = mine, .number = number};
		}
	}
	(void)pthread_mutex_unlock(&line->door);
	return result;
}

/*
 * Wait until the owner of the place before ours leaves. If it left before its turn (it was killed
 * or gave up), wait for the place before that one, too.
 */
int line_wait(struct line *line, struct line_ticket *ticket, int64_t deadline)
{
	for (uint64_t before = ticket->number - 1; before >= line->serving; before--) {
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
	ticket->place->served = true;
	line->serving = ticket->number;
	return 0;
}

int line_enter(struct line *line, struct line_ticket *ticket, int64_t deadline)
{
	int result = line_draw(line, ticket, deadline);
	if (result != 0 || !ticket->place)
		return result;
	result = line_wait(line, ticket, deadline);
	if (result != 0)
		line_leave(ticket);
	return result;
}

void line_leave(struct line_ticket *ticket)
{
	if (ticket->place)
		(void)pthread_mutex_unlock(&ticket->place->taken);
	ticket->place = NULL;
}
