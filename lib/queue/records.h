/* SPDX-License-Identifier: MIT */
/*
 * A command in a queue: what was asked, which never changes, and where it is now. It is in exactly
 * one of three places, and every move between them is one transaction that compares the place it
 * leaves, so that whoever was overtaken is refused:
 *
 *   waiting --take--> running --finish--> done
 *      ^                 |                  |
 *      +---give back-----+      retry-------+      (waiting --cancel--> done)
 *
 * Keys under queue/QUEUE/ (ID: ten digits, from 1; PRIORITY: four, the highest first):
 *   item/ID            what was asked (struct queue_item)
 *   wait/PRIORITY/ID   it waits: its history
 *   run/ID             somebody runs it: the lease; its revision is what fences
 *   done/ID            it is over: the result
 *   out/ID, err/ID     its output, where that is short; else it is in a file that done/ID names
 *   cancel/ID          it runs, and shall end
 *   count/@next, count/WHO   tallies (count.h): one list of count/ is a consistent picture
 *   worker/TOKEN       a worker that is here (workers.h)
 *   beat/NUMBER        which of them beats there
 *   error              the failure that nobody was told of yet
 *   resource/NAME      how a resource is built
 *   once/KEY           what `schedule --once KEY` has scheduled
 *
 * Values are JSON objects on one line, but for the outputs. One that cannot be read is
 * STATUS_DAMAGED and names its key.
 */
#ifndef QUEUE_RECORDS_H
#define QUEUE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

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
	char **argv;		/* NULL-terminated; never empty */
	char **environment;	/* "NAME=VALUE", NULL-terminated; NULL: none */
	char **resources;	/* names, NULL-terminated; NULL: none */
	char *directory;	/* where it runs: absolute; NULL: where the worker is */
	char *tag;		/* NULL: none */
	char *input;		/* file that becomes its stdin: absolute; NULL: /dev/null */
	char *batch;		/* nonce of the transaction that scheduled it */
	int priority;		/* higher is sooner */
	uint64_t max_attempts;	/* 0: not given (rules.h) */
	uint64_t max_transient; /* failures with 75 in a row that are forgiven */
	int64_t timeout;	/* ms that one start may run; 0: no limit */
	bool shell;		/* argv[0] is text for sh -c, the others its $1... */
	enum queue_halt halt;	/* what its failure does to the others */
	int64_t scheduled;	/* UTC, ms */
};
void queue_item_release(struct queue_item *item);
/* Of one that cannot be read: something to fail with. */
void queue_item_unreadable(struct queue_item *item, uint64_t id);

/* What has happened to it in its earlier starts. */
struct queue_history {
	uint64_t starts;     /* all of them */
	uint64_t attempts;   /* those that count (rules.h) */
	uint64_t transients; /* ends with 75 in a row */
	uint64_t preempted;  /* given back because of a notice */
	uint64_t lost;	     /* workers that vanished under it */
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
		ENDING_CANCELLED, /* somebody wanted it to end; also: it never started */
		ENDING_CANNOT,	  /* it cannot be started (code 126, 127, or 1); text says why */
	} kind;
	int code, number; /* exit code; signal */
	char text[256];	  /* for people; may be empty */
};
const char *queue_ending_word(enum queue_ending_kind kind);
/* The code that a shell would say: 124 after a timeout. */
int queue_ending_code(const struct queue_ending *ending);
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

/* As members of a larger object; false: there is none, or one of a word that we do not know. */
void queue_ending_put(struct json_object *object, const struct queue_ending *ending);
bool queue_ending_get(const struct json_object *object, struct queue_ending *ending);

/* STATUS_DAMAGED: what stands at key cannot be read. */
enum status queue_damaged(const char *key, struct error *err);

/* Values of keys, and back: STATUS_DAMAGED names key. The readers copy. */
struct json_object *queue_item_write(const struct queue_item *item);
enum status queue_item_read(const char *key, const char *value, size_t length,
	struct queue_item *item, struct error *err);
struct json_object *queue_history_write(const struct queue_history *history);
enum status queue_history_read(const char *key, const char *value, size_t length,
	struct queue_history *history, struct error *err);
struct json_object *queue_lease_write(const struct queue_lease *lease);
enum status queue_lease_read(const char *key, const char *value, size_t length,
	struct queue_lease *lease, struct error *err);
struct json_object *queue_result_write(const struct queue_result *result);
enum status queue_result_read(const char *key, const char *value, size_t length,
	struct queue_result *result, struct error *err);

#endif
