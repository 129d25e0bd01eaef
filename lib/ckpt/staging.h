/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint that is being written, DIR/.tmp-..., and how it is published. What is in it is said
 * by the names at its top; no file in it is opened.
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

/*
 * What is published of a step: complete, bad, damaged, or CHECKPOINT_INCOMPLETE: nothing. manifest:
 * as of inspect_step (native.h). STATUS_NO: something else has its name.
 */
struct manifest;
enum status inspect_saved(const char *directory, uint64_t step, struct checkpoint *found,
	struct manifest *manifest, struct error *err);
/*
 * Publishing in DIR, which is open as place. Rename DIR/.tmp-..., whose path is staging and which
 * has this inode, to the name of step. damaged (0: none): the inode of a damaged or bad checkpoint
 * of that name, which is hidden first. STATUS_NO: another process has renamed one of the two, or
 * published the step, before us.
 */
enum status publish_rename(int place, const char *directory, const char *staging, uint64_t inode,
	uint64_t step, uint64_t damaged, struct error *err);
/*
 * Called after the rename; any process may call it, also again. Remove the records that were needed
 * for writing, let "latest" point to the highest step, sync DIR and its entry in its parent, delete
 * a checkpoint that was replaced.
 */
enum status publish_settle(int place, const char *directory, uint64_t step, struct error *err);
/*
 * Let "latest" in the open DIR point to the highest step; if there is none, remove the link if it
 * points nowhere. It is for people only: one that is not ours stays, and that ours cannot be set is
 * no error.
 */
void publish_latest(const char *directory, int place);

#endif
