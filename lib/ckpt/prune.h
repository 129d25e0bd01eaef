/* SPDX-License-Identifier: MIT */
/*
 * Pruning: removing checkpoints that need not be kept.
 *
 * First they are renamed away, then the directory is synced, then they are deleted: so none is ever
 * half deleted under its own name. (An unfinished one is emptied instead: prune_remove.c.) The next
 * pruner deletes what a killed one had renamed away. Pruners of one machine take turns, so that
 * those of cron do not pile up; those of others, and committers, may work at the same time. In our
 * layout, a name that is not ours, or a published step without a manifest, is not touched.
 */
#ifndef CKPT_PRUNE_H
#define CKPT_PRUNE_H

#include "ckpt/ckpt.h"
#include "ckpt/keep.h"

struct prune_item {
	struct checkpoint checkpoint;
	struct keep_decision decision;
	enum status status; /* of its removal; STATUS_NO: another process removed or changed it */
};
struct prune_report {
	struct prune_item *items; /* in the order of checkpoint_list */
	size_t count;
	size_t leftovers; /* entries that earlier pruners left: deleted, or found in a dry run */
	bool absent;	  /* DIR does not exist: nothing was saved there yet */
	bool stranded;	  /* an entry could not get its name back: delete nothing more */
};

struct prune_request {
	struct keep_policy policy; /* keep_check accepts it */
	int64_t now;		   /* milliseconds since 1970 */
	int64_t wait;		   /* how long to wait for another pruner to end, in ms */
	int64_t settled;	   /* as in struct scan */
	bool dry_run;		   /* only decide */
};

/*
 * STATUS_OK: done, or absent. STATUS_NO: done, but a limit (err says which) is still exceeded
 * because the rest must be kept. Others: err has the first failure; the report, if its count
 * is not 0, says what was done. STATUS_DAMAGED: the tracker is broken.
 */
enum status checkpoint_prune(const char *directory, const struct layout_choice *choice,
	const struct prune_request *request, struct prune_report *report, struct error *err);
/* "kept", "removed" (also in a dry run), "gone" (or changed by another process), "FAILED". */
const char *prune_action(const struct prune_item *item, bool dry_run);
void prune_report_release(struct prune_report *report);

#endif
