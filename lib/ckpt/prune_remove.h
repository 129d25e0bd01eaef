/* SPDX-License-Identifier: MIT */
/* Removing what a prune has decided on. Private to ckpt/prune.h. */
#ifndef CKPT_PRUNE_REMOVE_H
#define CKPT_PRUNE_REMOVE_H

#include "ckpt/prune.h"
#include "ckpt/scan.h"

/* After an item was renamed away: whether it may be deleted. Otherwise it gets its name back, and
 * with STATUS_USAGE nothing else is renamed. */
struct prune_check {
	enum status (*after)(void *context, struct prune_item *item, struct error *err);
	void *context;
};

/*
 * Remove each item of report that is not kept and passes check (NULL: all do), and what earlier
 * pruners left. Each item learns how it went; report's items are in the order of scan's. The first
 * failure is answered, after the others are done.
 */
enum status prune_remove(const struct scan *scan, const struct prune_check *check,
	struct prune_report *report, struct error *err);

#endif
