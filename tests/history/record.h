/* SPDX-License-Identifier: MIT */
/*
 * Recording a history: many processes, each with a store of its own, on the URLs in turn, ask what
 * mix.h says and log it (operations.h).
 */
#ifndef HISTORY_RECORD_H
#define HISTORY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct recording {
	int processes;
	int operations; /* of each process */
	int keys;	/* 2 to HISTORY_KEYS */
	int kills;	/* how often a random process is killed, and started again */
	int stops;	/* how often one is stopped for stop_for milliseconds */
	bool looks; /* files of the store are read without its lock all the time, through each URL
		     */
	int64_t stop_for;
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
