/* SPDX-License-Identifier: MIT */
/*
 * The agent beside a training that another program has started: what preempt-ack does on a board,
 * one stage at a time or for as long as the training lasts (--serve). Each call leaves its results
 * in the store and on the board; the next call continues from them.
 */
#ifndef AGENT_ACK_H
#define AGENT_ACK_H

#include "agent/agent.h"

enum ack_goal {
	ACK_AGREED, /* the board says at which step to save, and the acknowledgement is written */
	ACK_SAVED,  /* the save is done and reported */
	ACK_ALL,    /* all tasks have saved; the board was told to leave */
};

struct ack_request {
	const struct agent_options *options;
	const struct attempt *attempt;
	const char *board; /* its directory */
	pid_t agent; /* written into hold: when this process dies, the training stops waiting */
	/* For one stage: */
	enum ack_goal goal;
	int64_t deadline;			   /* give up then; CLOCK_NEVER: never */
	void (*progress)(const struct view *view); /* called in each pass; may be NULL */
};

struct ack_answer {
	struct agreement_decision decision; /* of the newest round */
	struct agreement_hold told;	    /* the order on the board */
	int leave;	  /* the code that the training process is to leave with; 0: none */
	bool reported;	  /* the store has this task's report of its step */
	int64_t deadline; /* of the run, as known here; CLOCK_NEVER: none */
};

/*
 * Act until the goal is reached. store is open, and is closed in any case. STATUS_OK: the goal was
 * reached, now or by an earlier call. STATUS_NO with answer->leave 0: there is no claim and no
 * round, this task has no part in the round, or the board is gone. STATUS_NO with another
 * answer->leave: the training was told to leave with that code, or the caller must end it; the
 * error says which. STATUS_BROKEN: the attempt is broken. STATUS_TIMEOUT: request->deadline has
 * passed. A store that does not answer is asked again; if time runs out, the task saves alone.
 */
enum status ack_run(const struct ack_request *request, struct store *store,
	struct ack_answer *answer, struct error *err);

/*
 * Serve every round until the attempt is closed, the task has left, the board is gone, or the
 * served process (a pidfd; -1: none) has ended. After the end of that process, declare the task
 * dead, unless the attempt is closed. Returns the exit code; an error has been printed.
 */
int ack_serve(const struct ack_request *request, int served);

#endif
