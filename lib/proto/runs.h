/* SPDX-License-Identifier: MIT */
/*
 * List the runs in a store, and delete those that are over. The keys of a run are
 * "run/RUN/ATTEMPT/...", ATTEMPT in six digits or more; an attempt is closed when it has the key
 * CLOSED, whose JSON value says when ("utc") and how ("state").
 */
#ifndef PROTO_RUNS_H
#define PROTO_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct run_summary {
	char name[129];
	uint64_t attempts;		/* how many */
	uint64_t last;			/* number of the newest attempt */
	bool closed;			/* the newest attempt is closed */
	store_revision closed_revision; /* of its key CLOSED */
	char state[32];			/* "open", or how the newest attempt was closed */
	int64_t changed; /* ms: when it was closed; if it is open, the newest utc in its keys;
			    0: unknown */
};

/* The name of the run whose keys follow those of run `after` (NULL: the first). STATUS_NO: none. */
enum status runs_next_name(
	struct store *store, const char *after, char name[129], struct error *err);
/* Find the run whose keys follow those of run `after` (NULL: the first run). STATUS_NO: none. */
enum status runs_next(
	struct store *store, const char *after, struct run_summary *run, struct error *err);

/*
 * Delete all keys and beats of a run. STATUS_NO: its newest attempt is not closed, or a new one was
 * opened since the summary was read.
 */
enum status runs_forget(struct store *store, const struct run_summary *run, struct error *err);

#endif
