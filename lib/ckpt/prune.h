/* SPDX-License-Identifier: MIT */
/*
 * Pruning: removing checkpoints that need not be kept. Pruners of one machine take turns.
 *
 *   what a killed pruner has renamed away gets its name back
 *   read DIR; decide (keep.h)
 *   rename each that goes away
 *   look once more: if the newest complete one has changed, give all their names back, and
 *     otherwise to those that were pinned meanwhile, or that a link or the tracker names now
 *   sync DIR; delete
 *
 * See gone.h for how an entry is removed.
 */
#ifndef CKPT_PRUNE_H
#define CKPT_PRUNE_H

#include "ckpt/ckpt.h"
#include "ckpt/keep.h"
#include "ckpt/list.h"

#define PRUNE_SETTLED (15 * 60 * 1000) /* ms */

struct prune_request {
	struct keep_policy policy; /* keep_check accepts it */
	int64_t now;		   /* milliseconds since 1970 */
	int64_t wait;		   /* how long to wait for another pruner to end, in ms */
	int64_t settled;	   /* as in struct keep_moment */
	bool dry_run;		   /* only decide, and change nothing in DIR */
};

struct prune_report {
	struct list list;
	size_t count; /* of list, if it was decided; else 0 */
	struct keep_decision *decisions;
	enum status
		*statuses; /* of the removal; STATUS_NO: another process removed or changed it */
	size_t leftovers;  /* entries that a killed pruner left: renamed back or deleted, or, in a
			      dry run, found */
	bool absent;	   /* DIR does not exist: nothing was saved there yet */
};

/*
 * STATUS_OK: done, or absent. STATUS_NO: done, but --max-bytes is exceeded because the rest must be
 * kept. Others: err has the first failure; the report, if its count is not 0, says what was done.
 * STATUS_DAMAGED: the tracker is broken. STATUS_USAGE: no checkpoint has the metric. Release the
 * report in any case.
 */
enum status checkpoint_prune(const char *directory, const struct layout *layout,
	const struct prune_request *request, struct prune_report *report, struct error *err);
/* "kept", "removed" (also in a dry run), "gone" (or changed by another process), "FAILED". */
const char *prune_action(const struct prune_report *report, size_t i, bool dry_run);

void prune_report_release(struct prune_report *report);

#endif
