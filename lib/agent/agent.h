/* SPDX-License-Identifier: MIT */
/*
 * The agent around the training: it starts the tasks of this machine, waits for notices, talks to
 * the boards and to the store, and carries out what the agreement of each task wants
 * (agreement.h). One loop for signals, children and boards, over all attempts; workers for the
 * store (store_thread.h), the beats (pulse.h) and the command's stderr (stderr_relay.h).
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <signal.h>

#include "agent/announce.h"
#include "live/heartbeat.h"
#include "notice/source_set.h"
#include "proto/agreement/agreement.h"
#include "proto/keys.h"
#include "proto/writes.h"
#include "run/budget.h"
#include "run/history.h"
#include "run/identity.h"

/* Where to resume from. */
struct agent_checkpoint {
	char path[4096];
	uint64_t step;
	/* No checkpoint is known to be complete: resume from this one, but do not count it as
	 * newly saved. */
	bool doubtful;
	char layout[32]; /* how it is stored */
	char note[768];	 /* why it is doubtful, or which newer one was skipped and why; or "" */
};

/* A notice that the agent gives itself (--rehearse). */
struct agent_rehearsal {
	int signal;    /* 0: none */
	int64_t after; /* ms after the commands were started */
};

struct agent_options {
	const struct identity *identity; /* this agent's tasks are task .. task + count - 1 */
	const char *store;		 /* URL */
	uint64_t attempt;		 /* 0: the newest one, or the next if it is over */
	char *const *command;
	bool ranks;		    /* --ranks: one command starts the ranks of all tasks */
	const char *const *sources; /* notice sources */
	size_t source_count;
	size_t sources_found;	  /* that many at the end were not named: if they fail, only warn */
	int64_t grace;		  /* ms from notice to end; negative: not known */
	int64_t began;		  /* set by agent_run: deadline:+2h counts from then */
	const char *board_parent; /* NULL: board_place chooses */
	sigset_t shield;	  /* signals that are ignored when the command starts */
	bool forward;		  /* pass notice signals on to the command */
	/*
	 * For programs that cannot be changed but save on a signal: once any task has received a
	 * notice, the agent of each task sends the signal or runs the command. The tasks do not
	 * agree on a step.
	 */
	int notice_signal;	    /* 0: none */
	const char *notice_command; /* run by sh; NULL: none */
	bool signal_ranks;	    /* the signal goes to the whole process group */
	/*
	 * Find the newest complete checkpoint, or a doubtful one. STATUS_NO: there is none. NULL:
	 * --checkpoints was not given. Called for PREEMPT_RESUME, at the end of a task (a newer one
	 * means 42) and at the end of the attempt. known: what the run has saved; NULL: not known.
	 */
	enum status (*find_checkpoint)(
		const struct saved *known, struct agent_checkpoint *found, struct error *err);
	const char *checkpoints; /* where it looks, for messages */
	/*
	 * After max_bad_restarts failed restarts from a checkpoint (0: never), the agent calls
	 * give_up_checkpoint. STATUS_OK: find_checkpoint does not find it any more. STATUS_NO: it
	 * is still found; err says why.
	 */
	uint64_t max_bad_restarts;
	enum status (*give_up_checkpoint)(uint64_t step, uint64_t failures, struct error *err);
	const char *done_if; /* run by sh after the command's exit 0; exit 0: the work is done */
	int exit_code;	     /* instead of 42 */
	struct on_event *on_event; /* what --on-event runs; NULL: nothing */
	struct agent_rehearsal rehearsal;
	int64_t join_timeout; /* ms */
	int64_t kill_after;   /* ms between TERM and KILL */
	/* How to beat, and to watch other tasks; period 0: do neither. */
	struct heartbeat_rules beats;
	int64_t progress_timeout; /* ms without progress after which a training hangs; 0: none */
	struct agreement_config agreement; /* task is filled in by the agent */
};

/*
 * Call this early: it blocks the signals of these sources until agent_run listens to them, so that
 * a notice does not end a program that is still starting.
 */
void agent_hold_signals(const char *const *sources, size_t count);

/* How an attempt has ended. */
struct agent_end {
	struct attempt attempt; /* number 0: none was joined */
	bool started;		/* the commands were started */
	bool rehearsed_well;	/* --rehearse has passed */
	bool superseded; /* not started: a restarted task ended the attempt, the next one is to be
			    joined */
	bool claimed;	 /* the attempt was preempted */
	/*
	 * If it was started: the end in words, which agent reports it, and its code. Otherwise "".
	 */
	char text[1024];
	enum announce_by by;
	int code;
	bool decided; /* the limits of --restarts allow no other attempt */
	bool trained; /* a task has trained, to this step: */
	uint64_t step;
	int64_t lost; /* ms from the notice or claim to the end, minus those used for training */
	int64_t deadline; /* when the machine goes away; CLOCK_NEVER: not known */
	/* The goodbyes that the store did not take, to be written when it answers again. */
	struct write *unwritten;
	size_t unwritten_count;
};

/*
 * Run attempts as long as limits allow; NULL: only one. If an attempt was superseded before the
 * command was started, join the next one, also with NULL. Returns the exit code. All signals are
 * blocked when it returns: a later signal stays pending until the next start.
 */
int agent_run(const struct agent_options *options, const struct budget_limits *limits);

#endif
