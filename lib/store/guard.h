/* SPDX-License-Identifier: MIT */
/*
 * One mutex per database and process. POSIX locks, which SQLite uses, are lost when a process
 * closes any descriptor of the file: so no thread may open and close the database to peek at it
 * while another has SQLite at work on it.
 */
#ifndef STORE_GUARD_H
#define STORE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct guard;

/* The guard of this path, shared by all who ask for it; NULL without memory. */
struct guard *guard_get(const char *path);
void guard_put(struct guard *guard);

/* 0 or ETIMEDOUT. */
int guard_enter(struct guard *guard, int64_t deadline);
bool guard_try(struct guard *guard);
void guard_leave(struct guard *guard);

#endif
