/* SPDX-License-Identifier: MIT */
/*
 * Removing entries of DIR. An entry is first renamed to a hidden name, which means that it will be
 * deleted; then DIR is synced; then the entry is deleted. So a checkpoint is never half deleted
 * under its own name, even after a crash of the machine. If a process is killed in between, the
 * next one deletes the entry, or renames it back if it was renamed by mistake. All entries have
 * other inodes after DIR was copied, and then seem to be mistakes. So before an entry is deleted,
 * it gets a second hidden name, with which it is never renamed back.
 */
#ifndef CKPT_REMOVE_H
#define CKPT_REMOVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/layout/layout.h"
#include "ckpt/names.h"

/*
 * Rename an entry of the open DIR away if it has this inode; name becomes its hidden name.
 * STATUS_NO: it is not there, or has another inode.
 */
enum status remove_begin(int directory, const char *entry, uint64_t inode,
	char name[CKPT_REMOVED_SIZE], struct error *err);

/*
 * Sync the open DIR, then delete names in it, several at a time; if the sync fails, delete nothing.
 * A name may be missing. statuses: the result for each. Returns the first failure, after all were
 * tried. path: DIR, for errors.
 */
enum status remove_delete(int directory, const char *path, const char *const *names, size_t count,
	enum status *statuses, struct error *err);

/* Which renamed entries remove_finish deletes. */
struct remove_scope {
	const struct layout_choice *choice; /* checkpoints of this layout */
	const char *entry;		    /* only this entry, of any name; NULL: all */
};
/*
 * Delete entries that any process has renamed away and not deleted yet. An entry that was renamed
 * by mistake, or was pinned since, gets its name back instead. The number of deleted ones is added
 * to *deleted (NULL: not counted). Returns the first failure, after all were tried.
 */
enum status remove_finish(int directory, const char *path, const struct remove_scope *scope,
	size_t *deleted, struct error *err);
/* Rename and delete one entry of our layout, if DIR is not open. */
enum status remove_begin_ours(
	const char *path, const char *entry, uint64_t inode, struct error *err);
enum status remove_finish_ours(const char *path, const char *entry, struct error *err);

#endif
