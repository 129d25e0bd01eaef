/* SPDX-License-Identifier: MIT */
/*
 * Pruning: removing checkpoints that need not be kept.
 *
 * First each of them is renamed away, then the directory is synced, then they are deleted: never is
 * one half deleted under its own name. If a pruner is killed, the next one deletes what it had
 * renamed away. Any number of pruners and committers may work at once. Nothing is touched that does
 * not have one of our names, or that was published and does not have our manifest. Pruners of one
 * machine take turns, so that those of cron do not pile up.
 */
#ifndef CKPT_PRUNE_H
#define CKPT_PRUNE_H

#include "ckpt/ckpt.h"
#include "ckpt/keep.h"

struct prune_item {
	struct checkpoint checkpoint;
	struct keep_decision decision;
	enum status status; /* of its removal; STATUS_NO: another process removed or completed it */
};
struct prune_report {
	struct prune_item *items; /* in the order of checkpoint_list */
	size_t count;
	size_t leftovers; /* number of leftovers of earlier pruners that were deleted */
	bool absent;	  /* DIR does not exist: nothing was saved there yet */
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
 * although all was removed that may be. Others: err has the first failure; the report, if its count
 * is not 0, says what was done. STATUS_DAMAGED: the tracker is broken.
 */
enum status checkpoint_prune(const char *directory, const struct layout_choice *choice,
	const struct prune_request *request, struct prune_report *report, struct error *err);
/* "kept", "removed" (also in a dry run), "gone" (another process removed it), "FAILED". */
const char *prune_action(const struct prune_item *item, bool dry_run);
void prune_report_release(struct prune_report *report);

#endif
