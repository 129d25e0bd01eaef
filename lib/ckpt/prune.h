/* SPDX-License-Identifier: MIT */
/*
 * Removing what need not be kept.
 *
 * First each checkpoint that goes is renamed away, then the directory is synced, then they are
 * deleted: at no time is one half deleted under its own name. What a killed pruner renamed away,
 * the next one deletes. Any number of pruners and committers may be at work at once. Nothing is
 * touched that does not bear one of our names and, where it was published, carry our manifest.
 */
#ifndef CKPT_PRUNE_H
#define CKPT_PRUNE_H

#include "ckpt/ckpt.h"
#include "ckpt/keep.h"

struct prune_item {
	struct checkpoint checkpoint;
	struct keep_verdict verdict;
	enum status status; /* of its removal; STATUS_NO: it went, or came to life, without us */
};
struct prune_report {
	struct prune_item *items; /* in the order of checkpoint_list */
	size_t count;
	size_t leftovers; /* of earlier pruners, deleted now */
};

/*
 * STATUS_OK: done. Others: the report stands as far as it got, when its count is not 0; err says
 * what failed first. dry_run: only decide.
 */
enum status checkpoint_prune(const char *directory, const struct keep_policy *policy, bool dry_run,
	struct prune_report *report, struct error *err);
/* "kept", "removed", "gone" (without us), "FAILED"; of a dry run "keep", "remove". */
const char *prune_deed(const struct prune_item *item, bool dry_run);
void prune_report_release(struct prune_report *report);

#endif
