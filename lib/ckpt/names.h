/* SPDX-License-Identifier: MIT */
/*
 * Making and reading the names in a checkpoint directory DIR. Pure.
 *
 *   step-00000120          a checkpoint that was published
 *   .tmp-step-00000120-attempt-3-life-0123456789ab0123456789ab
 *                          attempt 3 of this life (base/process/life.h) is writing it; no
 *                          "-life-..." if no life is known
 *   .tmp-...-workertemp_2  a copy of task 2's, which is discarded (--chief-only, or this start
 *                          has saved the step before)
 *   .gone-0123456789abcdef-NAME
 *                          NAME, which is being deleted if its inode has this number; otherwise it
 *                          was renamed by mistake (ckpt/remove.h)
 *   .gone-x123456789abcdef-NAME
 *                          NAME, which is being deleted, whatever its inode is
 *   latest                 a symbolic link for users; we never rely on it
 *   .latest.tmp            that link while it is being made
 *
 * In a sharded checkpoint, published or not, task-2 is the shard of task 2.
 *
 * A step has at least eight digits, so that ls, a shell's glob and "tail -1" show the order of
 * training up to 99,999,999 (larger numbers have more digits; the tools always compare numbers).
 * Names of unfinished checkpoints are hidden, so no glob of a training script finds them. Only this
 * spelling is ours: "step-120" is not, and is never touched.
 *
 * In a checkpoint, published or not, a few names at the top are reserved:
 *   .ckpt-manifest.json                   the manifest (ckpt/manifest.h)
 *   .ckpt-writer.json, .ckpt-writer-2.json   the writer (ckpt/writer.h), until published
 *   .ckpt-shard-2.json                    what task 2 has committed, until published
 *   .ckpt-copy.json                       the manifest of the original of a copy
 *                                         (ckpt/copy.h), until published
 *   .ckpt-part.XXXXXX                     a file that is being copied
 *   .ckpt-bad.json, .ckpt-pin.json        marks of a published checkpoint (ckpt/marks.h)
 * and these names with a dot and six more characters: a file that will get such a name.
 */
#ifndef CKPT_NAMES_H
#define CKPT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process/life.h"

#define CKPT_NUMBER_MAX UINT64_C(999999999999999999) /* steps, attempts, tasks: 18 digits */
#define CKPT_NAME_SIZE	192			     /* enough for each name made here */

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
	CKPT_NAME_SCRATCH, /* the copy of a task that is discarded */
};

struct ckpt_name {
	enum ckpt_name_kind kind;
	uint64_t step;
	uint64_t attempt;     /* in CKPT_NAME_STAGING and CKPT_NAME_SCRATCH */
	uint64_t task;	      /* in CKPT_NAME_SCRATCH */
	char life[LIFE_SIZE]; /* in CKPT_NAME_STAGING and CKPT_NAME_SCRATCH; "": none */
};

struct ckpt_name ckpt_name_read(const char *name);

void ckpt_name_step(char name[CKPT_NAME_SIZE], uint64_t step);
/* life (base/process/life.h): "": none. */
void ckpt_name_staging(
	char name[CKPT_NAME_SIZE], uint64_t step, uint64_t attempt, const char *life);
void ckpt_name_scratch(char name[CKPT_NAME_SIZE], uint64_t step, uint64_t attempt, const char *life,
	uint64_t task);

/* The hidden name of an entry with this inode, in any layout, that is being deleted. False: it
 * would be too long. */
#define CKPT_REMOVED_SIZE 256
bool ckpt_name_removed(char name[CKPT_REMOVED_SIZE], const char *entry, uint64_t inode);
/* The name that a removed entry gets when the deletion begins: its inode no longer counts. */
void ckpt_name_deleting(char name[CKPT_REMOVED_SIZE], const char *removed);
/* Read either name: returns the entry's own name; NULL: it is not such a name. inode 0: any. */
const char *ckpt_name_read_removed(const char *name, uint64_t *inode);

/* What a file in DIR says about a framework's checkpoint of a step; the first three are ours, and
 * have such names. */
enum ckpt_beside {
	CKPT_BESIDE_PIN,
	CKPT_BESIDE_BAD,
	CKPT_BESIDE_GOOD,
	CKPT_BESIDE_DONE,
	CKPT_BESIDE_UNDONE,
};
void ckpt_name_beside(char name[CKPT_NAME_SIZE], enum ckpt_beside kind, uint64_t step);
bool ckpt_name_read_beside(const char *name, enum ckpt_beside *kind, uint64_t *step);

/* A new name for an entry that is being deleted, .gone-RANDOM-NAME, with 16 hexadecimal digits.
 * False: it would be too long. */
#define CKPT_GONE_SIZE 256
bool ckpt_name_gone(char name[CKPT_GONE_SIZE], const char *entry);
/* The entry's own name in it; NULL: it is not such a name. */
const char *ckpt_name_read_gone(const char *name);

void ckpt_name_task(char name[CKPT_NAME_SIZE], uint64_t task);

/* The name of a writer's record: of the only writer, or, if sharded, of a task. */
void ckpt_name_writer(char name[CKPT_NAME_SIZE], bool sharded, uint64_t task);
void ckpt_name_shard(char name[CKPT_NAME_SIZE], uint64_t task);
/* Whether publishing removes it: a record of a writer, shard or copy, or an unfinished file. */
bool ckpt_name_is_transient(const char *name);
/* Whether it is an unfinished file: being written, or left by a killed process. */
bool ckpt_name_is_ongoing(const char *name);
/* Whether it is not a file of the user: the manifest, a mark, or transient. */
bool ckpt_name_is_reserved(const char *name);
/* Whether it is the finished record of a shard, or of a writer (sharded: the writer of a task). */
bool ckpt_name_is_shard(const char *name, uint64_t *task);
bool ckpt_name_is_writer(const char *name, bool *sharded, uint64_t *task);

#endif
