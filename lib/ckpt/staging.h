/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint that is being written, DIR/.tmp-...: the records of its writers and shards.
 */
#ifndef CKPT_STAGING_H
#define CKPT_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "ckpt/ckpt.h"

/* What the names and records at its top say. */
struct staging {
	uint64_t inode;
	bool sharded;		       /* it has the record of a task's writer or of a shard */
	bool one_writer;	       /* it has the record of a writer of the whole checkpoint */
	bool copy;		       /* it has the record of a copy (ckpt/copy.h) */
	bool others;		       /* it has names that are not reserved */
	uint64_t tasks;		       /* as recorded; 0: not known */
	enum checkpoint_writer writer; /* WRITER_GONE: all recorded writers are gone */
	uint64_t *shards;	       /* the tasks whose shards are committed, sorted */
	size_t shard_count;
	uint64_t begun; /* how many tasks of a sharded one have the record of a writer */
};
void staging_release(struct staging *staging);

/* STATUS_NO: there is no such directory. */
enum status staging_inspect(const char *path, struct staging *staging, struct error *err);

/*
 * Open it; no pruner removes it until *descriptor, unless that is negative, is closed. STATUS_NO:
 * there is no such directory. STATUS_TEMPORARY: a pruner or a copy is at work in it.
 */
enum status staging_open(const char *path, int *descriptor, uint64_t *inode, struct error *err);

/* How many tasks below `tasks` have no committed shard. The first 16 are added to absent. */
uint64_t staging_absent(const struct staging *staging, uint64_t tasks, struct text *absent);

/* The name in DIR of the directory into which target writes; and whether that is discarded. */
void staging_name(const struct checkpoint_target *target, char name[CKPT_NAME_SIZE]);
bool staging_is_scratch(const struct checkpoint_target *target);
/* Whether found, the checkpoint of target's step, ends the wait for it: it is complete; or it is
 * bad, and target is not writing a new one that will replace it. */
bool staging_is_settled(const struct checkpoint_target *target, const struct checkpoint *found);

#endif
