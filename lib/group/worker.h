/* SPDX-License-Identifier: MIT */
/*
 * The agent's store thread: the only place of the agent that talks to the store, so that a slow
 * store never delays a signal or a child. Requests are carried out one at a time, in order; their
 * results come back in the same order. When there is nothing to do it waits for changes of the
 * attempt and reports them.
 */
#ifndef GROUP_WORKER_H
#define GROUP_WORKER_H

#include "group/agent.h"
#include "group/attempt.h"
#include "group/pulse.h"

struct worker;

enum result_kind {
	RESULT_JOINED, /* attempt_join and attempt_gather are over: status, view */
	RESULT_WROTE,  /* a write: outcome */
	RESULT_SAW,    /* what changed: answer, read from began to now (struct view_reading) */
	RESULT_CLOSED, /* the goodbye is over: status */
};

struct result {
	enum result_kind kind;
	enum status status; /* RESULT_SAW: STATUS_OK, or why the store could not be asked */
	struct error error;
	bool set_back; /* RESULT_SAW: an older copy of the store was put back; in error */
	enum agreement_outcome outcome;
	struct write write; /* RESULT_WROTE: what was, or was to be, written */
	bool news;	    /* RESULT_WROTE: there is some that no look has shown yet */
	bool whole;	    /* RESULT_SAW: with the records of single tasks (view_feed) */
	bool counted;	    /* because of news that was counted */
	struct store_answer answer;
	int64_t unchanged, began, now;
	int64_t longest_save; /* RESULT_JOINED: what the store remembers */
	struct result *next;
};
void result_free(struct result *result);

/*
 * Start the thread on a store of its own, which it opens. The process has opened that store before:
 * a missing one is away, and is never made anew. All signals are blocked in the thread.
 */
enum status worker_start(struct worker **worker, const char *url, struct error *err);

/* Readable when there are results. */
int worker_descriptor(const struct worker *worker);
/* The next result, or NULL. The caller frees it. */
struct result *worker_take(struct worker *worker);

/*
 * Join, gather, and find the checkpoint to resume from; fills *view (which must stay valid and is
 * not touched by others until RESULT_JOINED comes; nor *progress, which is told what was learned
 * earlier). pulse (may be NULL) begins to beat once it has joined. worker_cancel gives up a join
 * that is under way.
 */
void worker_join(struct worker *worker, const struct attempt_entry *entry,
	const struct agent_options *options, struct view *view, struct pulse *pulse,
	struct progress_rules *progress);
void worker_cancel(struct worker *worker);
/* From begin to end: what is to be written meanwhile is written together, then. */
void worker_gather(struct worker *worker, bool begin);
/* Carry out a write, which is taken over. */
void worker_write(struct worker *worker, struct write *write);
/* Report what changes after what this view shows from now on: news at once, the rest with it. */
void worker_follow(struct worker *worker, const struct view *view);
/* Report no changes any more. */
void worker_rest(struct worker *worker);
/*
 * A fresh look is wanted by this instant at the latest; earlier ones replace later ones. To be
 * asked for again after results were taken. awaits: news is to be expected soon.
 */
void worker_look(struct worker *worker, int64_t by, bool awaits);
/*
 * If everybody is through, remember what all have learned, and close the attempt. finished: this
 * agent leaves with 0.
 */
void worker_close(struct worker *worker, const struct attempt *attempt,
	const struct agent_options *options, bool finished);

/*
 * End the thread; one that hangs in the filesystem for longer than patience (ms) is left alone, and
 * the process must then end by _exit.
 */
void worker_stop(struct worker *worker, int64_t patience);

#endif
