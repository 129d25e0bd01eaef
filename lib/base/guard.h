/* SPDX-License-Identifier: MIT */
/*
 * A guard: a tiny process that outlives us by a moment, to end what we started when we die without
 * a chance to do it ourselves (kill -9). It knows the process groups that we name, and ends them
 * with KILL once we are gone. Start it before any thread.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <sys/types.h>

#include "base/error.h"

struct guard {
	int pipe; /* its end means that we are gone */
	pid_t pid;
};

enum status guard_start(struct guard *guard, struct error *err);
void guard_add(const struct guard *guard, pid_t group);
void guard_remove(const struct guard *guard, pid_t group);
/* End the guard, and what groups it still knows. */
void guard_stop(struct guard *guard);

#endif
