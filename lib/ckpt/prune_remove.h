/* SPDX-License-Identifier: MIT */
/* What a prune and a drain have in common. Private to lib/ckpt. */
#ifndef CKPT_PRUNE_REMOVE_H
#define CKPT_PRUNE_REMOVE_H

#include "ckpt/prune.h"
#include "ckpt/scan.h"

/*
 * Open scan (STATUS_NO: there is no DIR). Unless it is a dry run, processes that prune DIR on one
 * machine wait for each other, up to request->wait. The lock is on the directory itself and leaves
 * nothing behind; where a filesystem has no such locks (NFS), they work side by side. It ends with
 * scan_close.
 */
enum status prune_begin(struct scan *scan, const struct prune_request *request, struct error *err);

/* Decide that an item stays, or goes, for this reason (cut to fit). */
void prune_decide(struct prune_item *item, bool keep, const char *why);

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
