/* SPDX-License-Identifier: MIT */
/*
 * The names below a checkpoint directory DIR, and back. Pure.
 *
 *   step-00000120          a checkpoint that was published whole
 *   .tmp-step-00000120-attempt-3-life-0123456789ab0123456789ab
 *                          being written by attempt 3 of this life (base/process/life.h);
 *                          without "-life-..." where no life is known
 *   .tmp-...-workertemp_2  the copy of task 2, which is discarded (--chief-only)
 *   .gone-0123456789abcdef-NAME
 *                          NAME on its way to deletion, if its inode has this number; else it
 *                          was taken by mistake (ckpt/remove.h)
 *   latest                 a symbolic link for users; never trusted
 *   .latest.tmp            that link on its way
 *
 * In a sharded one, being written or published, task-2 is the shard of task 2.
 *
 * A step is written with at least eight digits, so that ls, a shell's glob and "tail -1" give the
 * order of training up to 99,999,999 (beyond, the number grows; the tools always compare numbers).
 * What is not finished is hidden: no glob of a training script finds it. Only the one spelling
 * given here is ours: "step-120" is not and is never touched.
 *
 * Inside a checkpoint, and inside what is being written, a few names at the top are reserved:
 *   .ckpt-manifest.json                   what the checkpoint holds (ckpt/content/manifest.h)
 *   .ckpt-writer.json, .ckpt-writer-2.json   who writes (ckpt/commit/writer.h); gone once published
 *   .ckpt-shard-2.json                    what task 2 has committed; gone once published
 *   .ckpt-copy.json                       the manifest of what is copied here; gone once published
 *                                         (ckpt/tiers/copy.h); .ckpt-part.XXXXXX: a file on its way
 *   .ckpt-bad.json, .ckpt-pin.json        marks of a published one (ckpt/commit/marks.h)
 * and these with a dot and six characters behind: on their way to such a name.
 */
#ifndef CKPT_NAMES_H
#define CKPT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process/life.h"

#define CKPT_NUMBER_MAX UINT64_C(999999999999999999) /* steps, attempts, tasks: 18 digits */
#define CKPT_NAME_SIZE	192			     /* holds every name made here */

#define CKPT_LATEST	    "latest"
#define CKPT_LATEST_ONGOING ".latest.tmp"
#define CKPT_MANIFEST	    ".ckpt-manifest.json"
#define CKPT_COPY	    ".ckpt-copy.json"
#define CKPT_PART	    ".ckpt-part"
#define CKPT_BAD	    ".ckpt-bad.json"
#define CKPT_PIN	    ".ckpt-pin.json"

enum ckpt_name_kind {
	CKPT_NAME_FOREIGN, /* not ours */
	CKPT_NAME_STEP,
	CKPT_NAME_STAGING,
	CKPT_NAME_SCRATCH, /* of a task whose copy is discarded */
};

struct ckpt_name {
	enum ckpt_name_kind kind;
	uint64_t step;
	uint64_t attempt;     /* of CKPT_NAME_STAGING and CKPT_NAME_SCRATCH */
	uint64_t task;	      /* of CKPT_NAME_SCRATCH */
	char life[LIFE_SIZE]; /* of CKPT_NAME_STAGING and CKPT_NAME_SCRATCH; "": none */
};

struct ckpt_name ckpt_name_read(const char *name);

void ckpt_name_step(char name[CKPT_NAME_SIZE], uint64_t step);
/* life: of base/process/life.h, or "". */
void ckpt_name_staging(
	char name[CKPT_NAME_SIZE], uint64_t step, uint64_t attempt, const char *life);
void ckpt_name_scratch(char name[CKPT_NAME_SIZE], uint64_t step, uint64_t attempt, const char *life,
	uint64_t task);

/* The hidden name of an entry with this inode, of any layout, on its way to deletion; false: it
 * would be too long. */
#define CKPT_REMOVED_SIZE 256
bool ckpt_name_removed(char name[CKPT_REMOVED_SIZE], const char *entry, uint64_t inode);
/* The entry of such a name; NULL: name is none. */
const char *ckpt_name_read_removed(const char *name, uint64_t *inode);

void ckpt_name_task(char name[CKPT_NAME_SIZE], uint64_t task);

/* The record of who writes: the one writer's, or one task's. */
void ckpt_name_writer(char name[CKPT_NAME_SIZE], bool sharded, uint64_t task);
void ckpt_name_shard(char name[CKPT_NAME_SIZE], uint64_t task);
/* A record of a writer or of a shard, or anything on its way: what publishing sweeps away. */
bool ckpt_name_is_transient(const char *name);
/* A record on its way to its name: left so by a process that was killed. */
bool ckpt_name_is_ongoing(const char *name);
/* The manifest, a mark, or transient: no file of the user's. */
bool ckpt_name_is_reserved(const char *name);
/* Exactly a shard's record or a writer's record. */
bool ckpt_name_is_shard(const char *name, uint64_t *task);
bool ckpt_name_is_writer(const char *name, bool *sharded, uint64_t *task);

#endif
