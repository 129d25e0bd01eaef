/* SPDX-License-Identifier: MIT */
/*
 * Making and reading the names in a checkpoint directory DIR. Pure, but for the random numbers.
 *
 *   step-00000120          a checkpoint that was published
 *   .tmp-step-00000120-attempt-3-life-0123456789ab0123456789ab
 *                          attempt 3 of this life is writing it; no "-life-..." if none is known
 *   .tmp-...-workertemp_2  a copy of task 2's, which is discarded
 *   .tmp-step-00000120-copy   a copy from another directory is being made
 *   .gone-0123456789abcdef-NAME
 *                          NAME, which is to be deleted; the digits are random, the first one is 8
 *                          to f if its deletion has begun (ckpt/gone.h)
 *   latest                 a symbolic link for users; we never rely on it
 *   .latest.tmp            that link while it is being made
 *   .ckpt-pin-120, .ckpt-bad-120, .ckpt-good-120   marks of a framework's checkpoint
 *
 * A step has at least eight digits, so that ls shows the order of training. Names of unfinished
 * checkpoints are hidden, so no glob of a training script finds them. Only this spelling is ours:
 * "step-120" is not, and is never touched.
 *
 * In a checkpoint, published or not, task-2 is the shard of task 2, and names at the top with the
 * beginnings below are reserved, also with a dot and six more characters, for a file that will get
 * such a name.
 */
#ifndef CKPT_NAMES_H
#define CKPT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process/life.h"

#define CKPT_NUMBER_MAX UINT64_C(999999999999999999) /* steps, attempts: 18 digits */
#define CKPT_TASKS_MAX	UINT64_C(1000000)
#define CKPT_NAME_SIZE	192 /* enough for each name made here, but for that of ckpt_name_gone */
#define CKPT_GONE_SIZE	256

#define CKPT_LATEST	    "latest"
#define CKPT_LATEST_ONGOING ".latest.tmp"
#define CKPT_MANIFEST	    ".ckpt-manifest.json" /* ckpt/manifest.h */
#define CKPT_BAD	    ".ckpt-bad.json"	  /* marks of a published one: ckpt/native.h */
#define CKPT_PIN	    ".ckpt-pin.json"
#define CKPT_WRITER	    ".ckpt-writer" /* .json, -2-of-4.json: who writes it */
#define CKPT_SHARD	    ".ckpt-shard"  /* -2-of-4.json: what task 2 of 4 has committed */

enum ckpt_name_kind {
	CKPT_NAME_FOREIGN, /* not ours */
	CKPT_NAME_STEP,
	CKPT_NAME_STAGING, /* being written */
	CKPT_NAME_SCRATCH, /* what a task writes and discards */
	CKPT_NAME_COPY,
};

/* A name, in its parts. Those that a kind does not have are 0 or "". */
struct ckpt_name {
	enum ckpt_name_kind kind;
	uint64_t step;
	uint64_t attempt;     /* in CKPT_NAME_STAGING and CKPT_NAME_SCRATCH */
	char life[LIFE_SIZE]; /* the same; "": none */
	uint64_t task;	      /* in CKPT_NAME_SCRATCH */
};

/* Make a name of ours; kind is not CKPT_NAME_FOREIGN. */
void ckpt_name_make(char name[CKPT_NAME_SIZE], const struct ckpt_name *of);
void ckpt_name_step(char name[CKPT_NAME_SIZE], uint64_t step);
struct ckpt_name ckpt_name_read(const char *name);

/* Make a new hidden name for an entry, in any layout, that will be deleted. False: it would be too
 * long, or the kernel gives no random numbers. */
bool ckpt_name_gone(char name[CKPT_GONE_SIZE], const char *entry);
/* The entry's own name; NULL: this is no such hidden name. */
const char *ckpt_name_read_gone(const char *name);
/* Change it to the hidden name of an entry whose deletion begins; whether it is one. */
void ckpt_name_condemn(char gone[CKPT_GONE_SIZE]);
bool ckpt_name_is_condemned(const char *gone);

/* What a file in DIR says about a framework's checkpoint of a step. Only the first three are ours,
 * and have names here. */
enum ckpt_beside {
	CKPT_BESIDE_PIN,
	CKPT_BESIDE_BAD,
	CKPT_BESIDE_GOOD,
	CKPT_BESIDE_DONE,
	CKPT_BESIDE_UNDONE,
};
void ckpt_name_beside(char name[CKPT_NAME_SIZE], enum ckpt_beside kind, uint64_t step);
bool ckpt_name_read_beside(const char *name, enum ckpt_beside *kind, uint64_t *step);

void ckpt_name_task(char name[CKPT_NAME_SIZE], uint64_t task);
/* The name of a record, CKPT_WRITER or CKPT_SHARD, of a task; tasks 0: of the only writer. */
void ckpt_name_record(char name[CKPT_NAME_SIZE], const char *prefix, uint64_t task, uint64_t tasks);
bool ckpt_name_read_record(const char *name, const char *prefix, uint64_t *task, uint64_t *tasks);

/* Whether the name is reserved, so that the file is not one of the user's; and whether publishing
 * removes it: it is neither the manifest nor a mark. */
bool ckpt_name_is_reserved(const char *name);
bool ckpt_name_is_transient(const char *name);

#endif
