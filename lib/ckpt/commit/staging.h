/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint that is being written: DIR/.tmp-..., its writers' records and its shards'.
 */
#ifndef CKPT_STAGING_H
#define CKPT_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "ckpt/ckpt.h"

/* What its top shows, without its files. */
struct staging {
	uint64_t inode;
	bool sharded;		       /* the record of a task, or a shard, is there */
	bool one_writer;	       /* the record of a one writer is there */
	bool copy;		       /* the record of a copy is there (ckpt/tiers/copy.h) */
	bool others;		       /* something that is not reserved is there */
	uint64_t tasks;		       /* as recorded; 0: not known */
	enum checkpoint_writer writer; /* WRITER_GONE: all recorded ones are */
	uint64_t *shards;	       /* tasks whose shards are committed, rising */
	size_t shard_count;
};
void staging_release(struct staging *staging);

/* STATUS_NO: there is no such directory. */
enum status staging_inspect(const char *path, struct staging *staging, struct error *err);

/* Of tasks 0..tasks-1: how many have no committed shard; their numbers are added to absent. */
uint64_t staging_absent(const struct staging *staging, uint64_t tasks, struct text *absent);

/* The name below DIR of what target writes into; and whether that is discarded. */
void staging_name(const struct checkpoint_target *target, char name[CKPT_NAME_SIZE]);
bool staging_is_scratch(const struct checkpoint_target *target);
/* Whether what was found under target's step ends the wait for it: a bad one is about to be
 * replaced while something is being written. */
bool staging_is_settled(const struct checkpoint_target *target, const struct checkpoint *found);

#endif
