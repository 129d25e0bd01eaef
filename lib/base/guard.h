/* SPDX-License-Identifier: MIT */
/*
 * A guard: a tiny process that outlives us by a moment, to end what we started when we die without
 * a chance to do it ourselves (kill -9). It knows the process groups that we name and the mark that
 * our commands carry in their environment, ends them with KILL once we are gone, and removes the
 * directories that we name. Start it before any thread.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define GUARD_MARK "PREEMPT_AGENT"

struct guard {
	int pipe; /* its end means that we are gone */
	pid_t pid;
	/* Value of GUARD_MARK in what we start: also what leaves its group is found by it. */
	char mark[64];
};

enum status guard_start(struct guard *guard, struct error *err);
void guard_add(const struct guard *guard, pid_t group);
void guard_remove(const struct guard *guard, pid_t group);
/* A directory, to be removed with what is in it. One with a very long name is left. */
void guard_add_directory(const struct guard *guard, const char *path);
/* End the guard, and all that carries our mark. */
void guard_stop(struct guard *guard);

#endif
