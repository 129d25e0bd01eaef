/* SPDX-License-Identifier: MIT */
/*
 * A guard: a tiny process that outlives us by a moment, to end what we started when we die without
 * a chance to do it ourselves (kill -9). It knows the process groups that we name and the mark that
 * our commands carry in their environment, ends them with KILL once we are gone, and removes the
 * directories that we name. It has a session, a name and an argv of its own: what is aimed at our
 * group, our session or our command line does not hit it. One that was killed is replaced
 * (guard_keep). Where both are killed at once, the kernel still ends the process groups
 * (die_with_parent in process.h).
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define GUARD_MARK "PREEMPT_AGENT"

struct guard_told;

struct guard {
	int socket;		 /* its end means that we are gone */
	pid_t pid;		 /* 0: there is none */
	struct guard_told *told; /* all that one which replaces it has to know */
	/* Value of GUARD_MARK in what we start: also what leaves its group is found by it. */
	char mark[64];
};

enum status guard_start(struct guard *guard, struct error *err);
void guard_add(const struct guard *guard, pid_t group);
void guard_remove(const struct guard *guard, pid_t group);
/* A directory, to be removed with what is in it; its path is shorter than PATH_MAX. */
void guard_add_directory(const struct guard *guard, const char *path);
/*
 * Start another one if it was killed; true if that was so. A child of ours: call it when it is seen
 * to have ended, or about once a second. Where none can be started now, the next call tries.
 */
bool guard_keep(struct guard *guard);
/* End the guard, and all that carries our mark. */
void guard_stop(struct guard *guard);

#endif
