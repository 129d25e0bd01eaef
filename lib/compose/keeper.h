/* SPDX-License-Identifier: MIT */
/*
 * The keeper of one task that has no preempt-run around it: beats for it, watches the others and
 * its progress, and ends the guarded process when the group is broken. Says what happens on stderr.
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
	const char *board; /* NULL: none; no progress is watched, and no order to leave seen */
	int served; /* a pidfd of the process that we serve; a command ends with it; -1: none */
	/*
	 * The processes that serve the command with us: when one of them ends, or is gone, the
	 * command is ended (75). With any, notices (served.h) are not passed on to it.
	 */
	const pid_t *with;
	size_t with_count;	/* at most KEEPER_WITH */
	char *const *command;	/* NULL: none */
	pid_t pid;		/* a process that runs already; 0: none */
	const char *on_failure; /* run by sh before the guarded process is ended; NULL: none */
	int64_t kill_after;	/* ms between TERM and KILL */
};

/*
 * Until the command ends (its exit code), the process ends or we are told to stop (0), or the group
 * is broken (44). Waits before the command starts while a store that was joined (outage.h) is away.
 * A command that its board has told to leave, and that does not, is ended after
 * kill_after; its code is the board's then. Where somebody beats for this task already, the command
 * is run without us; without one the answer is 0.
 */
int keeper_run(const struct keeper_options *options);

#endif
