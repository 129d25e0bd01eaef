/* SPDX-License-Identifier: MIT */
/*
 * Removing from DIR. An entry is first renamed to a hidden name from which only deletion follows;
 * then DIR is synced; then the entry is deleted. At no time is a checkpoint half deleted under its
 * own name, not even after a crash of the machine. What a killed process renamed away, the next one
 * deletes, or gives back where it was taken by mistake.
 */
#ifndef CKPT_REMOVE_H
#define CKPT_REMOVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/commit/names.h"
#include "ckpt/layout/layout.h"

/*
 * Rename an entry of the open DIR away, if it has this inode. name: what it is called then.
 * STATUS_NO: it is not there, or another one.
 */
enum status remove_begin(int directory, const char *entry, uint64_t inode,
	char name[CKPT_REMOVED_SIZE], struct error *err);

/*
 * Delete names below the open DIR, several at a time, after syncing it; where that fails, nothing
 * is deleted. One that is not there is fine. statuses says how each went. Answers the first
 * failure, after all were tried. path: DIR, for errors.
 */
enum status remove_delete(int directory, const char *path, const char *const *names, size_t count,
	enum status *statuses, struct error *err);

/* Of which entries remove_finish deletes what was renamed away. */
struct remove_scope {
	const struct layout_choice *choice; /* those that this layout reads */
	const char *entry;		    /* only this one; NULL: all */
};
/*
 * Delete what was renamed away and not deleted yet, by any process. What was taken by mistake, or
 * pinned since, gets its name back instead. deleted: how many are added; may be NULL. The first
 * failure is answered, after the others are done.
 */
enum status remove_finish(int directory, const char *path, const struct remove_scope *scope,
	size_t *deleted, struct error *err);
/* Both of one entry of ours, where DIR is not open. */
enum status remove_begin_ours(
	const char *path, const char *entry, uint64_t inode, struct error *err);
enum status remove_finish_ours(const char *path, const char *entry, struct error *err);

#endif
