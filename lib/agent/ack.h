/* SPDX-License-Identifier: MIT */
/*
 * The agent beside a training that another program has started: what preempt-ack does on a board,
 * one stage at a time or for as long as the training lasts (--serve). What one call has done stands
 * in the store and on the board, and the next one goes on from there.
 */
#ifndef AGENT_ACK_H
#define AGENT_ACK_H

#include "agent/agent.h"

enum ack_goal {
	ACK_AGREED, /* the board was told where to save, and that is acknowledged */
	ACK_SAVED,  /* the save is done and reported */
	ACK_ALL,    /* all tasks have saved; the board was told to leave */
};

struct ack_request {
	const struct agent_options *options;
	const struct attempt *attempt;
	const char *board; /* its directory */
	pid_t agent;	   /* the process whose death frees the training: it stands in hold */
	/* For one stage: */
	enum ack_goal goal;
	int64_t deadline;			   /* CLOCK_NEVER: none */
	void (*progress)(const struct view *view); /* called after each look; may be NULL */
};

struct ack_answer {
	struct agreement_decision decision; /* of the newest round */
	struct agreement_hold told;	    /* what the board says */
	int leave;	  /* the code that the training process is to leave with; 0: none */
	bool reported;	  /* the task's step stands in the store */
	int64_t deadline; /* as it is known here; CLOCK_NEVER: none */
};

/*
 * Go on until the goal; store is open, and is closed in any case. STATUS_OK, also when an earlier
 * call has reached it. STATUS_NO: there is nothing to agree on (no claim, no round), the task was
 * left out of it, or the board is gone; or, where answer->leave is not 0, the training process was
 * told to leave with that code, or has to be ended: the error says which. STATUS_BROKEN: the run
 * has failed. STATUS_TIMEOUT: deadline has passed. A store that cannot be asked is asked again;
 * without it the task saves alone in time.
 */
enum status ack_run(const struct ack_request *request, struct store *store,
	struct ack_answer *answer, struct error *err);

/*
 * Serve every round until the attempt is closed, the task has left, the board is gone, or served (a
 * pidfd; -1: none) is readable: then the task is declared dead. Returns the exit code, having said
 * why.
 */
int ack_serve(const struct ack_request *request, int served);

#endif
