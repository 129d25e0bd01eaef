/* SPDX-License-Identifier: MIT */
/*
 * A shell command of the user's that the agent runs beside the training (--on-notice, --done-if,
 * --on-event), in a process group of its own and with a time limit. The agent does not wait for it.
 * The command is killed when the agent ends, even by kill -9. A zeroed struct means: never started.
 * Private to lib/agent.
 */
#ifndef AGENT_CHILDREN_HOOK_H
#define AGENT_CHILDREN_HOOK_H

#include "base/process/subprocess.h"

struct hook {
	const char *option; /* for messages: "--done-if" */
	bool started;	    /* also if the start has failed */
	struct subprocess process;
};

/* Set shell and limit in how; option must stay valid. A failed start is reported: code 127. */
void hook_start(struct hook *hook, const char *option, const struct subprocess_options *how);

/*
 * Whether the command still runs. Kills it when its time is over, and reaps it when it has ended.
 * *wake becomes at most its time limit.
 */
bool hook_runs(struct hook *hook, int64_t now, int64_t *wake);

#endif
