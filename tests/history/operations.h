/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * A recorded history of a key store (store/store.h): what many processes asked, and what each was
 * answered, with the instants of call and return.
 *
 * Each process writes a log of its own: one line with one write(2) before each operation, and one
 * after it. So kill -9 loses only the answer of the operation that was under way; the outcome of
 * that operation is unknown. A process that is started again writes another log: that is another
 * life of the same process. The lines, with instants in nanoseconds of CLOCK_MONOTONIC:
 *
 *   history 1 PROCESS LIFE BASE    the first line; BASE: the store's revision before the recording
 *   clock OFFSET BOUND             optional, to be put behind the first line where the logs of
 *                                  several machines are gathered: OFFSET is added to all instants
 *                                  of this log, and may be wrong by BOUND; both in microseconds
 *   call N INSTANT txn [?KEY=REVISION]... [+pKEY | +dKEY | +gKEY | -pKEY | -dKEY | -gKEY]...
 *   call N INSTANT list PREFIX SINCE
 *   call N INSTANT wait PREFIX SINCE MILLISECONDS
 *   back N INSTANT held REVISION [KEY=REVISION:VALUE | KEY=0]...   txn; one entry for each get
 *   back N INSTANT not REVISION [KEY=REVISION:VALUE | KEY=0]...    txn; its compares did not hold
 *   back N INSTANT list REVISION [KEY=REVISION:VALUE]...
 *   back N INSTANT changed REVISION                                wait; it found a change
 *   back N INSTANT quiet REVISION UNCHANGED   wait; it timed out; UNCHANGED: store_unchanged, or 0
 *   back N INSTANT refused [TEXT]             an error, and certainly nothing was changed
 *   back N INSTANT unknown [TEXT]             an error
 *
 * In a transaction "+" stands before what is done if the compares hold, "-" before what is done
 * otherwise; p, d and g are put, delete and get. Every put of an operation writes the same value:
 * the operation's name, PROCESS.LIFE.N.
 */
/* clang-format on */
#ifndef HISTORY_OPERATIONS_H
#define HISTORY_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

#define HISTORY_KEYS	 64	   /* different keys in one history, at most */
#define HISTORY_PREFIXES 16	   /* different prefixes */
#define HISTORY_LATER	 INT64_MAX /* an instant: it never returned */

/* The name of an operation, and the value that it puts; 0: none. */
typedef uint64_t operation_name;
#define OPERATION_NAME(process, life, number)                                                      \
	((operation_name)((process) + 1) << 48 | (operation_name)(life) << 32 | (uint32_t)(number))
#define NAME_PROCESS(name) ((unsigned)((name) >> 48) - 1)
#define NAME_LIFE(name)	   ((unsigned)((name) >> 32) & 0xffff)
#define NAME_NUMBER(name)  ((unsigned)((name)&0xffffffff))

enum operation_kind { TRANSACTION, LIST, WAIT };

enum outcome {
	UNKNOWN,   /* it may have taken effect at any instant after the call, or never */
	ANSWERED,  /* by a transaction or list, or a wait that found a change */
	QUIET,	   /* a wait that timed out */
	NO_EFFECT, /* an error, and nothing was changed */
};

struct key_compare {
	int key;
	store_revision revision;
};

struct key_operation {
	enum store_op_kind kind;
	int key;
	bool otherwise;
};

struct key_entry {
	int key;
	store_revision revision; /* 0: absent */
	operation_name value;
};

struct operation {
	operation_name name;
	enum operation_kind kind;
	enum outcome outcome;
	int64_t call, back; /* nanoseconds; HISTORY_LATER where it never returned */
	bool held;
	store_revision revision; /* answered */
	int prefix;		 /* of a list or wait */
	store_revision since;
	int64_t limit;	   /* of a wait, nanoseconds */
	int64_t unchanged; /* nanoseconds; INT64_MIN: nothing was said */
	/* Where its parts begin in the arrays of the history, and how many they are. */
	size_t compare, compare_count;
	size_t part, part_count;
	size_t entry, entry_count;
};

struct history {
	struct operation *operations;
	size_t count, operations_capacity;
	struct key_compare *compares;
	size_t compare_count, compares_capacity;
	struct key_operation *parts;
	size_t part_count, parts_capacity;
	struct key_entry *entries;
	size_t entry_count, entries_capacity;
	char *keys[HISTORY_KEYS];
	int key_count;
	char *prefixes[HISTORY_PREFIXES];
	uint64_t under[HISTORY_PREFIXES]; /* the keys under each, as bits; after history_finish */
	int prefix_count;
	bool begun;	     /* the head of a log was read */
	store_revision base; /* the smallest of all logs */
	bool shared;	   /* the server has other users: a revision may be made by none of these */
	uint32_t *by_name; /* operations in the order of their names; after history_finish */
};

/*
 * Add one log. A last line without its end, which a killed process left, is ignored.
 * STATUS_USAGE: this is not a log, with its name and line in the error. text is changed.
 */
enum status history_add(
	struct history *history, const char *name, char *text, size_t length, struct error *err);
/* The same from a file. */
enum status history_read(struct history *history, const char *path, struct error *err);
/* To be called once, after the last log. STATUS_USAGE: two operations have one name. */
enum status history_finish(struct history *history, struct error *err);
/* NULL: there is none. */
const struct operation *history_find(const struct history *history, operation_name name);
void history_release(struct history *history);

#endif
