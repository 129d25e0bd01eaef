/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint in which each of many ranks has written a file: which files are there, and whether
 * these are all. Pure.
 *
 * The numbers in the names show gaps, but not that the highest ranks are missing. If the files say
 * how many there are, this number decides. Else compare the checkpoint with its siblings, the other
 * checkpoints in the directory. If there are none, it counts as complete if the framework has noted
 * that the save has ended.
 */
#ifndef CKPT_SHARDS_H
#define CKPT_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SHARD_SETS	 4
#define SHARD_DIMENSIONS 3

/* Files of one kind, in a grid of up to three dimensions. An unused dimension has extent 1. */
struct shard_set {
	const char *what; /* "optimizer states"; NULL: such files are not compared */
	uint64_t seen;	  /* number of files */
	uint64_t told;	  /* the number that the files themselves say; 0: none */
	uint64_t bytes;	  /* the sum of their sizes */
	uint64_t extent[SHARD_DIMENSIONS]; /* the highest number plus one; all 0: no files */
};

/* Zeroed: the layout has no files of ranks. */
struct shards {
	struct shard_set sets[SHARD_SETS]; /* in all siblings, a kind has the same index */
	bool confirmed;			   /* the framework says that the save has ended */
};

struct shards_sibling {
	const char *name;
	const struct shards *shards;
	bool whole; /* by itself, without a look at others, it seems complete */
	bool older;
};

enum shards_answer { /* of several answers, the last in this list counts */
	SHARDS_ALL,
	SHARDS_UNKNOWN,
	SHARDS_FEWER, /* not known, but a sibling has more */
	SHARDS_MISSING,
};

/* Count a file with this size and these numbers. */
void shards_count(
	struct shard_set *set, uint64_t bytes, uint64_t first, uint64_t second, uint64_t third);

/* Whether files of any kind are compared. */
bool shards_any(const struct shards *shards);
/* Whether both have files with the same numbers, of each kind. */
bool shards_same(const struct shards *a, const struct shards *b);

/*
 * Whether all files are there. Sets why, unless the answer is SHARDS_ALL. SHARDS_MISSING: there is
 * a gap. SHARDS_UNKNOWN: two files have the same numbers, or the files say another number; if they
 * say this one, SHARDS_ALL. Otherwise:
 *
 *   an older sibling has more | whole siblings have as many | confirmed | answer
 *   yes                       | two                         | any       | SHARDS_ALL
 *   yes                       | one or none                 | any       | SHARDS_FEWER
 *   no                        | one                         | any       | SHARDS_ALL
 *   no                        | none                        | yes       | SHARDS_ALL
 *   no                        | none                        | no        | SHARDS_UNKNOWN; if a
 *                                                            newer one has more, SHARDS_FEWER
 *
 * A sibling "has more" if it has more files and clearly more bytes: a job may be restarted with
 * fewer ranks, which then write the same content into fewer, larger files.
 */
enum shards_answer shards_decide(const struct shards *own, const struct shards_sibling *siblings,
	size_t count, struct error *why);

#endif
