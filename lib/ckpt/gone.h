/* SPDX-License-Identifier: MIT */
/*
 * Removing entries of DIR. An entry is first renamed to a hidden name, .gone-RANDOM-NAME; then DIR
 * is synced; then the entry is deleted. So a checkpoint is never half deleted under its own name,
 * even after a crash of the machine. Until it is deleted, it may be renamed back.
 *
 * What a killed process left under a hidden name is settled by the next one: it gets its name back,
 * to be judged anew; or it is deleted, because another entry has its name by now, or because it is
 * one of ours that is not whole. The files are deleted before the marks and the manifest, so that
 * one that is half deleted is never taken for a whole one without a mark. What is unfinished never
 * gets its name back: its writer could commit the half that is left.
 */
#ifndef CKPT_GONE_H
#define CKPT_GONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/names.h"

/*
 * Wait up to `wait` ms for other processes of this machine that remove entries of the open DIR.
 * Closing directory releases the lock. On a filesystem without such locks (NFS) there is no
 * waiting. path: DIR, for errors.
 */
enum status gone_lock(int directory, const char *path, int64_t wait, struct error *err);

/*
 * Rename an entry of the open DIR away if it has this inode; gone becomes its hidden name.
 * STATUS_NO: it is not there, or has another inode.
 */
enum status gone_rename(int directory, const char *entry, uint64_t inode, char gone[CKPT_GONE_SIZE],
	struct error *err);
/* Rename it back. Not STATUS_OK: it keeps its hidden name; err names both. */
enum status gone_give_back(int directory, const char *path, const char *gone, struct error *err);

/*
 * Sync the open DIR, then delete hidden names in it, several at a time; if the sync fails, delete
 * nothing. A name may be missing. statuses: the result for each. Returns the first failure, after
 * all were tried.
 */
enum status gone_delete(int directory, const char *path, const char *const *gone, size_t count,
	enum status *statuses, struct error *err);

/*
 * Settle what killed processes left, of the entries for which is_wanted is true. Give names back
 * only with `locked`: the caller holds the lock, so that no other process is just deleting them.
 * *deleted (NULL: not counted) grows by the number of those that were deleted. Returns the first
 * failure, after all were tried.
 */
enum status gone_settle(int directory, const char *path, bool locked,
	bool (*is_wanted)(const void *context, const char *entry), const void *context,
	size_t *deleted, struct error *err);

#endif
