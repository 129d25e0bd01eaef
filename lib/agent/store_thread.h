/* SPDX-License-Identifier: MIT */
/*
 * What the agent's loop asks of the store, carried out by a worker (base/worker.h), so that a slow
 * store never delays a signal or a child. (The pulse has a handle of its own.) Requests are carried
 * out one after another, in order; their results come back in the same order. When there is nothing
 * to do it waits for changes of the attempt and reports them.
 */
#ifndef AGENT_STORE_THREAD_H
#define AGENT_STORE_THREAD_H

#include "agent/agent.h"
#include "agent/pulse/pulse.h"
#include "run/attempt.h"

struct store_thread;

enum result_kind {
	RESULT_JOINED, /* the join is over: status, view, longest_save */
	RESULT_WROTE,  /* a write: outcome */
	RESULT_SAW,    /* what changed: answer, read from began to now (struct view_reading) */
	RESULT_CLOSED, /* the goodbye is over: status */
};

struct result {
	enum result_kind kind;
	enum status status; /* RESULT_SAW: STATUS_OK, or why the store could not be asked */
	struct error error;
	enum agreement_outcome outcome;
	struct write write; /* RESULT_WROTE: what was, or was to be, written */
	bool news;    /* RESULT_WROTE: there may be changes that no RESULT_SAW has reported yet */
	bool whole;   /* RESULT_SAW: with the records of single tasks (view_feed) */
	bool counted; /* RESULT_SAW: the records of these kinds were counted */
	struct view_count_request counts;
	struct store_answer answer;
	int64_t unchanged, began, now;
	/* RESULT_JOINED. The caller may take over what view points to, and free it alone. */
	struct view *view;    /* *view is zeroed if no attempt was joined */
	int64_t longest_save; /* what the store remembers */
	struct result *next;
};
void result_free(struct result *result);

/*
 * Start the worker. It takes over store, which is open; if store is NULL, it opens the one at url.
 * The process has opened that store before: if it is missing, the worker waits and never creates
 * it. After an error, store is still the caller's.
 */
enum status store_thread_start(
	struct store_thread **thread, const char *url, struct store *store, struct error *err);

/* Since when the store has not answered what this thread asks; 0: nothing is asked. */
int64_t store_thread_asked_at(const struct store_thread *thread);
/* Begin what is to be done next, if nothing is done now. To be called before each wait. */
void store_thread_begin(struct store_thread *thread);
/* Readable when something was done: call store_thread_take until it returns NULL. */
int store_thread_descriptor(const struct store_thread *thread);
/* The next result, or NULL. The caller frees it. */
struct result *store_thread_take(struct store_thread *thread);

/*
 * Join, gather, and find the checkpoint to resume from. pulse (may be NULL) must stay valid until
 * RESULT_JOINED comes; it begins to beat once this agent's tasks have joined. store_thread_cancel
 * ends a wait of the join; it does not end a call to the store or the search for a checkpoint.
 */
void store_thread_join(struct store_thread *thread, const struct attempt_entry *entry,
	const struct agent_options *options, struct pulse *pulse);
void store_thread_cancel(struct store_thread *thread);
/* Carry out a write, which is taken over; all those that wait, in one transaction if possible. */
void store_thread_write(struct store_thread *thread, struct write *write);
/* From now on report changes that this view does not show: news at once, others if wanted. */
void store_thread_follow(struct store_thread *thread, const struct view *view);
/* Report no changes any more. */
void store_thread_unfollow(struct store_thread *thread);
struct store_wants {
	int64_t look;  /* read the news by this instant */
	int64_t count; /* a look at this instant or later counts these records, too: */
	struct view_count_request counts;
	int64_t read; /* read everything by this instant */
	bool awaits;  /* news is to be expected soon */
};
/* Replace what was wanted before. A result removes the wants that it fulfils: call this again. */
void store_thread_want(struct store_thread *thread, const struct store_wants *wants);
/*
 * If all tasks have left, are dead or can no longer join, store what they have learned, and close
 * the attempt. finished: this agent leaves with 0.
 */
void store_thread_close(struct store_thread *thread, const struct attempt *attempt,
	const struct agent_options *options, bool finished);

/*
 * Carry out what was asked for, and end the worker. False: it hangs in the filesystem for longer
 * than patience (ms), and was left alone.
 */
bool store_thread_stop(struct store_thread *thread, int64_t patience);

#endif
