/* SPDX-License-Identifier: MIT */
/*
 * A command in a queue: what was asked, which never changes, and where it is now. It is in exactly
 * one of four places, and every move between them is one transaction that compares the place it
 * leaves, so that a process that was overtaken is refused:
 *
 *   waiting --take--> running --finish--> done
 *      ^ ^               |                  |
 *      | +--give back----+      retry-------+      (waiting, blocked --cancel--> done)
 *      |                          |
 *   blocked <---------------------+   (after.h: until others have succeeded)
 *
 * Keys under queue/QUEUE/ (ID: ten digits, from 1; PRIORITY: four, the highest first):
 *
 *   item/ID            what was asked (struct queue_item)
 *   wait/PRIORITY/ID   it waits: its history
 *   blocked/ID         it waits until others have succeeded: for which, and its history
 *   run/ID             a worker runs it: the lease; its revision fences the worker off
 *   done/ID            it is over: the result
 *   out/ID, err/ID     its output, where that is short; else in a file that done/ID names
 *   cancel/ID          it runs, and is to be ended
 *   after/ID           it blocks others: the first and the last of them
 *   pending/new/ID     from this one on some are blocked, and after/... does not say so yet
 *   pending/over/ID    it is over, and not all of those that it blocked were told
 *   count/@next        the tally of schedule: the ids that were given
 *   count/WHO          a tally (struct queue_tally): one list of all is a consistent picture
 *   worker/TOKEN       a worker that is registered (workers.h)
 *   beat/NUMBER        the worker that beats there
 *   error              the failure that was not reported yet
 *   resource/NAME      how a resource is built
 *   settings           struct queue_settings, where they were set
 *   once/KEY           what `schedule --once KEY` has scheduled
 *
 * Values are JSON objects on one line, except the outputs. One that cannot be read is
 * STATUS_DAMAGED and names its key.
 */
#ifndef QUEUE_RECORDS_H
#define QUEUE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json_fields.h"
#include "store/store.h"

#define QUEUE_ID_MAX	   9999999999ull
#define QUEUE_PRIORITY_MAX 4999	       /* and its negative is the least; 0 by default */
#define QUEUE_ITEM_MAX	   (60 * 1024) /* bytes of an item in the store: refused above */

/* When a command fails, no other is started (but HALT_NEVER), what waits is cancelled, and: */
enum queue_halt {
	HALT_NOW,   /* what runs is told to end */
	HALT_SOON,  /* what runs is waited for */
	HALT_NEVER, /* nothing of all that: its failure cancels nothing */
};
/* "now", "soon", "never"; false: another word. */
bool queue_halt_parse(const char *word, enum queue_halt *halt);
const char *queue_halt_word(enum queue_halt halt);

/* What was asked. Release with queue_item_release. */
struct queue_item {
	uint64_t id;
	char **argv;	    /* NULL-terminated; never empty */
	char **environment; /* "NAME=VALUE", NULL-terminated; NULL: none */
	char **resources;   /* names, NULL-terminated; NULL: none */
	char *directory;    /* where it runs: absolute; NULL: where the worker is */
	char *tag;	    /* NULL: none */
	char *input;	    /* file that becomes its stdin: absolute; NULL: /dev/null */
	char *output;	    /* file for its stdout (template_fill_name); NULL: the queue keeps it */
	char *after;	    /* ids that must succeed before it: "3-7,9"; NULL: none */
	char *batch;	    /* nonce of the transaction that scheduled it */
	int priority;	    /* higher is sooner */
	uint64_t max_attempts;	/* 0: not given (rules.h) */
	uint64_t max_transient; /* failures with 75 in a row that are forgiven */
	int64_t timeout;	/* ms that one start may run; 0: no limit */
	bool shell;		/* argv[0] is text for sh -c, the others its $1... */
	enum queue_halt halt;	/* what its failure does to the others */
	int64_t scheduled;	/* UTC, ms */
	bool damaged;		/* its record cannot be read: it is to fail (queue_item_take) */
};
void queue_item_release(struct queue_item *item);

/* What has happened to it in its earlier starts. */
struct queue_history {
	uint64_t starts;     /* all of them */
	uint64_t attempts;   /* those that count (rules.h) */
	uint64_t transients; /* ends with 75 in a row */
	uint64_t preempted;  /* given back because of a notice */
	uint64_t lost;	     /* workers that vanished under it */
};

/* It waits for others. */
struct queue_blocked {
	char *after; /* those that have not succeeded yet */
	int priority;
	struct queue_history history;
};
/* Commands that one of them blocks: some of those from first to last. */
struct queue_dependents {
	uint64_t first, last;
};
/* Commands that were blocked, up to last, by these. */
struct queue_block {
	uint64_t last;
	char *after;
};

/* Who runs it. */
struct queue_lease {
	char token[17];	       /* fresh for each acquisition: 16 hexadecimal digits */
	char worker_token[17]; /* whose: worker/TOKEN */
	char worker[129];      /* its name */
	char host[65];
	int64_t since; /* UTC, ms */
	struct queue_history history;
};

enum queue_state {
	QUEUE_WAITING,
	QUEUE_RUNNING,
	QUEUE_BLOCKED,
	QUEUE_SUCCEEDED, /* from here on: it is done */
	QUEUE_FAILED,
	QUEUE_CANCELLED,
};
const char *queue_state_word(enum queue_state state);
bool queue_state_parse(const char *word, enum queue_state *state);

/* How its last start ended. */
struct queue_ending {
	enum queue_ending_kind {
		ENDING_EXITED,	  /* code */
		ENDING_SIGNALLED, /* number */
		ENDING_TIMED_OUT, /* its own --timeout; code or number say how it went then */
		ENDING_PREEMPTED, /* its worker had a notice, and it did not end with 0 */
		ENDING_LOST,	  /* its worker vanished */
		ENDING_CANCELLED, /* by a user or because of a failure; also: it never started */
		ENDING_CANNOT,	  /* it cannot be started (code 126, 127, or 1); text says why */
	} kind;
	int code, number; /* exit code; signal */
	char text[256];	  /* human-readable; may be empty */
};
const char *queue_ending_word(enum queue_ending_kind kind);
/* The code that a shell would say: 124 after a timeout. */
int queue_ending_code(const struct queue_ending *ending);
/* Of one whose record in the store is damaged. */
void queue_ending_damaged(struct queue_ending *ending, uint64_t id);
/* "ended with exit code 3" */
void queue_ending_describe(const struct queue_ending *ending, char text[64]);

/* What is left of it. Times are of its last start, and 0 where it never started. */
struct queue_result {
	enum queue_state state; /* one of the last three */
	struct queue_ending ending;
	struct queue_history history; /* this start counted */
	char token[17];		      /* of the lease that this result is of; empty: cancelled */
	uint64_t because; /* it was cancelled because this command failed; 0: otherwise */
	char worker[129], host[65];
	int64_t started, ended;	   /* UTC, ms */
	int64_t user, system;	   /* CPU time, ms */
	uint64_t memory;	   /* largest resident set, bytes */
	uint64_t out, err;	   /* bytes of its output */
	bool out_filed, err_filed; /* in a file (output.h), not in out/ID, err/ID */
};

/* What is set once for a queue, and holds for what is scheduled from then on. Zeroed: never set. */
struct queue_settings {
	enum queue_halt halt; /* of commands that are scheduled without one */
};

/* The first failure, until it was reported: the value of the key error. */
struct queue_failure {
	uint64_t id;
	struct queue_ending ending;
	char worker[129], host[65], tag[129], command[256];
	int64_t utc;
	store_revision revision;
	enum queue_halt halt;
	bool stopping;	    /* HALT_NOW: all that ran were told to end */
	uint64_t cancelled; /* commands that were cancelled because of it */
	uint64_t others;    /* that failed, too; 0 where it is not counted */
};

/*
 * How many commands are where, at a cost that does not grow with the queue: each process that moves
 * commands keeps a tally of its moves under a key of its own, changed in the same transaction, so
 * that no process waits for another. The sum of all tallies, read by one list, is consistent.
 */
struct queue_tally {
	uint64_t scheduled;
	uint64_t taken;	    /* waiting to running */
	uint64_t returned;  /* running to waiting */
	uint64_t succeeded; /* running to done, by its state */
	uint64_t failed;
	uint64_t stopped;   /* running to cancelled */
	uint64_t cancelled; /* waiting to cancelled */
	/* done to waiting, by what it was */
	uint64_t reopened_succeeded, reopened_failed, reopened_cancelled;
	char last[17]; /* token of the transaction that wrote this (moves.h) */
};

struct queue_count {
	uint64_t scheduled, waiting, running, succeeded, failed, cancelled; /* blocked ones wait */
	store_revision revision;					    /* when this was so */
};

void queue_tally_add(struct queue_tally *to, const struct queue_tally *more);
/* What the moves of all add up to. */
void queue_tally_count(const struct queue_tally *all, struct queue_count *count);

/* ---- Values of keys ---- */

/* The fields of a kind of record (base/json_fields.h), and what the table cannot check. */
struct queue_record {
	const struct json_field *fields;
	size_t size;
	bool (*check)(void *record, const struct store_entry *entry); /* NULL: nothing */
};
extern const struct queue_record queue_item_record, queue_blocked_record, queue_dependents_record,
	queue_block_record, queue_history_record, queue_lease_record, queue_result_record,
	queue_failure_record, queue_tally_record, queue_settings_record;

/*
 * Read the record at entry. STATUS_DAMAGED, which names the key: it is absent, or cannot be read,
 * or a member has a wrong type or is out of range; the record is zeroed then.
 */
enum status queue_read(const struct queue_record *kind, const struct store_entry *entry,
	void *record, struct error *err);
/* The answer that it cannot be read. */
enum status queue_damaged(const struct store_entry *entry, struct error *err);
struct json_object *queue_write(const struct queue_record *kind, const void *record);
/* Add it to an object that a program prints, under the names that are shown. */
void queue_show(const struct queue_record *kind, const void *record, struct json_object *object);
/* Read an item; where that cannot be done, item is damaged, and has a command to show. */
void queue_item_take(const struct store_entry *entry, uint64_t id, struct queue_item *item);
/* The ID at the end of a key. */
bool queue_key_id(const char *key, uint64_t *id);

#endif
