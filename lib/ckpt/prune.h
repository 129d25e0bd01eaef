/* SPDX-License-Identifier: MIT */
/*
 * Removing what need not be kept.
 *
 * First each checkpoint that goes is renamed away, then the directory is synced, then they are
 * deleted: at no time is one half deleted under its own name. What a killed pruner renamed away,
 * the next one deletes. Any number of pruners and committers may be at work at once. Nothing is
 * touched that does not bear one of our names and, where it was published, carry our manifest.
 * Pruners of one machine take turns all the same, so that those of cron do not pile up.
 */
#ifndef CKPT_PRUNE_H
#define CKPT_PRUNE_H

#include "ckpt/ckpt.h"
#include "ckpt/keep.h"

struct prune_item {
	struct checkpoint checkpoint;
	struct keep_decision decision;
	enum status status; /* of its removal; STATUS_NO: it went, or came to life, without us */
};
struct prune_report {
	struct prune_item *items; /* in the order of checkpoint_list */
	size_t count;
	size_t leftovers; /* of earlier pruners, deleted now */
	bool absent;	  /* DIR does not exist: nothing was ever saved there */
};

struct prune_request {
	struct keep_policy policy; /* that keep_check accepts */
	int64_t now;		   /* milliseconds since 1970 */
	int64_t wait;		   /* milliseconds: so long for another pruner to end */
	int64_t settled; /* of frameworks: what changed within this time (ms) is being written */
	bool dry_run;	 /* only decide */
};

/*
 * STATUS_OK: done, or absent. STATUS_NO: done, but a limit is not met although all went that may
 * go, err says which. Others: the report stands as far as it got, when its count is not 0; err says
 * what failed first; STATUS_DAMAGED: the tracker is broken.
 */
enum status checkpoint_prune(const char *directory, const struct layout_choice *choice,
	const struct prune_request *request, struct prune_report *report, struct error *err);
/* "kept", "removed" (also of a dry run), "gone" (without us), "FAILED". */
const char *prune_action(const struct prune_item *item, bool dry_run);
void prune_report_release(struct prune_report *report);

#endif
