/* SPDX-License-Identifier: MIT */
/*
 * What pruning has in common, whosever checkpoints they are: whose turn it is, and the limits.
 */
#ifndef CKPT_PRUNE_LOCK_H
#define CKPT_PRUNE_LOCK_H

#include <stdint.h>

#include "base/error.h"
#include "ckpt/keep.h"

/*
 * Pruners of one machine wait for each other, up to wait milliseconds. The lock is on the directory
 * itself and leaves nothing behind; where a filesystem has no such locks (NFS), they work side by
 * side. It ends when descriptor is closed.
 */
enum status prune_lock(const char *directory, int descriptor, int64_t wait, struct error *err);

/* The bytes that may still be written there. */
enum status prune_measure_free(
	const char *directory, int descriptor, uint64_t *free_bytes, struct error *err);

/* What is said when limits cannot be met: STATUS_NO. */
enum status prune_unmet(const char *directory, const struct keep_policy *policy, struct error *err);

#endif
