/* SPDX-License-Identifier: MIT */
/*
 * The directory DIR that holds checkpoints: opened, read, and when "there is nothing" may be
 * believed. A disk that is not mounted must never look like a run that has not begun.
 */
#ifndef CKPT_DIRECTORY_H
#define CKPT_DIRECTORY_H

#include "base/error.h"
#include "ckpt/commit/names.h"

/*
 * Open DIR for reading. STATUS_NO: it definitely does not exist, its parent was read.
 * STATUS_TEMPORARY: a filesystem that should be mounted on the way is not (base/mounts/mounts.h).
 */
enum status ckpt_directory_open(const char *directory, int *descriptor, struct error *err);

/*
 * The same after reading. STATUS_OK: what was read from descriptor is what DIR holds, and every
 * filesystem that should be mounted on the way still is. STATUS_TEMPORARY: do not believe it.
 * descriptor -1: DIR is missing.
 */
enum status ckpt_directory_confirm(const char *directory, int descriptor, struct error *err);

/*
 * Make DIR, durably, if only it is missing. STATUS_TEMPORARY: its parent is missing, too, as when a
 * disk is not mounted; or this is a restart, which should find it (base/mounts/mounts.h).
 */
enum status ckpt_directory_make(const char *directory, struct error *err);

/* "DIR/NAME", malloc'd. */
char *ckpt_directory_path(const char *directory, const char *name);

#endif
