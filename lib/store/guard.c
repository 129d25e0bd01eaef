/* SPDX-License-Identifier: MIT */
#include "store/guard.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

struct guard {
	struct guard *next;
	pthread_mutex_t mutex;
	unsigned users;
	char path[];
};

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct guard *list;

struct guard *guard_get(const char *path)
{
	struct guard *guard;
	pthread_mutex_lock(&list_mutex);
	for (guard = list; guard && strcmp(guard->path, path); guard = guard->next)
		;
	if (!guard && (guard = calloc(1, sizeof(*guard) + strlen(path) + 1))) {
		pthread_mutex_init(&guard->mutex, NULL);
		strcpy(guard->path, path);
		guard->next = list;
		list = guard;
	}
	if (guard)
		guard->users++;
	pthread_mutex_unlock(&list_mutex);
	return guard;
}

void guard_put(struct guard *guard)
{
	if (!guard)
		return;
	pthread_mutex_lock(&list_mutex);
	if (--guard->users == 0) {
		struct guard **link = &list;
		while (*link != guard)
			link = &(*link)->next;
		*link = guard->next;
		pthread_mutex_destroy(&guard->mutex);
		free(guard);
	}
	pthread_mutex_unlock(&list_mutex);
}

int guard_enter(struct guard *guard, int64_t deadline)
{
	if (deadline == CLOCK_NEVER)
		return pthread_mutex_lock(&guard->mutex);
	struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
	return pthread_mutex_clocklock(&guard->mutex, CLOCK_MONOTONIC, &until);
}

bool guard_try(struct guard *guard)
{
	return pthread_mutex_trylock(&guard->mutex) == 0;
}

void guard_leave(struct guard *guard)
{
	pthread_mutex_unlock(&guard->mutex);
}
