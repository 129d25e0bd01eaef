/* SPDX-License-Identifier: MIT */
/*
 * A reaper: a small process that outlives this one for a moment. If this process dies without
 * cleaning up (kill -9), the reaper sends KILL to the process groups that were registered and to
 * every process with our mark in its environment, and removes the directories that were registered.
 * It has its own session, name and argv, so a signal to our process group, our session or our
 * command line does not reach it. If it is killed, it is replaced (guard_keep). If both are killed
 * at once, the kernel still kills the process groups (die_with_parent in process.h).
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define GUARD_MARK "PREEMPT_AGENT"

struct guard_told;

struct guard {
	int socket;		 /* the reaper sees its other end closed when we die */
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
