/* SPDX-License-Identifier: MIT */
/*
 * The keeper of one task that does not run under preempt-run: beats for it, watches the others and
 * its progress, and ends the guarded process when the group is broken. Reports on stderr.
 */
#ifndef COMPOSE_KEEPER_H
#define COMPOSE_KEEPER_H

#include <sys/types.h>

#include "live/heartbeat.h"
#include "live/progress.h"

enum { KEEPER_WITH = 16 };

struct keeper_options {
	const char *store; /* URL */
	const char *run;
	uint64_t attempt; /* 0: the newest */
	uint64_t task;
	struct heartbeat_rules rules;
	struct progress_rules progress;
	const char *board; /* shows progress, and orders to leave; NULL: none */
	int served; /* a pidfd of the process that we serve; a command ends with it; -1: none */
	/*
	 * The processes that serve the command with us: when one of them ends, or is gone, the
	 * command is ended (75). If there are any, notices (served.h) are not passed on to it.
	 */
	const pid_t *with;
	size_t with_count;	/* at most KEEPER_WITH */
	char *const *command;	/* NULL: none */
	pid_t pid;		/* a process that runs already; 0: none */
	const char *on_failure; /* run by sh before the guarded process is ended; NULL: none */
	int64_t kill_after;	/* ms between TERM and KILL */
};

/*
 * Returns the exit code when the command has ended (its own code), when the process has ended or
 * --stop came (0), or when the group is broken (44). While a store that was joined (outage.h) does
 * not answer, the command is not started. A command that does not leave although its board orders
 * it is ended after kill_after, and the code is the board's. If another process beats for this task
 * already, this process becomes the command; without a command it returns 0.
 */
int keeper_run(const struct keeper_options *options);

#endif
