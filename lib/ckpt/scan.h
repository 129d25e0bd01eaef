/* SPDX-License-Identifier: MIT */
/*
 * What is in DIR, whatever the layout (ckpt/layout/layout.h). Our own layout inspects each of its
 * checkpoints by manifest and marks. A framework knows nothing of us, so of its checkpoints:
 *
 *   a checkpoint is complete if the framework's own rule says so and its tracker does not say
 *   otherwise; there are no checksums: names, sizes and the structure of files are checked;
 *   where the files of some ranks could be missing and nothing says so, it is
 *   CHECKPOINT_UNPROVEN: never offered before a complete one, never removed, never counted;
 *   which process writes is not known: one that changed less than `settled` ago counts as being
 *   written, and is CHECKPOINT_INCOMPLETE while it is not complete; later it is CHECKPOINT_DAMAGED;
 *   a tracker is read, never written; the checkpoint that it names and all newer ones are never
 *   touched;
 *   a name that the layout does not read exactly, a symbolic link, a directory that holds no
 *   file of the framework or a link or device: CHECKPOINT_FOREIGN, never touched.
 */
#ifndef CKPT_SCAN_H
#define CKPT_SCAN_H

#include "ckpt/ckpt.h"
#include "ckpt/content/tree.h"
#include "ckpt/layout/layout.h"

struct scan_part {
	char *entry; /* a name in DIR */
	struct layout_name read;
};

/* One checkpoint: parts[first] to parts[first + count - 1]. */
struct scan_item {
	struct checkpoint checkpoint;
	int64_t changed; /* when any of it changed last, milliseconds since 1970; of frameworks */
	size_t first, count;
	struct shards shards;
	bool whole;   /* complete, as far as it can be told from itself alone */
	bool fewer;   /* CHECKPOINT_UNPROVEN because another checkpoint has more ranks */
	bool witness; /* of a prune: shows of how many ranks the newest one is */
};

/* The first four are set before scan_open, the rest is zeroed; where scan_close may come without
 * scan_open, descriptor is -1. */
struct scan {
	const char *directory; /* DIR */
	const struct layout_choice *choice;
	int64_t settled;	 /* of frameworks: unchanged for so long is no longer written, ms */
	bool contents;		 /* of ours: compare checksums, too */
	int descriptor;		 /* DIR, open; -1: it is not open */
	struct scan_part *parts; /* by group, step, version, checkpoint, entry */
	size_t part_count;
	struct scan_item *items;
	size_t count;
	size_t removed; /* entries that were renamed away and are not deleted yet */
	bool vanished;	/* something that was listed was gone when it was looked at */
	struct layout_tracker tracker;
};

/* Open DIR. STATUS_NO: it definitely does not exist (ckpt/directory.h). STATUS_USAGE: it is itself
 * a checkpoint. */
enum status scan_open(struct scan *scan, struct error *err);
/* Close DIR and release everything; also after a failed scan_open. */
void scan_close(struct scan *scan);

/* The tracker and the names: parts. May be called again. */
enum status scan_names(struct scan *scan, struct error *err);
/* Fill item without inspecting it. Returns the index of the first part of the next checkpoint. */
size_t scan_item(const struct scan *scan, size_t first, struct scan_item *item);
/* scan_names, and inspect all: items. */
enum status scan_read(struct scan *scan, struct error *err);

/* The files of a checkpoint, without checksums. Before: zeroed, with root -1. */
struct scan_files {
	int root; /* its directory, open; -1: it is files of DIR */
	struct manifest list;
};
/*
 * Those of an item of a framework, as they are now: of its entries in DIR those that are there.
 * notes may be NULL. STATUS_NO: something there is neither a file nor a directory.
 */
enum status scan_files(const struct scan *scan, const struct scan_item *item,
	struct scan_files *files, struct tree_notes *notes, struct error *err);
void scan_files_release(struct scan_files *files);

/* Inspect item again, and compare it with the other items as they were read. STATUS_NO: it is gone.
 */
enum status scan_inspect(const struct scan *scan, struct scan_item *item, struct error *err);

/* Describe item as a sibling of `of`, for shards_decide. */
struct shards_sibling scan_sibling(const struct scan_item *item, const struct scan_item *of);

/* The tracker as it is now. */
enum status scan_track(const struct scan *scan, struct layout_tracker *tracker, struct error *err);

#endif
