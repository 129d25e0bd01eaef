/* SPDX-License-Identifier: MIT */
/*
 * The keeper of one task that has no preempt-run around it: beats for it, watches the others and
 * its progress, and ends the guarded process when the group is broken. Says what happens on stderr.
 */
#ifndef GROUP_KEEPER_H
#define GROUP_KEEPER_H

#include "group/heartbeat.h"
#include "group/keys.h"
#include "group/progress.h"

struct keeper_options {
	const char *store; /* URL */
	const char *where; /* store_where */
	struct attempt attempt;
	uint64_t task;
	struct heartbeat_rules rules;
	struct progress_rules progress;
	const char *board;	/* NULL: none, and no progress is watched */
	char *const *command;	/* NULL: none */
	pid_t pid;		/* a process that runs already; 0: none */
	const char *on_failure; /* run by sh before the guarded process is ended; NULL: none */
	int64_t kill_after;	/* ms between TERM and KILL */
};

/*
 * Until the command ends (its exit code), the process ends or we are told to stop (0), or the group
 * is broken (44). Where somebody beats for this task already, the command is run without us;
 * without one the answer is 0.
 */
int keeper_run(const struct keeper_options *options);

#endif
