/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints in a directory DIR: begin, commit, find, inspect, mark.
 *
 * A checkpoint is a directory DIR/step-NNNNNNNN (ckpt/names.h) with a manifest
 * (ckpt/manifest.h). It is complete if the manifest is valid and of that step, and all
 * files are there with the right sizes; it is verified if their checksums are right, too. It
 * appears by one rename, after all of it was synced, and goes by one rename, before any of it is
 * deleted. There is no lock and no other state: any number of writers, readers and pruners, on any
 * machines, may be killed at any time, and the next process finishes their work or cleans up.
 *
 * Answers: STATUS_OK. STATUS_NO: surely not, and err says why (base/error.h does not require that).
 * STATUS_TEMPORARY, STATUS_PERMISSION: it could not be asked or done, so conclude nothing.
 * STATUS_DAMAGED: damaged, or of a newer format. STATUS_USAGE. "Could not be asked" never becomes
 * "there is none".
 */
#ifndef CKPT_CKPT_H
#define CKPT_CKPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process/life.h"
#include "base/text.h"
#include "ckpt/names.h"
#include "ckpt/metrics.h"

/* Which checkpoint is written, and by whom. Numbers are CKPT_NUMBER_MAX at most; task < tasks. */
struct checkpoint_target {
	const char *directory;
	uint64_t step;
	uint64_t attempt;
	char life[LIFE_SIZE]; /* "": not known; not "" if sharded */
	bool sharded;	      /* each task writes and commits a shard of its own */
	bool chief_only;      /* all tasks write the same, and only the copy of task 0 is kept */
	bool again;	      /* this start has saved the step: what is written is discarded */
	uint64_t task;	      /* if sharded or chief_only */
	uint64_t tasks;	      /* at least 1 */
	/* The next two are for commit. */
	int64_t utc;		       /* when it was made, ms since 1970; 0: now */
	const struct metrics *metrics; /* of the checkpoint, or of the shard; NULL: none */
};

/*
 * Make an empty directory to write into, DIR/.tmp-..., or in it the task's own directory. Append
 * its path to path. A missing DIR is made (ckpt/directory.h). What an earlier begin of
 * the same step, attempt, life and task has left is removed. If this start, one life, has saved the
 * step already, or this task's shard of it, the directory is one of its own, which commit removes.
 * STATUS_NO: another start has saved the step; a live process of this machine writes it; or DIR has
 * something else with this name.
 */
enum status checkpoint_begin(
	const struct checkpoint_target *target, struct text *path, struct error *err);

struct checkpoint_commit {
	bool complete;	    /* it is published, by this or another process */
	uint64_t missing;   /* if not: how many tasks have not committed yet */
	struct text absent; /* these tasks, "1, 3"; the caller releases it */
	char warning[256];  /* a message that does not change the answer; or empty */
};

/*
 * Sync everything, record sizes and checksums, publish. A sharded checkpoint consists of shards of
 * one attempt of one life. STATUS_OK: it is durable, also if it is a shard and others are missing.
 * STATUS_OK also if the same content is published already; or if our directory is gone, and the
 * published checkpoint is of the same attempt and life. STATUS_NO: nothing was begun; it is empty;
 * it has a symbolic link or a device in it; it changed during the commit; the step is published
 * already with other content, which stays.
 */
enum status checkpoint_commit(const struct checkpoint_target *target,
	struct checkpoint_commit *answer, struct error *err);

/*
 * Wait until a committed step is complete; publish it if the last task that committed was killed
 * before it could. STATUS_TIMEOUT: it is not complete at the deadline (base/clock.h), and err names
 * the missing tasks; the incomplete checkpoint stays. STATUS_NO: what was committed is gone.
 */
enum status checkpoint_await(const struct checkpoint_target *target, int64_t deadline,
	struct checkpoint_commit *answer, struct error *err);

enum checkpoint_state {
	CHECKPOINT_COMPLETE,
	CHECKPOINT_BAD,	       /* complete, but marked as bad: never used to resume */
	CHECKPOINT_DAMAGED,    /* published, but something is missing or wrong */
	CHECKPOINT_FOREIGN,    /* has a name of ours, but is not a checkpoint of ours */
	CHECKPOINT_UNKNOWN,    /* could not be read; see status */
	CHECKPOINT_UNPROVEN,   /* no gap, but it is not known how many files there must be */
	CHECKPOINT_INCOMPLETE, /* being written, or left by a writer that is gone */
};
const char *checkpoint_state_name(enum checkpoint_state state);

enum checkpoint_writer { WRITER_UNKNOWN, WRITER_ALIVE, WRITER_GONE, WRITER_ELSEWHERE };

struct checkpoint {
	enum checkpoint_state state;
	enum status status; /* if CHECKPOINT_UNKNOWN */
	char name[256];	    /* in DIR */
	uint64_t step;
	uint64_t attempt;
	char life[LIFE_SIZE]; /* of the attempt that wrote it; "": not known */
	uint64_t tasks;	      /* 0: not known */
	bool sharded;
	uint64_t files;
	uint64_t bytes;
	int64_t utc; /* when committed, milliseconds since 1970; 0: not known */
	/* The next five are for CHECKPOINT_INCOMPLETE. */
	enum checkpoint_writer writer;
	bool copy;   /* a copy from another directory is being made */
	bool vacant; /* it has neither records of a writer nor files */
	bool whole;  /* all its shards are committed, but it is not published */
	bool early;  /* a shard is committed, and a task has not begun yet */
	bool pinned; /* never pruned */
	bool bad;    /* marked as bad, whatever its state is */
	struct metrics metrics;
	char why[256];	/* why it is in this state; empty if complete */
	uint64_t inode; /* of its directory */
};

/* How to look for the newest checkpoint. */
struct layout_choice;
struct checkpoint_search {
	const char *directory;
	const struct layout_choice *choice; /* ckpt/layout/layout.h */
	const uint64_t *below;		    /* only steps before this one; NULL: all */
	bool contents;			    /* also compare checksums, which only our layout has */
};
/*
 * Find the newest complete checkpoint, which is the one of the highest step. Bad and damaged ones
 * are skipped. skipped (NULL: none) gets a line for each of them, and for other things that a user
 * should know, such as a broken tracker. If none is known to be complete, found may be
 * CHECKPOINT_UNPROVEN. STATUS_NO: there is surely none: all of DIR was read, or its parent was read
 * and has no DIR.
 */
enum status checkpoint_latest(const struct checkpoint_search *search, struct checkpoint *found,
	struct text *skipped, struct error *err);

/*
 * Inspect one step; with contents, compare its checksums, too. STATUS_NO: there is no such
 * directory. All other findings are in found->state.
 */
enum status checkpoint_inspect(const char *directory, uint64_t step, bool contents,
	struct checkpoint *found, struct error *err);

/*
 * Set a function for the whole process (NULL: none) that is called about five times a second while
 * contents are compared, in one thread at a time, with the number of bytes read since the last
 * call.
 */
void checkpoint_on_progress(void (*progress)(uint64_t bytes));

/* STATUS_OK: complete. STATUS_DAMAGED: damaged. STATUS_TEMPORARY: unproven. STATUS_NO: bad, foreign
 * or incomplete. If unknown: checkpoint->status. */
enum status checkpoint_status(const struct checkpoint *checkpoint);

enum checkpoint_mark { CKPT_MARK_BAD, CKPT_MARK_GOOD, CKPT_MARK_PINNED, CKPT_MARK_UNPINNED };
/*
 * Set or remove a mark (ckpt/marks.h) of a published checkpoint, complete or damaged. Doing
 * it again only changes the reason. STATUS_OK: it is durable. STATUS_NO: there is no such
 * checkpoint. reason (NULL: none): for CKPT_MARK_BAD, cut to fit.
 */
enum status checkpoint_mark(const char *directory, uint64_t step, enum checkpoint_mark mark,
	const char *reason, struct error *err);

/*
 * Whether the same checkpoint (step, attempt and time of commit) is marked as bad in one of these
 * directories. A copy of it is then bad, too.
 */
enum status checkpoint_is_bad_in(const char *const *directories, size_t count,
	const struct checkpoint *checkpoint, bool *bad, struct error *err);

/* Checkpoints by rising step; of our layout, published ones before all others. Zeroed: empty. */
struct checkpoint_list {
	const struct checkpoint **items;
	size_t count;
	size_t removed; /* number of directories and files that are being deleted */
	void *memory;	/* items point into it */
};
/*
 * notes (NULL: none): gets a line for each thing that a user should know, such as a broken tracker.
 */
enum status checkpoint_list(const char *directory, const struct layout_choice *choice,
	struct checkpoint_list *list, struct text *notes, struct error *err);
void checkpoint_list_release(struct checkpoint_list *list);

/*
 * Find the checkpoint to resume from in "DIR" or "DIR:LAYOUT" (layout_read_location): the path and
 * step of checkpoint_latest. unproven: none is known to be complete. notes: with STATUS_OK it is
 * empty, or says why the checkpoint is unproven, or names the first one that was skipped, and why.
 */
enum status checkpoint_find_resume(
	const char *text, char path[4096], uint64_t *step, bool *unproven, struct error *notes);

/*
 * Mark the checkpoint of step in "DIR" or "DIR:LAYOUT" as bad, because this number of restarts from
 * it have failed. STATUS_NO: not marked, because it is the only complete one, or because it is in a
 * framework's layout, which has no marks.
 */
enum status checkpoint_give_up(
	const char *place, uint64_t step, uint64_t failures, struct error *err);

#endif
