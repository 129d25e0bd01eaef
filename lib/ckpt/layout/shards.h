/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint that many ranks wrote, a file each: which of its files are there, and whether those
 * are all. Pure.
 *
 * The numbers in the names show gaps, but not that the highest ranks are missing. For these the
 * checkpoint is compared with its siblings, the other checkpoints of the same directory; else the
 * framework's own word counts, where it has one.
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
	uint64_t bytes;	  /* so large are they together */
	uint64_t extent[SHARD_DIMENSIONS]; /* the highest number, plus one; all 0: none is there */
};

/* A zeroed one: nothing is known from names, and nothing has to be. */
struct shards {
	struct shard_set sets[SHARD_SETS]; /* the same kind at the same place in all siblings */
	bool confirmed;			   /* the framework says that the save has ended */
};

struct shards_sibling {
	const char *name;
	const struct shards *shards;
	bool whole; /* nothing is missing in it, as far as it can be told from itself alone */
	bool older;
};

enum shards_answer { /* the later ones outweigh the earlier ones */
	SHARDS_ALL,
	SHARDS_UNKNOWN,
	SHARDS_FEWER, /* not known, and a sibling has more */
	SHARDS_MISSING,
};

/* Note a file of this size with these numbers. */
void shards_count(
	struct shard_set *set, uint64_t bytes, uint64_t first, uint64_t second, uint64_t third);

/* Whether there is anything to decide. */
bool shards_any(const struct shards *shards);
/* Whether both have as many files of each kind, with the same numbers. */
bool shards_same(const struct shards *a, const struct shards *b);

/*
 * Whether all are there. why is filled unless the answer is SHARDS_ALL. SHARDS_MISSING: there is a
 * gap. Without one:
 *
 *   an older sibling has more | whole siblings have as many | confirmed | answer
 *   yes                       | two                         | any       | SHARDS_ALL
 *   yes                       | one or none                 | any       | SHARDS_FEWER
 *   no                        | one                         | any       | SHARDS_ALL
 *   no                        | none                        | yes       | SHARDS_ALL
 *   no                        | none                        | no        | SHARDS_UNKNOWN; where a
 *                                                            newer one has more, SHARDS_FEWER
 *
 * A sibling has more where it has more files, and more bytes than the same content in fewer
 * files would need: jobs are started again with fewer ranks, which then write larger files.
 */
enum shards_answer shards_decide(const struct shards *own, const struct shards_sibling *siblings,
	size_t count, struct error *why);

#endif
