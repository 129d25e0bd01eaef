/* SPDX-License-Identifier: MIT */
#include "store/lock/database_mutex.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/xalloc.h"

struct database_mutex {
	struct database_mutex *next;
	pthread_mutex_t mutex;
	unsigned users;
	char path[];
};

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct database_mutex *list;

struct database_mutex *database_mutex_get(const char *path)
{
	struct database_mutex *mutex;
	pthread_mutex_lock(&list_mutex);
	for (mutex = list; mutex && strcmp(mutex->path, path); mutex = mutex->next)
		;
	if (!mutex) {
		mutex = xcalloc(1, sizeof(*mutex) + strlen(path) + 1);
		pthread_mutex_init(&mutex->mutex, NULL);
		strcpy(mutex->path, path);
		mutex->next = list;
		list = mutex;
	}
	mutex->users++;
	pthread_mutex_unlock(&list_mutex);
	return mutex;
}

void database_mutex_put(struct database_mutex *mutex)
{
	if (!mutex)
		return;
	pthread_mutex_lock(&list_mutex);
	if (--mutex->users == 0) {
		struct database_mutex **link = &list;
		while (*link != mutex)
			link = &(*link)->next;
		*link = mutex->next;
		pthread_mutex_destroy(&mutex->mutex);
		free(mutex);
	}
	pthread_mutex_unlock(&list_mutex);
}

int database_mutex_lock(struct database_mutex *mutex, int64_t deadline)
{
	if (deadline == CLOCK_NEVER)
		return pthread_mutex_lock(&mutex->mutex);
	struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
	return pthread_mutex_clocklock(&mutex->mutex, CLOCK_MONOTONIC, &until);
}

bool database_mutex_try(struct database_mutex *mutex)
{
	return pthread_mutex_trylock(&mutex->mutex) == 0;
}

void database_mutex_unlock(struct database_mutex *mutex)
{
	pthread_mutex_unlock(&mutex->mutex);
}
