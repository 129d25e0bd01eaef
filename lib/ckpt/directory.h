/* SPDX-License-Identifier: MIT */
/*
 * The directory DIR with the checkpoints. A disk that is not mounted must never look like a run
 * that has not begun: what should be mounted and is not (base/mounts.h) is STATUS_TEMPORARY.
 */
#ifndef CKPT_DIRECTORY_H
#define CKPT_DIRECTORY_H

#include "base/error.h"
#include "ckpt/names.h"

/*
 * Open DIR for reading. STATUS_NO: it surely does not exist, because its parent was read.
 * STATUS_TEMPORARY: its parent is missing, too.
 */
enum status ckpt_directory_open(const char *directory, int *descriptor, struct error *err);

/*
 * Check again after reading. STATUS_OK: descriptor (-1: DIR was missing) still is DIR.
 * STATUS_TEMPORARY: discard what was read.
 */
enum status ckpt_directory_confirm(const char *directory, int descriptor, struct error *err);

/* Make DIR, durably, if it is missing. STATUS_TEMPORARY: its parent is missing, too. */
enum status ckpt_directory_make(const char *directory, struct error *err);

/* "DIR/NAME", malloc'd. */
char *ckpt_directory_path(const char *directory, const char *name);

#endif
