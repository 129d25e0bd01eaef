/* SPDX-License-Identifier: MIT */
/*
 * A command in a queue has an item, which never changes, and is in exactly one of four places. Each
 * move is a transaction that compares the key of the place which the command leaves, so that of two
 * processes that move it only one succeeds:
 *
 *   waiting --take--> running --finish--> done
 *      ^ ^               |                  |
 *      | +--give back----+      retry-------+      (waiting, blocked --cancel--> done)
 *      |                          |
 *   blocked <---------------------+   (after.h: until others have succeeded)
 *
 * Keys under queue/QUEUE/ (ID: ten digits, from 1; PRIORITY: four digits, 0000 is the highest):
 *
 *   item/ID            the command as it was scheduled (struct queue_item)
 *   wait/PRIORITY/ID   it waits: its history
 *   blocked/ID         it waits for other commands: their ids, and its history
 *   run/ID             a worker runs it: the lease; a result needs the revision of this key
 *   done/ID            it is over: the result
 *   out/ID, err/ID     its output, if short; otherwise in a file that done/ID names
 *   cancel/ID          it runs, and its worker is told to end it
 *   after/ID           other commands wait for it: the first and the last of them
 *   pending/new/ID     commands from this one on are blocked, and after/... does not have them yet
 *   pending/over/ID    it is over, and not all commands that wait for it were told
 *   count/@next        the tally of schedule: how many ids were given
 *   count/WHO          a tally (struct queue_tally); one list of all tallies is consistent
 *   worker/TOKEN       a registered worker (workers.h)
 *   beat/NUMBER        which worker has the beat of this number
 *   error              the failure that was not reported yet
 *   resource/NAME      how to build a resource
 *   settings           struct queue_settings, if they were set
 *   once/KEY           what `schedule --once KEY` has scheduled
 *
 * Values are JSON objects on one line, except the outputs. If a value cannot be read, the answer is
 * STATUS_DAMAGED, and err names the key.
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
#define QUEUE_PRIORITY_MAX 4999	       /* the least is -4999; the default is 0 */
#define QUEUE_ITEM_MAX	   (60 * 1024) /* bytes; a longer item in the store is refused */

/* What the failure of a command does to others. */
enum queue_halt {
	HALT_NOW,   /* no command is started, waiting ones are cancelled, running ones are ended */
	HALT_SOON,  /* the same, but running ones may finish */
	HALT_NEVER, /* nothing */
};
/* Read "now", "soon" or "never". False: another word. */
bool queue_halt_parse(const char *word, enum queue_halt *halt);
const char *queue_halt_word(enum queue_halt halt);

/* A command as it was scheduled. Release it with queue_item_release. */
struct queue_item {
	uint64_t id;
	char **argv;	    /* NULL-terminated; never empty */
	char **environment; /* "NAME=VALUE", NULL-terminated; NULL: none */
	char **resources;   /* names, NULL-terminated; NULL: none */
	char *directory;    /* its working directory, absolute; NULL: that of the worker */
	char *tag;	    /* NULL: none */
	char *input;	    /* file for its stdin, absolute; NULL: /dev/null */
	char *output;	    /* file for its stdout (template_fill_name); NULL: the queue keeps it */
	char *after;	    /* ids of commands that must succeed first: "3-7,9"; NULL: none */
	char *batch;	    /* nonce of the transaction that scheduled it */
	int priority;	    /* higher ones are started first */
	uint64_t max_attempts;	/* 0: not given (rules.h) */
	uint64_t max_transient; /* how many ends with 75 in a row are no failure */
	int64_t timeout;	/* ms for each start; 0: no limit */
	bool shell;		/* argv[0] is a script for sh -c, the others are its $1... */
	enum queue_halt halt;	/* what its failure does to others */
	int64_t scheduled;	/* UTC, ms */
	bool damaged;		/* its record cannot be read, so it will fail (queue_item_take) */
};
void queue_item_release(struct queue_item *item);

/* How many times a command was started, and how those starts ended. */
struct queue_history {
	uint64_t starts;     /* all */
	uint64_t attempts;   /* those that use up max_attempts (rules.h) */
	uint64_t transients; /* the last ones in a row that ended with 75 */
	uint64_t preempted;  /* those ended by a notice to the worker, or with code 42 or 43 */
	uint64_t lost;	     /* those that ended because its worker vanished */
};

/* A command that waits for others. */
struct queue_blocked {
	char *after; /* the ids of those that have not succeeded yet */
	int priority;
	struct queue_history history;
};
/* after/ID: some of the commands first to last wait for ID. */
struct queue_dependents {
	uint64_t first, last;
};
/* pending/new/ID: the commands ID to last wait for `after`. */
struct queue_block {
	uint64_t last;
	char *after;
};

/* The lease of a command that runs. */
struct queue_lease {
	char token[17];	       /* new for each start: 16 hexadecimal digits */
	char worker_token[17]; /* of the worker: worker/TOKEN */
	char worker[129];      /* the worker's name */
	char host[65];
	int64_t since; /* UTC, ms */
	struct queue_history history;
};

enum queue_state {
	QUEUE_WAITING,
	QUEUE_RUNNING,
	QUEUE_BLOCKED,
	QUEUE_SUCCEEDED, /* the command is over in this and the next states */
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
		ENDING_TIMED_OUT, /* after its --timeout; code or number say how */
		ENDING_PREEMPTED, /* its worker had a notice, and it did not exit with 0 or 93 */
		ENDING_LOST,	  /* its worker vanished */
		ENDING_CANCELLED, /* by a user, or because another failed; perhaps before a start */
		ENDING_CANNOT,	  /* it cannot be started (code 126, 127, or 1); text says why */
	} kind;
	int code, number; /* exit code; signal */
	char text[256];	  /* human-readable; may be empty */
};
const char *queue_ending_word(enum queue_ending_kind kind);
/* The exit code as in a shell; timed out: 124, preempted: 43, lost: 44, cancelled: 1. */
int queue_ending_code(const struct queue_ending *ending);
/* Make the ending of a command whose record in the store is damaged. */
void queue_ending_damaged(struct queue_ending *ending, uint64_t id);
/* Describe it: "ended with exit code 3". */
void queue_ending_describe(const struct queue_ending *ending, char text[64]);

/* The result. started, user, system, memory: of the last start; 0: cancelled while it waited. */
struct queue_result {
	enum queue_state state; /* one of the last three */
	struct queue_ending ending;
	struct queue_history history; /* with this start */
	char token[17];		      /* of its lease; empty: cancelled while it waited */
	uint64_t because;	      /* the command whose failure has cancelled it; 0: none */
	char worker[129], host[65];
	int64_t started, ended;	   /* UTC, ms */
	int64_t user, system;	   /* CPU time, ms */
	uint64_t memory;	   /* largest resident set, bytes */
	uint64_t out, err;	   /* bytes of its output */
	bool out_filed, err_filed; /* it is in a file (output.h), not in out/ID, err/ID */
};

/* The settings of a queue, for commands that are scheduled later. Zeroed: none were set. */
struct queue_settings {
	enum queue_halt halt; /* for commands that are scheduled without --halt */
};

/* The first failure that is not reported yet: the value of the key error. */
struct queue_failure {
	uint64_t id;
	struct queue_ending ending;
	char worker[129], host[65], tag[129], command[256];
	int64_t utc;
	store_revision revision;
	enum queue_halt halt;
	bool stopping;	    /* HALT_NOW: all commands that ran were told to end */
	uint64_t cancelled; /* number of commands that it has cancelled */
	uint64_t others;    /* number of others that have failed; 0: none, or not counted */
};

/*
 * A tally counts the moves of one worker, or of all clients, so that counting the commands in each
 * place takes the same time for any length of the queue. Each worker's tally has its own key, which
 * each of its transactions with moves changes, so no worker waits for another. The sum of all
 * tallies, read with one list, is consistent.
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
	/* Commands in each state; waiting includes blocked ones. */
	uint64_t scheduled, waiting, running, succeeded, failed, cancelled;
	store_revision revision; /* of the store when this was so */
};

void queue_tally_add(struct queue_tally *to, const struct queue_tally *more);
/* Compute the count from the sum of all tallies. */
void queue_tally_count(const struct queue_tally *all, struct queue_count *count);

/* ---- Values of keys ---- */

/* The fields of a kind of record (base/json_fields.h), and further checks. */
struct queue_record {
	const struct json_field *fields;
	size_t size;
	bool (*check)(void *record, const struct store_entry *entry); /* NULL: nothing */
};
extern const struct queue_record queue_item_record, queue_blocked_record, queue_dependents_record,
	queue_block_record, queue_history_record, queue_lease_record, queue_result_record,
	queue_failure_record, queue_tally_record, queue_settings_record;

/*
 * Read the record in entry. STATUS_DAMAGED: it is absent or not readable, or a member has a wrong
 * type or is out of range; err names the key, and the record is zeroed.
 */
enum status queue_read(const struct queue_record *kind, const struct store_entry *entry,
	void *record, struct error *err);
/* Set err: the entry cannot be read. */
enum status queue_damaged(const struct store_entry *entry, struct error *err);
struct json_object *queue_write(const struct queue_record *kind, const void *record);
/* Add the record to an object that a program prints. */
void queue_show(const struct queue_record *kind, const void *record, struct json_object *object);
/* Read an item. If that fails, sets item->damaged, and argv to "(damaged)" for users to see. */
void queue_item_take(const struct store_entry *entry, uint64_t id, struct queue_item *item);
/* Read the ID at the end of a key. */
bool queue_key_id(const char *key, uint64_t *id);

#endif
