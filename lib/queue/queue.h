/* SPDX-License-Identifier: MIT */
/*
 * A durable queue of commands in a store. What is acknowledged (STATUS_OK) survives the
 * death of all processes and machines. All calls may be repeated; those that wait take a deadline
 * (base/clock.h).
 */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include "base/text.h"
#include "queue/records.h"
#include "store/store.h"

#define QUEUE_LIMIT 262144 /* commands that may wait (docs/scenarios.md, WQ) */
/* Moves in one transaction: etcd allows 128 operations. */
#define QUEUE_BATCH 12
/* The same of commands that are only scheduled, or only changed; queue_schedule_most says more. */
#define QUEUE_SCHEDULE_BATCH 500
#define QUEUE_CHANGE_BATCH   24

struct queue {
	struct store *store;
	char name[129];
	char prefix[144]; /* "queue/NAME/" */
	char *files;	  /* the directory for what is too long for the store, made when needed */
	struct queue_tally tally; /* of this process, as it stands in the store */
	store_revision tallied;	  /* revision of count/WHO; 0: none yet; -1: not known */
	char unknown[17]; /* token of a transaction of unknown outcome (moves.h); "": none */
	char who[65];	  /* under which name it counts */
};

/*
 * name by parse_name. files: NULL for NAME in store_files. store stays the caller's and
 * must outlive the queue.
 */
enum status queue_open(struct queue *queue, struct store *store, const char *name,
	const char *files, struct error *err);
void queue_release(struct queue *queue);

/* Keys, "queue/NAME/" + rest; at most STORE_KEY_MAX bytes with what parse_name lets through. */
#define QUEUE_KEY_MAX (STORE_KEY_MAX + 1)
void queue_key(const struct queue *queue, char key[QUEUE_KEY_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void queue_key_waiting(
	const struct queue *queue, char key[QUEUE_KEY_MAX], int priority, uint64_t id);
/* "queue/NAME/WHAT/ID": item, run, done, out, err, cancel. */
void queue_key_at(
	const struct queue *queue, char key[QUEUE_KEY_MAX], const char *what, uint64_t id);

/* A page of what is below "queue/NAME/WHAT/": range without its prefix. */
enum status queue_list(const struct queue *queue, const char *what, struct store_range range,
	struct store_answer *answer, struct error *err);

/*
 * The record at key. STATUS_NO: nothing is there, and record is as it was. revision (may be NULL):
 * of the key; 0: absent.
 */
enum status queue_get(const struct queue *queue, const char *key, const struct queue_record *kind,
	void *record, store_revision *revision, struct error *err);

/* A random token that no other call gets: 16 hexadecimal digits, never all 0. */
void queue_draw_token(char token[17]);

/* How many are where, all at the same instant. */
enum status queue_count(struct queue *queue, struct queue_count *count, struct error *err);

/* Where they were never set, they are zeroed. */
enum status queue_settings_get(
	struct queue *queue, struct queue_settings *settings, struct error *err);
enum status queue_settings_put(
	struct queue *queue, const struct queue_settings *settings, struct error *err);

/* ---- schedule.c ---- */

struct queue_schedule {
	uint64_t limit;	   /* waiting commands above which it waits; 0: no limit */
	int64_t deadline;  /* STATUS_TIMEOUT: still full; nothing of this call was scheduled */
	const char *once;  /* NULL, or a name: what was scheduled under it is not scheduled again */
	int wake;	   /* a descriptor that ends the waiting (STATUS_NO); -1: none */
	bool use_settings; /* the items get what is set for the queue (queue_settings) */
};

/* How many can be scheduled in one transaction of this store: 60 to QUEUE_SCHEDULE_BATCH. */
size_t queue_schedule_most(const struct queue *queue);

/*
 * Schedule items in one transaction (at most queue_schedule_most, and with the same `after`, by
 * queue_after: then call queue_carry_on); fills each item's id and batch.
 * Waits while an error is pending or the queue is full. STATUS_BROKEN: it raised a pending error
 * (queue_raise), and scheduled nothing. With `once`, the caller gives the items of one batch in
 * the same order at each try; number is the number of the first of them (0, 1, ...), and those that
 * were scheduled before get their old ids.
 */
enum status queue_schedule(struct queue *queue, struct queue_item *items, size_t count,
	uint64_t number, const struct queue_schedule *how, struct error *err);

/* ---- inspect.c ---- */

/* All that is known of one command. Release with queue_view_release. */
struct queue_view {
	struct queue_item item;
	enum queue_state state;
	struct queue_history history;
	struct queue_lease lease;   /* QUEUE_RUNNING */
	struct queue_result result; /* done */
	bool cancelling;	    /* QUEUE_RUNNING: it was cancelled, and has not ended yet */
	char *after;		    /* QUEUE_BLOCKED: those that have not succeeded yet */
	store_revision revision;    /* of its place */
};
void queue_view_release(struct queue_view *view);

/* STATUS_NO: there is no such command. */
enum status queue_inspect(
	struct queue *queue, uint64_t id, struct queue_view *view, struct error *err);
/*
 * The same for several (at most QUEUE_CHANGE_BATCH), each at the same instant as the others: a view
 * whose item.id is 0 says that there is none. All are to be released.
 */
enum status queue_inspect_some(struct queue *queue, const uint64_t *ids, size_t count,
	struct queue_view *views, struct error *err);
/* What is done with each command; the view is its only during the call. */
typedef enum status queue_visitor(void *context, const struct queue_view *view);
/*
 * Call visit for every command with an id above after, in the order of ids, until it answers other
 * than STATUS_OK, which is answered then. Commands may move during the call: none is shown further
 * back than it is.
 */
enum status queue_visit(struct queue *queue, uint64_t after, queue_visitor *visit, void *context,
	struct error *err);
/* The same for those that run; cancelling is not told. */
enum status queue_visit_running(
	struct queue *queue, queue_visitor *visit, void *context, struct error *err);
/*
 * The same for those that came to be over after revision *since (0: all), which becomes the one up
 * to which they were visited; only (NULL: all): with this state.
 */
enum status queue_visit_done(struct queue *queue, store_revision *since,
	const enum queue_state *only, queue_visitor *visit, void *context, struct error *err);

/* ---- change.c ---- */

enum queue_change {
	QUEUE_CANCEL,	 /* one that waits is cancelled; of one that runs its worker is told */
	QUEUE_RETRY,	 /* one that failed or was cancelled waits again, with a fresh history */
	QUEUE_RETRY_ANY, /* also one that succeeded */
	QUEUE_FORGET,	 /* one that is over is forgotten, with its output and its directory */
};
enum queue_changed {
	QUEUE_CHANGED_NOT,    /* it is not where this could be done to it */
	QUEUE_CHANGED_ABSENT, /* there is none */
	QUEUE_CHANGED,
	QUEUE_CHANGED_REQUESTED, /* it runs, and its worker was told to end it */
};
/*
 * Change several (at most QUEUE_CHANGE_BATCH, each once) in one transaction; changed says of each
 * what was done. If it fails, some may be changed: it may be repeated.
 */
enum status queue_change(struct queue *queue, enum queue_change how, const uint64_t *ids,
	size_t count, enum queue_changed *changed, struct error *err);

/* ---- raise.c ---- */

/* Fill err with one sentence: which command, how it ended, what was cancelled. */
void queue_failure_say(
	const struct queue *queue, const struct queue_failure *failure, struct error *err);
/* STATUS_NO: none is pending. */
enum status queue_failure_pending(
	struct queue *queue, struct queue_failure *failure, struct error *err);
/*
 * Tell what runs to end (HALT_NOW), wait until nothing is in flight, cancel what waits, and take
 * the error away, so that the queue goes on: STATUS_OK, for one caller. What failed and was
 * cancelled stays so until it is retried or forgotten: queue_awaited tells callers that wait.
 * STATUS_NO: none is pending (any more). A deadline that has passed (clock_now()) does not wait:
 * STATUS_TIMEOUT, something is still running; so it is when the descriptor wake (-1: none) became
 * readable.
 */
enum status queue_raise(struct queue *queue, int64_t deadline, int wake,
	struct queue_failure *failure, struct error *err);

/* ---- awaited.c ---- */

/* The commands that a caller waits for: with these ids, or with this tag, or all. */
struct queue_selection {
	const uint64_t *ids;
	size_t count;
	const char *tag; /* NULL: not by tag */
};
#define QUEUE_AWAITED_NAMED 8
struct queue_awaited {
	uint64_t commands;
	uint64_t going_on;   /* wait or run; of all commands, the rest is only known when it is 0 */
	uint64_t failed;     /* and cancelled others */
	uint64_t cancelled;  /* because another one failed */
	uint64_t because;    /* of the first of them: that one */
	uint64_t kept_going; /* failed, and cancelled none: HALT_NEVER */
	uint64_t named[QUEUE_AWAITED_NAMED]; /* of them, the first ids */
	uint64_t absent;		     /* an id that is not there; 0: none */
	struct queue_failure first; /* of those that failed, else were cancelled, else kept going */
};
/* Their outcome by now; count is that of queue_count, from just before. */
enum status queue_awaited(struct queue *queue, const struct queue_selection *set,
	const struct queue_count *count, struct queue_awaited *outcome, struct error *err);
/*
 * The answer when none is going on, in words: STATUS_OK: all succeeded, or were cancelled by a
 * user. STATUS_BROKEN: one failed, or was cancelled because another did. STATUS_NO: some failed
 * that cancelled none; or there are none, and nothing that is meant was ever scheduled.
 */
enum status queue_awaited_answer(const struct queue *queue, const struct queue_selection *set,
	const struct queue_awaited *outcome, struct error *err);

#endif
