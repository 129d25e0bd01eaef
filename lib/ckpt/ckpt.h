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
#include "ckpt/metrics.h"
#include "ckpt/names.h"

/* Which checkpoint is written, and by whom. Numbers are CKPT_NUMBER_MAX at most; task < tasks. */
struct checkpoint_target {
	const char *directory;
	uint64_t step;
	uint64_t attempt;
	char life[LIFE_SIZE]; /* "": not known; not "" if sharded */
	bool sharded;	      /* each task writes and commits a shard of its own */
	bool chief_only;      /* all tasks write the same, and only the copy of task 0 is kept */
	uint64_t task;	      /* if sharded or chief_only */
	uint64_t tasks;	      /* at least 1 */
	/* The next two are for commit. */
	int64_t utc;		       /* when it was made, ms since 1970; 0: now */
	const struct metrics *metrics; /* of the checkpoint, or of the shard; NULL: none */
};

/*
 * Make an empty directory to write into, DIR/.tmp-..., or in it the task's own directory. Append
 * its path to path. A missing DIR is made (ckpt/directory.h). What an earlier begin of the same
 * step, attempt, life and task has left is removed. If this start, one life, has saved the step
 * already, or this task's shard of it, the directory is one of its own, which commit removes.
 * STATUS_NO: another start has saved the step; a live process of this machine writes it; or DIR has
 * something else with this name.
 */
enum status checkpoint_begin(
	const struct checkpoint_target *target, struct text *path, struct error *err);

struct checkpoint_commit {
	bool complete;	    /* it is published, by this or another process */
	bool published;	    /* by this process, now */
	uint64_t missing;   /* if not complete: how many tasks have not committed yet */
	struct text absent; /* these tasks, "1, 3"; the caller releases it */
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
	CHECKPOINT_BAD,		 /* complete, but marked as bad: never used to resume */
	CHECKPOINT_INCOMPLETE,	 /* something is missing, or it says that it is not finished */
	CHECKPOINT_DAMAGED,	 /* a file is shown to be cut short, changed or impossible */
	CHECKPOINT_DOUBTFUL,	 /* as complete, but an older one has more (list.h) */
	CHECKPOINT_UNKNOWN_FORM, /* it has the name of a checkpoint, and no rule knows its form */
	CHECKPOINT_UNREADABLE,	 /* see status */
};
const char *checkpoint_state_name(enum checkpoint_state state);

struct checkpoint {
	enum checkpoint_state state;
	enum status status; /* if CHECKPOINT_UNREADABLE */
	/* In DIR; if several entries are the checkpoint, the one to resume from. */
	char name[256];
	uint64_t step;
	uint64_t attempt;
	char life[LIFE_SIZE]; /* of the attempt that wrote it; "": not known */
	uint64_t tasks;	      /* 0: not known */
	bool sharded;
	uint64_t files;
	uint64_t bytes;
	int64_t utc; /* when it was committed, ms since 1970; 0: not known. Frameworks: changed */
	/* When any of its files changed last, by the clock of the filesystem, ms since 1970; for
	 * what was published with a manifest: 0. */
	int64_t changed;
	bool unfinished; /* ours: DIR/.tmp-..., not published */
	bool own;	 /* the trainer's own, such as last.ckpt, which only the trainer replaces */
	bool pinned;	 /* never pruned */
	bool bad;	 /* marked as bad, whatever its state is */
	char stays[160]; /* why it is never removed: a link or a tracker names it ...; "": it may be
			  */
	struct metrics metrics;
	char why[256];	/* why it is in this state; empty if complete */
	uint64_t inode; /* of its directory, or of its first file */
};

/* How to look for the newest checkpoint. */
struct layout;
struct checkpoint_search {
	const char *directory;
	const struct layout *layout; /* layouts.h */
	/* Ours: a checkpoint that is marked as bad in one of these DIRs is bad; place_count of
	 * them. */
	char *const *places;
	size_t place_count;
	const uint64_t *saved; /* the step that the run's store calls complete; NULL: none */
	bool *doubted;	       /* set to whether one was doubtful; NULL: nothing is set */
	bool contents;	       /* also compare checksums, which only our layout has */
};
/*
 * Find the newest complete checkpoint, which is the one of the highest step. Others are skipped;
 * skipped (NULL: none) gets a line for each of them, and for other things that a user should know,
 * such as a broken tracker. If none is complete, found may be CHECKPOINT_DOUBTFUL. STATUS_NO: there
 * is surely none: all of DIR was read, or its parent was read and has no DIR. STATUS_TEMPORARY:
 * also if there are only entries that look like checkpoints, and that no layout reads.
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

/* STATUS_OK: complete. STATUS_DAMAGED: damaged. STATUS_TEMPORARY: doubtful. STATUS_NO: bad,
 * incomplete or of an unknown form. If unreadable: checkpoint->status. */
enum status checkpoint_status(const struct checkpoint *checkpoint);

enum checkpoint_mark { CKPT_MARK_BAD, CKPT_MARK_GOOD, CKPT_MARK_PINNED, CKPT_MARK_UNPINNED };
/*
 * Set or remove a mark of a checkpoint, complete or not: in our layout a file in it (native.h),
 * else a file beside it. Doing it again only changes the reason. CKPT_MARK_GOOD removes the mark as
 * bad; a doubtful one is complete from then on. STATUS_OK: it is durable. STATUS_NO: there is no
 * such checkpoint. reason (NULL: none): for CKPT_MARK_BAD, cut to fit.
 */
enum status checkpoint_mark(const char *directory, const struct layout *layout, uint64_t step,
	enum checkpoint_mark mark, const char *reason, struct error *err);

/*
 * Find the checkpoint to resume from in "DIR", "DIR:LAYOUT" or "DIR:PATTERN" (layouts.h): the path
 * and step of checkpoint_latest. before: the layout that the run has used before (NULL: not known);
 * layout: the name of the one that was used. saved: as in the search. notes: with STATUS_OK it is
 * empty, or says why the checkpoint is doubtful, or names the first one that was skipped, and why.
 */
struct checkpoint_resume {
	char path[4096];
	uint64_t step;
	bool doubtful;
	char layout[32];
};
enum status checkpoint_find_resume(const char *text, const char *before, const uint64_t *saved,
	struct checkpoint_resume *resume, struct error *notes);

/*
 * Mark the checkpoint of step in such a place as bad, because this number of restarts from it have
 * failed. before: as above. STATUS_NO: not marked, because it is the only complete one.
 */
enum status checkpoint_give_up(
	const char *place, const char *before, uint64_t step, uint64_t failures, struct error *err);

#endif
