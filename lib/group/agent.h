/* SPDX-License-Identifier: MIT */
/*
 * The agent around the training: it starts the tasks of this machine, waits for notices, talks to
 * the boards and to the store, and carries out what the agreement of each task wants
 * (agreement.h). One thread for signals, children and boards; one for the store (worker.h); one
 * that passes stderr on (pump.h).
 */
#ifndef GROUP_AGENT_H
#define GROUP_AGENT_H

#include "group/agreement.h"
#include "group/identity.h"

struct agent_options {
	const struct identity *identity; /* tasks task .. task + count - 1 of tasks */
	const char *store;		 /* URL */
	uint64_t attempt;		 /* 0: whichever is right */
	char *const *command;
	bool ranks;		    /* the command starts its own ranks (--ranks), once for all */
	const char *const *sources; /* notice sources */
	size_t source_count;
	int64_t grace;		  /* ms after a notice; negative: not known */
	const char *board_parent; /* NULL: a good place */
	const char *shield;	  /* "TERM,USR1": ignored before exec; NULL: none */
	bool forward;		  /* pass notice signals on to the command */
	const char *on_notice;	  /* "signal:USR1" or "command:TEXT"; NULL: none */
	bool signal_ranks;	  /* --signal-to ranks: all processes of the group */
	const char *checkpoints;  /* directory to look for newer checkpoints in; NULL: none */
	const char *done_if;	  /* command that tells finished from stopped; NULL: none */
	int exit_code;		  /* instead of 42 */
	int64_t join_timeout;	  /* ms */
	int64_t kill_after;	  /* ms between TERM and KILL */
	struct agreement_config agreement; /* task is filled in by the agent */
};

/*
 * Early in the program: keep notices that come by a signal until agent_run listens to them, so that
 * one that comes while we start is not the end of us.
 */
void agent_hold_signals(const char *const *sources, size_t count);

/* Run until all tasks of this machine are through; the exit code. Says what happens on stderr. */
int agent_run(const struct agent_options *options);

#endif
