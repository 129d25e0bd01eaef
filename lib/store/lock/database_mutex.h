/* SPDX-License-Identifier: MIT */
/*
 * One mutex per database and process. SQLite uses POSIX locks, and a process loses all its POSIX
 * locks on a file when it closes any descriptor of that file. So no thread may open and close the
 * database while another thread uses it through SQLite.
 */
#ifndef STORE_LOCK_DATABASE_MUTEX_H
#define STORE_LOCK_DATABASE_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

struct database_mutex;

/* The mutex for this path. All callers in this process get the same one. */
struct database_mutex *database_mutex_get(const char *path);
void database_mutex_put(struct database_mutex *mutex);

/* Returns 0, or ETIMEDOUT. */
int database_mutex_lock(struct database_mutex *mutex, int64_t deadline);
bool database_mutex_try(struct database_mutex *mutex);
void database_mutex_unlock(struct database_mutex *mutex);

#endif
