/* SPDX-License-Identifier: MIT */
/*
 * The directory DIR with the checkpoints: opening it, and making sure that it is really empty or
 * missing. A disk that is not mounted must never look like a run that has not begun.
 */
#ifndef CKPT_DIRECTORY_H
#define CKPT_DIRECTORY_H

#include "base/error.h"
#include "ckpt/names.h"

/*
 * Open DIR for reading. STATUS_NO: it surely does not exist, because its parent was read.
 * STATUS_TEMPORARY: its parent is missing, too, or a filesystem should be mounted and is not
 * (base/mounts.h).
 */
enum status ckpt_directory_open(const char *directory, int *descriptor, struct error *err);

/*
 * Check again after reading. STATUS_OK: descriptor (-1: DIR was missing) still is DIR, and what
 * should be mounted is. STATUS_TEMPORARY: discard what was read.
 */
enum status ckpt_directory_confirm(const char *directory, int descriptor, struct error *err);

/*
 * Make DIR, durably, if it is missing. STATUS_TEMPORARY: its parent is missing, too, so a disk may
 * not be mounted.
 */
enum status ckpt_directory_make(const char *directory, struct error *err);

/* "DIR/NAME", malloc'd. */
char *ckpt_directory_path(const char *directory, const char *name);

#endif
