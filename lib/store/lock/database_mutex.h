/* SPDX-License-Identifier: MIT */
/*
 * One mutex per database and process. POSIX locks, which SQLite uses, are lost when a process
 * closes any descriptor of the file: so no thread may open and close the database to peek at it
 * while another has SQLite at work on it.
 */
#ifndef STORE_LOCK_DATABASE_MUTEX_H
#define STORE_LOCK_DATABASE_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

struct database_mutex;

/* The mutex of this path: all callers in this process get the same one. */
struct database_mutex *database_mutex_get(const char *path);
void database_mutex_put(struct database_mutex *mutex);

/* 0 or ETIMEDOUT. */
int database_mutex_lock(struct database_mutex *mutex, int64_t deadline);
bool database_mutex_try(struct database_mutex *mutex);
void database_mutex_unlock(struct database_mutex *mutex);

#endif
