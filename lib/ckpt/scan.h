/* SPDX-License-Identifier: MIT */
/*
 * One look at a DIR of a framework's layout: what is there, judged. Private to ckpt/adopted.h.
 */
#ifndef CKPT_SCAN_H
#define CKPT_SCAN_H

#include "ckpt/ckpt.h"
#include "ckpt/layout/layout.h"

struct scan_part {
	char *entry; /* a name in DIR */
	struct layout_name read;
};

/* One checkpoint: parts[first] up to count of them. */
struct scan_item {
	struct checkpoint checkpoint;
	int64_t changed; /* when any of it changed last, milliseconds since 1970 */
	size_t first, count;
	struct shards shards;
	bool whole;   /* complete, as far as it can be told from itself alone */
	bool fewer;   /* of CHECKPOINT_UNPROVEN: another one is of more ranks */
	bool witness; /* of a prune: shows of how many ranks the newest one is */
};

struct scan {
	struct scan_part *parts; /* by step, version, checkpoint, entry */
	size_t part_count;
	struct scan_item *items;
	size_t count;
	size_t removed; /* directories and files on their way to deletion */
	bool vanished;	/* something that was listed was gone when it was looked at */
	struct layout_tracker tracker;
};
void scan_release(struct scan *scan);

/* descriptor: the open DIR. settled: see ckpt/adopted.h. */
enum status scan_read(const char *directory, int descriptor, const struct layout_choice *choice,
	int64_t settled, struct scan *scan, struct error *err);

/* Judge one anew, as it is now, beside the others as they were. STATUS_NO: it is gone. */
enum status scan_judge(const char *directory, int descriptor, const struct layout_choice *choice,
	const struct scan *scan, int64_t settled, struct scan_item *item, struct error *err);

/* item as a sibling of another. */
struct shards_sibling scan_sibling(const struct scan_item *item, const struct scan_item *of);

/* The tracker as it is now. */
enum status scan_track(const char *directory, int descriptor, const struct layout_choice *choice,
	struct layout_tracker *tracker, struct error *err);

/* Something inside a checkpoint of another framework is no DIR: STATUS_USAGE. */
enum status scan_refuse_inside(const char *directory, int descriptor,
	const struct layout_choice *choice, struct error *err);

#endif
