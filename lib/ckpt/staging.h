/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint that is being written, DIR/.tmp-...: what the names at its top say of its writers
 * and shards. No file in it is opened.
 */
#ifndef CKPT_STAGING_H
#define CKPT_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "ckpt/ckpt.h"

struct staging {
	int root; /* the open directory; -1: none */
	uint64_t inode;
	uint64_t tasks;	 /* if sharded, how many shards it has; else 0 */
	bool *committed; /* if sharded: which tasks have committed theirs */
};
/*
 * Open a directory that is being written. STATUS_NO: it is not there.
 * STATUS_USAGE: it was begun with another --sharded or --tasks than target (NULL: any) has.
 */
enum status staging_open(const char *path, const struct checkpoint_target *target,
	struct staging *staging, struct error *err);
/* Close it; root -1: it is not open. */
void staging_close(struct staging *staging);

/* How many tasks have no committed shard. The first 16 are added to absent. */
uint64_t staging_absent(const struct staging *staging, struct text *absent);

/* The path of the directory into which target writes, malloc'd; and whether that is discarded. */
char *staging_path(const struct checkpoint_target *target);
bool staging_is_scratch(const struct checkpoint_target *target);

#endif
