/* SPDX-License-Identifier: MIT */
/* What a prune and a drain have in common. Private to lib/ckpt. */
#ifndef CKPT_PRUNE_REMOVE_H
#define CKPT_PRUNE_REMOVE_H

#include "ckpt/prune.h"
#include "ckpt/scan.h"

/*
 * Open scan (STATUS_NO: there is no DIR). Unless it is a dry run, wait up to request->wait for
 * other processes of this machine that prune DIR. The lock is on the directory itself, and
 * scan_close releases it. On a filesystem without such locks (NFS) there is no waiting.
 */
enum status prune_begin(struct scan *scan, const struct prune_request *request, struct error *err);

/* Decide whether an item is kept, and note the reason (cut to fit). */
void prune_decide(struct prune_item *item, bool keep, const char *why);

/* Whether an item is to be removed, and this was not tried yet. */
static inline bool prune_is_due(const struct prune_item *item)
{
	return !item->decision.keep && item->status == STATUS_TEMPORARY;
}

/* Each function may be NULL. */
struct prune_check {
	/* Called after an item was renamed away. Not STATUS_OK: it gets its name back. After
	 * STATUS_USAGE, no more items are renamed. */
	enum status (*after)(void *context, struct prune_item *item, struct error *err);
	/* Called after all were renamed away, before the first one is deleted. Not STATUS_OK: all
	 * get their names back. */
	enum status (*last)(void *context, struct error *err);
	void *context;
};

/*
 * Remove each item of report that is due and passes check, and what earlier pruners have left. Sets
 * the status of each item. The items of report are in the order of scan. Returns the first failure,
 * after all was tried.
 */
enum status prune_remove(const struct scan *scan, const struct prune_check *check,
	struct prune_report *report, struct error *err);

#endif
