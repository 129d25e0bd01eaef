/* SPDX-License-Identifier: MIT */
/*
 * The agent around the training: it starts the tasks of this machine, waits for notices, talks to
 * the boards and to the store, and carries out what the agreement of each task wants
 * (agreement.h). One thread for signals, children and boards; one for the store (store_thread.h);
 * one that beats (pulse.h); one that passes stderr on (stderr_relay.h).
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/announce.h"
#include "live/heartbeat.h"
#include "live/progress.h"
#include "notice/source_set.h"
#include "proto/agreement/agreement.h"
#include "proto/keys.h"
#include "proto/writes.h"
#include "run/identity.h"

/* Where to resume from. */
struct agent_checkpoint {
	char path[4096];
	uint64_t step;
	/* No checkpoint is known to be complete: resume from this one, but it never counts as new.
	 */
	bool unproven;
	char note[768]; /* why it is unproven, or which newer one was skipped and why; or "" */
};

/* A notice that the agent gives itself (--rehearse). */
struct agent_rehearsal {
	int signal;    /* 0: none */
	int64_t after; /* ms after the commands were started */
	bool tree;     /* every process below gets it, too, as from some launchers */
};

struct agent_options {
	const struct identity *identity; /* tasks task .. task + count - 1 of tasks */
	const char *store;		 /* URL */
	uint64_t attempt;		 /* 0: whichever is right */
	char *const *command;
	bool ranks;		    /* the command starts its own ranks (--ranks), once for all */
	const char *const *sources; /* notice sources */
	size_t source_count;
	bool sources_found;	  /* those behind the first were not asked for: one may fail */
	int64_t grace;		  /* ms after a notice; negative: not known */
	int64_t began;		  /* when the first attempt did: deadline:+2h counts from there */
	const char *board_parent; /* NULL: a good place */
	const char *shield;	  /* "TERM,USR1": ignored before exec; NULL: none */
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
	 * The newest complete checkpoint. STATUS_NO: there is none. NULL: --checkpoints was not
	 * given. Called once per attempt for PREEMPT_RESUME, and at the end: a newer one means 42.
	 */
	enum status (*find_checkpoint)(struct agent_checkpoint *found, struct error *err);
	/*
	 * After so many failed restarts from one, give it up: STATUS_OK, it is no longer found;
	 * STATUS_NO: it stays, err says why. 0: never.
	 */
	uint64_t max_bad_restarts;
	enum status (*give_up_checkpoint)(uint64_t step, uint64_t failures, struct error *err);
	const char *done_if; /* run by sh: exit 0 means that a command which ended has finished */
	int exit_code;	     /* instead of 42 */
	struct on_event *on_event; /* what --on-event runs; NULL: nothing */
	struct agent_rehearsal rehearsal;
	bool restarts;	      /* the caller runs it again after a failure (restart.h) */
	int64_t join_timeout; /* ms */
	int64_t kill_after;   /* ms between TERM and KILL */
	/* Beat, and watch the others: period 0: neither. */
	struct heartbeat_rules beats;
	/* When the training of a task hangs. What is learned is kept in a copy. */
	struct progress_rules progress;
	struct agreement_config agreement; /* task is filled in by the agent */
};

/*
 * Early in the program: keep notices that come by a signal until agent_run listens to them, so that
 * one that comes while we start is not the end of us.
 */
void agent_hold_signals(const char *const *sources, size_t count);

/* Open the sources, as agent_run does; what is open is in watch also where it fails. */
enum status agent_watch_sources(
	const struct agent_options *options, struct source_set *watch, struct error *err);

/* What its caller has to know to run it again; a notice or a signal came until the very end. */
struct agent_end {
	struct attempt attempt; /* number 0: none was joined */
	bool started;		/* the commands were */
	bool rehearsed_well;	/* --rehearse has passed */
	bool superseded; /* not started: a restarted task ended the attempt, the next one is to be
			    joined */
	bool noticed;	 /* this agent was, */
	bool claimed;	 /* or another: the attempt was preempted */
	int passed_on;	 /* a signal like INT that was passed on; 0 */
	/* Of one that was started: what its end is, which agent says that, and with which code. */
	char text[1024];
	enum announce_by by;
	int code;
	bool decided; /* by the limits: no attempt follows */
	bool trained; /* as far as: */
	uint64_t step;
	int64_t lost;	  /* ms from the notice or claim to the end, without training */
	int64_t deadline; /* when the machine goes away; CLOCK_NEVER: not known */
	/* The goodbyes that the store did not take, for when it answers again. */
	struct write *unwritten;
	size_t unwritten_count;
};
void agent_end_release(struct agent_end *end);

/*
 * Run until all tasks of this agent have finished. Returns the exit code, and reports on stderr
 * what happens. All signals are blocked when it returns: a later signal stays pending until the
 * next start. Release end with agent_end_release.
 */
int agent_run(const struct agent_options *options, struct agent_end *end);

#endif
