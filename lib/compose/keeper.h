/* SPDX-License-Identifier: MIT */
/*
 * The keeper beats for one task that does not run under preempt-run, watches its progress and the
 * other tasks, and ends the guarded process when the group is broken. Reports on stderr.
 */
#ifndef COMPOSE_KEEPER_H
#define COMPOSE_KEEPER_H

#include <sys/types.h>

#include "live/heartbeat.h"

enum { KEEPER_WITH = 16 };

struct keeper_options {
	const char *store; /* URL */
	const char *run;
	uint64_t attempt; /* 0: the newest */
	uint64_t task;
	struct heartbeat_rules rules;
	int64_t progress_timeout; /* ms; 0: none */
	const char *board;	  /* has the progress, and the order to leave; NULL: none */
	int served; /* pidfd of the process that we serve: the command ends with it; -1: none */
	/*
	 * Other processes that serve the command: when one of them is gone, the command is ended
	 * (75). If there are any, notices (served.h) are passed on to them, not to the command.
	 */
	const pid_t *with;
	size_t with_count;	/* at most KEEPER_WITH */
	char *const *command;	/* NULL: none */
	pid_t pid;		/* a process that runs already; 0: none */
	const char *on_failure; /* run by sh before the guarded process is ended; NULL: none */
	int64_t kill_after;	/* ms between TERM and KILL */
};

/*
 * Returns the exit code: the command's when that has ended, 0 when pid has ended or a TERM came, 44
 * when the group is broken or the served process is gone (1 if no command runs). While a joined
 * store (outage.h) does not answer, the command is not started. A command that has not left
 * kill_after after its board ordered it is ended, and the code is the one on the board. If another
 * process beats for this task already, we become the command; if there is none, 0 is returned.
 */
int keeper_run(const struct keeper_options *options);

#endif
