/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * Recording a history: many processes, each with a store of its own, on the URLs in turn, ask what
 * mix.h says and log it, with the instants of call and return. history/check judges the logs.
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
#ifndef HISTORY_RECORD_H
#define HISTORY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct recording {
	int processes;
	int operations; /* of each process */
	int kills;	/* how often a random process is killed, and started again */
	int stops;	/* how often one is stopped for 1.5 s */
	bool looks; /* files of the store are read without its lock all the time, through each URL
		     */
	int first;  /* the number of the first process: other than in other recordings there */
	bool joins; /* other recordings are under way there: the store need not be empty */
	int64_t patience; /* of each operation, milliseconds */
	uint64_t seed;
	const char *directory; /* for the logs, PROCESS.LIFE.log: there must be none yet */
	char **urls;
	int url_count;
};

/*
 * Returns an exit code: 0, or 1 where a process could not do all its work, or 2 where nothing could
 * be recorded. Prints a line of figures to stdout, and what went wrong to stderr.
 */
int record(const struct recording *recording);

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t record_instant(void);

#endif
