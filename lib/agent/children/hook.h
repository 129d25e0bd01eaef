/* SPDX-License-Identifier: MIT */
/*
 * A shell command of the user's that the agent runs beside the training (--on-notice, --done-if),
 * in a process group of its own and with a time limit: the agent goes on meanwhile. It is killed
 * when the agent ends, even by kill -9. A zeroed struct means: never started. Private to lib/agent.
 */
#ifndef AGENT_CHILDREN_HOOK_H
#define AGENT_CHILDREN_HOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/reaper.h"

struct hook {
	const char *option; /* for messages: "--done-if" */
	pid_t pid;	    /* also its process group; 0: not running */
	bool started;	    /* or it was tried */
	int64_t limit;	    /* KILL then */
	bool late;	    /* it was ended by it */
	int code; /* once it has ended, as a shell says it; 127 if it could not be started */
};

/* Run text by sh; option stays the caller's. A failure is said, and is its code. */
void hook_start(struct hook *hook, const char *option, const char *text, int64_t limit,
	const struct reaper *reaper);

/* Whether this process is it. The caller reaps: KILL to its group first, then hook_ended. */
bool hook_is(const struct hook *hook, pid_t pid);
void hook_ended(struct hook *hook, int wait_status);

/* Whether it still runs; ended with KILL when its time is over. *wake becomes at most its limit. */
bool hook_runs(struct hook *hook, int64_t now, int64_t *wake);

/* KILL and reap it, if it runs. */
void hook_end(struct hook *hook);

#endif
