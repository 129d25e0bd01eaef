/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint that many ranks wrote, a file each: which of its files are there, and whether those
 * are all. Pure.
 *
 * Names of files show gaps, but not that the highest ranks are missing. How many there must be is
 * known from what the checkpoint's own files say; where they do not, it is compared with its
 * siblings, the other checkpoints of the same directory; else it is not known.
 */
#ifndef CKPT_SHARDS_H
#define CKPT_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SHARD_SETS	 4
#define SHARD_DIMENSIONS 3

/* Files of one kind, a grid of up to three dimensions; those that are not used have extent 1. */
struct shard_set {
	const char *what; /* "optimizer states"; NULL: the checkpoint has no such files */
	uint64_t seen;	  /* how many are there */
	uint64_t extent[SHARD_DIMENSIONS]; /* the highest number, plus one; all 0: none is there */
	uint64_t said[SHARD_DIMENSIONS]; /* so many, the checkpoint's own files say; 0: they do not
					  */
	bool witnessed; /* files that are written later are all there, so these were written */
};

/* A zeroed one: nothing is known from names, and nothing has to be. */
struct shards {
	struct shard_set sets[SHARD_SETS]; /* the same kind at the same place in all siblings */
};

struct shards_sibling {
	const char *name;
	const struct shards *shards;
	bool whole; /* nothing is missing in it, as far as it can be told from itself alone */
	bool older;
};

enum shards_answer {
	SHARDS_ALL,
	SHARDS_MISSING,
	SHARDS_UNKNOWN,
	SHARDS_FEWER, /* not known, and a sibling has more */
};

/* Note a file with these numbers. */
void shards_see(struct shard_set *set, uint64_t first, uint64_t second, uint64_t third);

/* Whether there is anything to decide. */
bool shards_any(const struct shards *shards);

/*
 * Whether all are there. why is filled unless the answer is SHARDS_ALL. SHARDS_MISSING: there is a
 * gap, or fewer than the checkpoint's own files say. Where these do not say how many there are:
 *
 *   a whole sibling has as many | a sibling has more   | answer
 *   yes                         | none, or a newer one | SHARDS_ALL
 *   yes                         | an older one         | SHARDS_FEWER
 *   no                          | none                 | SHARDS_UNKNOWN (witnessed: SHARDS_ALL)
 *   no                          | any                  | SHARDS_FEWER
 *
 * That a sibling has more is no proof: jobs are started again with fewer ranks.
 */
enum shards_answer shards_decide(const struct shards *own, const struct shards_sibling *siblings,
	size_t count, struct error *why);

#endif
