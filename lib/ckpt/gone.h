/* SPDX-License-Identifier: MIT */
/*
 * Removing entries of DIR. An entry is first renamed to a hidden name, .gone-RANDOM-NAME; until it
 * is deleted, it may get its own name back. Before that, it is renamed once more, so that its name
 * says that its deletion has begun, and DIR is synced. So a checkpoint never has its own name when
 * it is half deleted, even after a crash of the machine.
 *
 * What a killed process left under a hidden name is settled by the next one: it gets its name back,
 * to be judged anew; or it is deleted, because its deletion had begun, another entry has its name
 * by now, or it is unfinished.
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
 * STATUS_NO: it is not there, or has another inode. path: DIR, for errors, here and below.
 */
enum status gone_rename(int directory, const char *path, const char *entry, uint64_t inode,
	char gone[CKPT_GONE_SIZE], struct error *err);
/* Rename it back, if it is there. Not STATUS_OK: it keeps its hidden name; err names both. */
enum status gone_give_back(int directory, const char *path, const char *gone, struct error *err);

/*
 * Delete hidden names in the open DIR, several at a time. A name may be missing. If DIR cannot be
 * synced, nothing is deleted, and all keep these names. statuses: the result for each. Returns the
 * first failure, after all were tried.
 */
enum status gone_delete(int directory, const char *path, const char *const *gone, size_t count,
	enum status *statuses, struct error *err);

/*
 * Settle what killed processes left, of the entries for which is_wanted is true. Give names back
 * only with `locked`: the caller holds the lock, so that no other process of this machine has just
 * renamed them. Returns the first failure, after all were tried.
 */
enum status gone_settle(int directory, const char *path, bool locked,
	bool (*is_wanted)(const void *context, const char *entry), const void *context,
	struct error *err);

#endif
