/* SPDX-License-Identifier: MIT */
/*
 * A durable queue of commands in a store. What was acknowledged (STATUS_OK) survives the death of
 * all processes and machines. All calls may be repeated; those that wait have a deadline
 * (base/clock.h).
 */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include "base/text.h"
#include "queue/records.h"
#include "store/store.h"

#define QUEUE_LIMIT 262144 /* the most waiting commands (docs/scenarios.md, WQ) */
/* The most moves in one transaction: etcd allows 128 operations. */
#define QUEUE_BATCH 12
/* The most commands that one transaction schedules (see queue_schedule_most), or changes. */
#define QUEUE_SCHEDULE_BATCH 500
#define QUEUE_CHANGE_BATCH   24

struct queue {
	struct store *store;
	char name[129];
	char prefix[144]; /* "queue/NAME/" */
	char *files; /* the directory for data that is too long for the store; made when needed */
	struct queue_tally tally; /* of this process, as it is in the store */
	store_revision tallied;	  /* revision of count/WHO; 0: no such key; -1: not known */
	char unknown[17]; /* token of a transaction of unknown outcome (moves.h); "": none */
	char who[65];	  /* WHO: "@clients", or the token of this worker */
};

/*
 * Open the queue of this name (parse_name). files: its directory; NULL: NAME in store_files. store
 * must outlive the queue.
 */
enum status queue_open(struct queue *queue, struct store *store, const char *name,
	const char *files, struct error *err);
void queue_release(struct queue *queue);

/* Make a key "queue/NAME/...", which has at most STORE_KEY_MAX bytes. */
#define QUEUE_KEY_MAX (STORE_KEY_MAX + 1)
void queue_key(const struct queue *queue, char key[QUEUE_KEY_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void queue_key_waiting(
	const struct queue *queue, char key[QUEUE_KEY_MAX], int priority, uint64_t id);
/* Make a key "queue/NAME/WHAT/ID"; WHAT is item, run, done, out, err or cancel. */
void queue_key_at(
	const struct queue *queue, char key[QUEUE_KEY_MAX], const char *what, uint64_t id);

/* List keys below "queue/NAME/WHAT/". range.prefix is ignored. */
enum status queue_list(const struct queue *queue, const char *what, struct store_range range,
	struct store_answer *answer, struct error *err);

/*
 * Read the record at key. STATUS_NO: there is none, and record is unchanged. revision (may be
 * NULL): of the key; 0: absent.
 */
enum status queue_get(const struct queue *queue, const char *key, const struct queue_record *kind,
	void *record, store_revision *revision, struct error *err);

/* Make a random token of 16 hexadecimal digits, not all 0. */
void queue_draw_token(char token[17]);

/* Count the commands in each place, all at the same instant. */
enum status queue_count(struct queue *queue, struct queue_count *count, struct error *err);

/* Read the settings; if none were set, they are zeroed. */
enum status queue_settings_get(
	struct queue *queue, struct queue_settings *settings, struct error *err);
enum status queue_settings_put(
	struct queue *queue, const struct queue_settings *settings, struct error *err);

/* ---- schedule.c ---- */

struct queue_schedule {
	uint64_t limit;	   /* wait while more commands than this would wait; 0: no limit */
	int64_t deadline;  /* STATUS_TIMEOUT: still full, or commands still run after a failure */
	const char *once;  /* a name under which items are scheduled only once; NULL: none */
	int wake;	   /* STATUS_NO: this descriptor became readable; -1: none */
	bool use_settings; /* apply the settings of the queue to the items */
};

/* The most commands that one transaction of this store can schedule: 60 to QUEUE_SCHEDULE_BATCH. */
size_t queue_schedule_most(const struct queue *queue);

/*
 * Schedule items in one transaction, at most queue_schedule_most, all with the same `after` (from
 * queue_after; if it is not NULL, call queue_carry_on afterwards). Sets the id and batch of each
 * item. Waits while an error is pending or the queue is full. STATUS_BROKEN: this call has raised a
 * pending error (queue_raise), and scheduled nothing. With how->once, number is the number of the
 * first item (0, 1, ...); each number must mean the same item in every call, and an item whose
 * number was scheduled before gets its old id.
 */
enum status queue_schedule(struct queue *queue, struct queue_item *items, size_t count,
	uint64_t number, const struct queue_schedule *how, struct error *err);

/* ---- inspect.c ---- */

/* All that is known about a command. Release it with queue_view_release. */
struct queue_view {
	struct queue_item item;
	enum queue_state state;
	struct queue_history history;
	struct queue_lease lease;   /* if QUEUE_RUNNING */
	struct queue_result result; /* if it is over */
	bool cancelling;	    /* if QUEUE_RUNNING: it was cancelled, and has not ended yet */
	char *after;		    /* if QUEUE_BLOCKED: the commands that have not succeeded yet */
	store_revision revision;    /* of the key of its place */
};
void queue_view_release(struct queue_view *view);

/* STATUS_NO: there is no such command. STATUS_DAMAGED: its item, or its place, cannot be read. */
enum status queue_inspect(
	struct queue *queue, uint64_t id, struct queue_view *view, struct error *err);
/*
 * Inspect several commands (at most QUEUE_CHANGE_BATCH) at the same instant. If item.id of a view
 * is 0, there is no such command; one with item.damaged can still be cancelled and forgotten.
 * Release all views.
 */
enum status queue_inspect_some(struct queue *queue, const uint64_t *ids, size_t count,
	struct queue_view *views, struct error *err);
/* Called for each command. The view is valid only during the call. */
typedef enum status queue_visitor(void *context, const struct queue_view *view);
/*
 * Call visit for each command with an id above `after`, in the order of ids, until it returns
 * another status than STATUS_OK, which this then returns. Commands may move while this reads:
 * views may be of different instants, but none shows a place that was left before this was called.
 */
enum status queue_visit(struct queue *queue, uint64_t after, queue_visitor *visit, void *context,
	struct error *err);
/* The same for commands that run. view->cancelling is not set. */
enum status queue_visit_running(
	struct queue *queue, queue_visitor *visit, void *context, struct error *err);
/*
 * The same for commands that have ended after revision *since (0: all). *since becomes the revision
 * up to which they were visited. only: the state of the commands to visit; NULL: any.
 */
enum status queue_visit_done(struct queue *queue, store_revision *since,
	const enum queue_state *only, queue_visitor *visit, void *context, struct error *err);

/* ---- change.c ---- */

enum queue_change {
	QUEUE_CANCEL, /* cancel a command that waits; tell the worker of one that runs to end it */
	QUEUE_RETRY, /* let a command that failed or was cancelled wait again, with a new history */
	QUEUE_RETRY_ANY, /* the same, also if it succeeded */
	QUEUE_FORGET,	 /* forget a command that is over, with its output and its directory */
};
enum queue_changed {
	QUEUE_CHANGED_NOT,    /* in its present place, this cannot be done */
	QUEUE_CHANGED_ABSENT, /* there is no such command */
	QUEUE_CHANGED,
	QUEUE_CHANGED_REQUESTED, /* it runs, and its worker is told to end it */
};
/*
 * Change several commands (at most QUEUE_CHANGE_BATCH, each once) in one transaction. changed: what
 * was done with each. If the call fails, all may be changed, or none; it may be repeated.
 */
enum status queue_change(struct queue *queue, enum queue_change how, const uint64_t *ids,
	size_t count, enum queue_changed *changed, struct error *err);

/* ---- raise.c ---- */

/* Set err to a sentence: which command failed, how it ended, how many were cancelled. */
void queue_failure_say(
	const struct queue *queue, const struct queue_failure *failure, struct error *err);
/* Read the pending failure. STATUS_NO: there is none. */
enum status queue_failure_pending(
	struct queue *queue, struct queue_failure *failure, struct error *err);
/*
 * Raise the pending failure: tell running commands to end (HALT_NOW), wait until none runs, cancel
 * the waiting ones, and remove the error, so that the queue goes on. STATUS_OK: done; only one
 * caller gets this, or two if an answer was lost. Failed and cancelled commands keep their state
 * until they are retried or forgotten, so that queue_awaited can report it to callers that wait.
 * STATUS_NO: no failure is pending (any more). STATUS_TIMEOUT: a command still runs, and the
 * deadline has passed (clock_now(): do not wait), or wake (-1: none) became readable.
 */
enum status queue_raise(struct queue *queue, int64_t deadline, int wake,
	struct queue_failure *failure, struct error *err);

/* ---- awaited.c ---- */

/* The commands that a caller waits for: those with these ids, or with this tag, or all. */
struct queue_selection {
	const uint64_t *ids;
	size_t count;
	const char *tag; /* NULL: not by tag */
};
#define QUEUE_AWAITED_NAMED 8
struct queue_awaited {
	uint64_t commands;
	/* Commands that wait or run. If all commands are selected, the members below are set only
	 * if this is 0. */
	uint64_t going_on;
	uint64_t failed;     /* commands that failed without HALT_NEVER */
	uint64_t cancelled;  /* commands that were cancelled because another one failed */
	uint64_t because;    /* the command whose failure cancelled the first of these */
	uint64_t kept_going; /* commands that failed with HALT_NEVER, which cancels none */
	uint64_t named[QUEUE_AWAITED_NAMED]; /* the first ids of these */
	uint64_t absent;		     /* an id without a command; 0: none */
	struct queue_failure first;	     /* the first of failed; or of cancelled */
	struct queue_failure first_kept_going;
};
/*
 * Find the present outcome of the selected commands. count: from queue_count, called just before.
 */
enum status queue_awaited(struct queue *queue, const struct queue_selection *set,
	const struct queue_count *count, struct queue_awaited *outcome, struct error *err);
/*
 * The result when none is going on; err has it in words. STATUS_OK: each has succeeded, or a user
 * has cancelled it. STATUS_BROKEN: one has failed, or was cancelled because another failed.
 * STATUS_NO: some have failed, but with HALT_NEVER; or an id has no command; or none is selected.
 */
enum status queue_awaited_answer(const struct queue *queue, const struct queue_selection *set,
	const struct queue_awaited *outcome, struct error *err);

#endif
