/* SPDX-License-Identifier: MIT */
/*
 * Removing entries of DIR, which is open as `directory`; path: DIR, for errors.
 *
 *   NAME                   gone_rename hides it
 *   .gone-0DIGITS-NAME     gone_give_back, or the next process, gives it its name back
 *   .gone-8DIGITS-NAME     gone_delete has begun: it is only deleted, by whoever finds it
 *
 * DIR is synced before anything is deleted. So a checkpoint never has its own name when it is half
 * deleted, even after a crash of the machine.
 */
#ifndef CKPT_GONE_H
#define CKPT_GONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/names.h"

struct layout;

/*
 * Wait up to `wait` ms for other processes of this machine that remove entries. Closing directory
 * releases the lock. On a filesystem without such locks (NFS) there is no waiting.
 */
enum status gone_lock(int directory, const char *path, int64_t wait, struct error *err);

/* Hide an entry if it has this inode. STATUS_NO: it is not there, or is another one. */
enum status gone_rename(int directory, const char *path, const char *entry, uint64_t inode,
	char gone[CKPT_GONE_SIZE], struct error *err);
/* Give it its name back, if it is there. Not STATUS_OK: it stays hidden; err has both names. */
enum status gone_give_back(int directory, const char *path, const char *gone, struct error *err);

/*
 * Delete hidden entries; "" is none, and one may be missing. If DIR cannot be synced, nothing is
 * deleted, and gone has the names from which they can be given back; else they become "". statuses:
 * the result for each. Returns the first failure, after all were tried.
 */
enum status gone_delete(int directory, const char *path, char (*gone)[CKPT_GONE_SIZE], size_t count,
	enum status *statuses, struct error *err);

/* Whether NAME of a hidden one is of this layout, or ours. */
bool gone_is_known(const struct layout *layout, const char *entry);
/*
 * Settle what killed processes have hidden. With `only`: delete what had this name, if another one
 * has it now, or its deletion had begun. Otherwise (the caller holds the lock) give all that are
 * known their names back, and delete those that cannot have them. *count (NULL: none) grows by
 * their number. Returns the first failure, after all were tried.
 */
enum status gone_settle(int directory, const char *path, const struct layout *layout,
	const char *only, size_t *count, struct error *err);

#endif
