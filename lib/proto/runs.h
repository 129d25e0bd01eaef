/* SPDX-License-Identifier: MIT */
/*
 * Which runs a store holds, and forgetting those that are over. The keys of a run are
 * "run/RUN/ATTEMPT/...", ATTEMPT in six digits or more; an attempt is closed when it has the key
 * CLOSED, whose JSON value says when ("utc") and how ("reason").
 */
#ifndef PROTO_RUNS_H
#define PROTO_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct run_summary {
	char name[129];
	uint64_t attempts; /* how many there are */
	uint64_t last;	   /* the number of the newest */
	bool closed;	   /* the newest is closed */
	store_revision closed_revision;
	char reason[32]; /* "open", or how it was closed */
	int64_t changed; /* the newest "utc" in its keys, milliseconds; 0: none */
};

/* The first run whose name is greater than after (NULL: the first). STATUS_NO: there is none. */
enum status runs_next(
	struct store *store, const char *after, struct run_summary *run, struct error *err);

/*
 * Delete all keys and beats of a run, if it is still as the summary says: closed, and not begun
 * again. STATUS_NO where it is not.
 */
enum status runs_forget(struct store *store, const struct run_summary *run, struct error *err);

#endif
