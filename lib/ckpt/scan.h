/* SPDX-License-Identifier: MIT */
/*
 * The checkpoints in DIR, in any layout (ckpt/layout/layout.h). Our own layout inspects each of its
 * checkpoints by manifest and marks. For the checkpoints of a framework, which knows nothing of us:
 *
 *   A checkpoint is complete if the framework's own rule says so and its tracker does not say
 *   otherwise. There are no checksums; names, sizes and the structure of files are checked.
 *   If it is not known whether all ranks' files are there, it is CHECKPOINT_UNPROVEN: `latest`
 *   prefers any complete one, no rule counts it, and it is never removed.
 *   It is not known which process writes. So a checkpoint that is not complete is
 *   CHECKPOINT_INCOMPLETE until it has not changed for `settled` ms, and then CHECKPOINT_DAMAGED.
 *   The tracker of DIR is only read (a copy writes that of DEST: ckpt/copy.h). The checkpoint
 *   that it names, and newer ones, are never removed.
 *   A name that the layout cannot read is not listed. A symbolic link, and a directory without a
 *   file of the framework, or with a link or device in it, are CHECKPOINT_FOREIGN. None of these is
 *   ever touched.
 */
#ifndef CKPT_SCAN_H
#define CKPT_SCAN_H

#include "ckpt/ckpt.h"
#include "ckpt/layout/layout.h"
#include "ckpt/tree.h"

struct scan_part {
	char *entry; /* a name in DIR */
	struct layout_name read;
};

/* One checkpoint: parts[first] to parts[first + count - 1]. */
struct scan_item {
	struct checkpoint checkpoint;
	int64_t changed; /* frameworks: when any of its files changed last, ms since 1970 */
	size_t first, count;
	struct shards shards;
	bool whole;   /* by itself, without a look at others, it seems complete */
	bool fewer;   /* it is CHECKPOINT_UNPROVEN because another checkpoint has more ranks */
	bool witness; /* for a prune: it shows how many ranks the newest one must have */
};

/* The caller sets the first four members before scan_open, and zeroes the others; if it may call
 * scan_close without scan_open, it sets descriptor to -1. */
struct scan {
	const char *directory; /* DIR */
	const struct layout_choice *choice;
	int64_t settled;	 /* frameworks: a time in ms, see above */
	int64_t ahead;		 /* ms that the clock of DIR's files is ahead of ours; 0: unknown */
	bool contents;		 /* our layout: compare checksums, too */
	int descriptor;		 /* of DIR; -1: not open */
	struct scan_part *parts; /* sorted by group, step, version, checkpoint, entry */
	size_t part_count;
	struct scan_item *items;
	size_t count;
	size_t removed; /* number of entries that were renamed away and not deleted yet */
	bool vanished;	/* an entry of the list was gone when it was inspected */
	struct layout_tracker tracker;
};

/* Open DIR. STATUS_NO: it surely does not exist (ckpt/directory.h). STATUS_USAGE: DIR itself is a
 * checkpoint. */
enum status scan_open(struct scan *scan, struct error *err);
/* Close DIR and release all memory; call it also after a failed scan_open. */
void scan_close(struct scan *scan);

/* Read the tracker and the names in DIR into parts. May be called again. */
enum status scan_names(struct scan *scan, struct error *err);
/* Set item by its names only. Returns the index of the first part of the next checkpoint. */
size_t scan_item(const struct scan *scan, size_t first, struct scan_item *item);
/* scan_names, then inspect all checkpoints into items. */
enum status scan_read(struct scan *scan, struct error *err);

/* The files of a checkpoint, without checksums. Initially zeroed, with root -1. */
struct scan_files {
	int root; /* its open directory; -1: its files are in DIR itself */
	struct manifest list;
};
/*
 * Find the files of a framework's item as they are now; entries that are gone are left out. notes
 * may be NULL. STATUS_NO: something in it is neither a file nor a directory.
 */
enum status scan_files(const struct scan *scan, const struct scan_item *item,
	struct scan_files *files, struct tree_notes *notes, struct error *err);
void scan_files_release(struct scan_files *files);

/* Inspect item again, and compare it with the other items as they were. STATUS_NO: it is gone. */
enum status scan_inspect(const struct scan *scan, struct scan_item *item, struct error *err);

/* For how long a framework's item has not changed, by the clock of DIR's files, in ms. */
int64_t scan_quiet(const struct scan *scan, const struct scan_item *item);

/* Describe item as a sibling of `of`, for shards_decide. */
struct shards_sibling scan_sibling(const struct scan_item *item, const struct scan_item *of);

/* Read the tracker as it is now. */
enum status scan_track(const struct scan *scan, struct layout_tracker *tracker, struct error *err);

#endif
