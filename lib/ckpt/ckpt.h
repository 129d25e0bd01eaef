/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints below a directory DIR: begun, committed, found, inspected, pruned.
 *
 * A checkpoint is a directory DIR/step-NNNNNNNN (ckpt/commit/names.h) with a manifest
 * (ckpt/content/manifest.h). It is complete when the manifest is valid and of that step and all its
 * files are there with their sizes; it is verified when their checksums are right, too. It appears
 * by one rename, after all of it was synced, and goes by one rename, before any of it is deleted.
 * There is no lock and no other state: any number of writers, readers and pruners, on any machines,
 * may be killed at any time, and the next one finishes or cleans up.
 *
 * Answers: STATUS_OK; STATUS_NO is definite, and err says why (contrary to base/error.h's rule it
 * is filled then, too); STATUS_TEMPORARY and STATUS_PERMISSION: could not be asked or done, nothing
 * may be concluded; STATUS_DAMAGED: of a newer format, or damaged; STATUS_USAGE.
 * "Could not be asked" never becomes "there is none".
 */
#ifndef CKPT_CKPT_H
#define CKPT_CKPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process/life.h"
#include "base/text.h"
#include "ckpt/commit/names.h"
#include "ckpt/content/metrics.h"

/* Which checkpoint is written, and by whom. Numbers up to CKPT_NUMBER_MAX, task < tasks. */
struct checkpoint_target {
	const char *directory;
	uint64_t step;
	uint64_t attempt;
	char life[LIFE_SIZE]; /* "": not known; never with sharded */
	bool sharded;	      /* each of tasks writes and commits a shard of its own */
	bool chief_only; /* all of tasks write the same, and only task 0 writes the checkpoint */
	uint64_t task;	 /* of sharded and chief_only */
	uint64_t tasks;	 /* at least 1 */
	/* For commit only. */
	int64_t utc;		       /* when it was made, ms since 1970; 0: now */
	const struct metrics *metrics; /* of the whole, or of the shard; NULL: none */
};

/*
 * Make the directory to write into, empty, and give its path (append to path): DIR/.tmp-..., or
 * the task's own directory in it. DIR itself is made if only it is missing. What an earlier begin
 * of the same step, attempt and life (and task) left is removed. STATUS_NO: the step, or this
 * task's shard, is committed already, a living process of this machine writes it, or DIR has
 * something else under the name.
 */
enum status checkpoint_begin(
	const struct checkpoint_target *target, struct text *path, struct error *err);

struct checkpoint_commit {
	bool complete;	    /* published, by this or by another process */
	uint64_t missing;   /* else: how many of the tasks have not committed yet */
	struct text absent; /* their tasks, "1, 3"; released by the caller */
	char warning[256];  /* a message that does not change the answer; or empty */
};

/*
 * Sync everything, record sizes and checksums, publish. A sharded checkpoint is put together from
 * shards of one attempt of one life, and of no others. STATUS_OK: it is durable; a shard whose
 * peers are missing, too. Committing again what is published with the same content, or, when
 * nothing is there to compare, from the same attempt and life: STATUS_OK.
 * STATUS_NO: nothing was begun; it is empty; it holds a symbolic link or a device; it changed
 * during the commit; the step is published already with other content, which stays.
 */
enum status checkpoint_commit(const struct checkpoint_target *target,
	struct checkpoint_commit *answer, struct error *err);

/*
 * Wait until a step that was committed is complete; finish it where the last one to commit was
 * killed before it could. STATUS_TIMEOUT: it is not by deadline (base/clock.h), err names the
 * missing tasks; the incomplete checkpoint stays. STATUS_NO: what was committed is gone.
 */
enum status checkpoint_await(const struct checkpoint_target *target, int64_t deadline,
	struct checkpoint_commit *answer, struct error *err);

enum checkpoint_state {
	CHECKPOINT_COMPLETE,
	CHECKPOINT_BAD,	       /* complete, but marked as bad: never offered */
	CHECKPOINT_DAMAGED,    /* it was published, and something is missing or wrong */
	CHECKPOINT_FOREIGN,    /* bears a name of ours, but carries nothing of ours */
	CHECKPOINT_UNKNOWN,    /* could not be asked; status says how */
	CHECKPOINT_UNPROVEN,   /* nothing is missing, but nothing says how much there must be */
	CHECKPOINT_INCOMPLETE, /* being written, or left by a writer that is gone */
};
const char *checkpoint_state_name(enum checkpoint_state state);

enum checkpoint_writer { WRITER_UNKNOWN, WRITER_ALIVE, WRITER_GONE, WRITER_ELSEWHERE };

struct checkpoint {
	enum checkpoint_state state;
	enum status status; /* of CHECKPOINT_UNKNOWN */
	char name[256];	    /* below DIR; of other layouts any name */
	uint64_t step;
	uint64_t attempt;
	char life[LIFE_SIZE]; /* that wrote it; "": not known */
	uint64_t tasks;	      /* 0: not known */
	bool sharded;
	uint64_t files;
	uint64_t bytes;
	int64_t utc;		       /* when committed, milliseconds since 1970; 0: not known */
	enum checkpoint_writer writer; /* of CHECKPOINT_INCOMPLETE */
	bool copy;   /* of CHECKPOINT_INCOMPLETE: brought from elsewhere by a copy */
	bool vacant; /* of CHECKPOINT_INCOMPLETE: nothing of a writer's is in it */
	bool whole; /* of CHECKPOINT_INCOMPLETE: all its shards are committed, only not published */
	bool pinned; /* never pruned */
	struct metrics metrics;
	char why[256];	/* why it is in this state; empty when complete */
	uint64_t inode; /* which directory it was */
};

/* Where the newest one is looked for. */
struct layout_choice;
struct checkpoint_search {
	const char *directory;
	const struct layout_choice *choice; /* ckpt/layout/layout.h */
	const uint64_t *below;		    /* only those before this step; NULL: any */
	bool contents;			    /* checksums, too; only ours have some */
};
/*
 * The newest complete checkpoint: the one of the highest step. Bad and damaged ones before it are
 * skipped; of each a line is added to skipped (may be NULL), and of other things that people
 * should know, such as a broken tracker. found is CHECKPOINT_UNPROVEN where there is one and none
 * is known to be complete. STATUS_NO: there is definitely none. That takes a DIR that was read from
 * end to end, or whose absence was read in its parent, and no filesystem that belongs on the way to
 * it is unmounted.
 */
enum status checkpoint_latest(const struct checkpoint_search *search, struct checkpoint *found,
	struct text *skipped, struct error *err);

/*
 * One step, with its contents or only sizes. STATUS_NO: there is no such directory. Every other
 * finding is in found->state.
 */
enum status checkpoint_inspect(const char *directory, uint64_t step, bool contents,
	struct checkpoint *found, struct error *err);

/*
 * While contents are compared, call progress about five times a second, in one thread at a time,
 * with the bytes read since the last call. NULL, as at the start: do not. For the whole process.
 */
void checkpoint_on_progress(void (*progress)(uint64_t bytes));

/* What a state answers: STATUS_OK complete, STATUS_DAMAGED, its status when unknown,
 * STATUS_TEMPORARY unproven, else NO (bad, foreign, incomplete). */
enum status checkpoint_status(const struct checkpoint *checkpoint);

enum checkpoint_mark { CKPT_MARK_BAD, CKPT_MARK_GOOD, CKPT_MARK_PINNED, CKPT_MARK_UNPINNED };
/*
 * Set or take back a mark (ckpt/commit/marks.h) of a published checkpoint, complete or damaged; to
 * do it again changes nothing but the reason. STATUS_OK: it is durable. STATUS_NO: there is no such
 * checkpoint. reason: of CKPT_MARK_BAD, cut to fit; NULL: none.
 */
enum status checkpoint_mark(const char *directory, uint64_t step, enum checkpoint_mark mark,
	const char *reason, struct error *err);

/*
 * Whether the same checkpoint (step, attempt and time of commit) is marked as bad in one of these
 * directories: then a copy of it is bad, too.
 */
enum status checkpoint_is_bad_in(const char *const *directories, size_t count,
	const struct checkpoint *checkpoint, bool *bad, struct error *err);

/* All, by rising step, published before incomplete; several may have the same step. A zeroed one is
 * empty. */
struct checkpoint_list {
	const struct checkpoint **items;
	size_t count;
	size_t removed; /* directories and files on their way to deletion */
	void *memory;	/* what items point into */
};
/* notes (may be NULL): a line on each thing that people should know, such as a broken tracker. */
enum status checkpoint_list(const char *directory, const struct layout_choice *choice,
	struct checkpoint_list *list, struct text *notes, struct error *err);
void checkpoint_list_release(struct checkpoint_list *list);

/*
 * Where to resume from, of "DIR" or "DIR:LAYOUT" (layout_read_location): path and step of
 * checkpoint_latest's. unproven: none is known to be complete. notes: with STATUS_OK empty, or why
 * it is unproven, or the first that was skipped, and why.
 */
enum status checkpoint_find_resume(
	const char *text, char path[4096], uint64_t *step, bool *unproven, struct error *notes);

/*
 * Mark the checkpoint of step in "DIR" or "DIR:LAYOUT" as bad, since so many restarts from it
 * failed. STATUS_NO: not the last complete one, on which all progress hangs, and not in a
 * framework's layout, where nothing can be marked.
 */
enum status checkpoint_give_up(
	const char *place, uint64_t step, uint64_t failures, struct error *err);

#endif
