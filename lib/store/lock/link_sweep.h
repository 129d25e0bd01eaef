/* SPDX-License-Identifier: MIT */
/*
 * Remove what processes left beside a lock of mode link that were killed while they waited for it.
 */
#ifndef STORE_LOCK_LINK_SWEEP_H
#define STORE_LOCK_LINK_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Remove, without a report:
 * - directories LOCK.NONCE that hold the name of a process of this machine that has ended, or that
 *   are older than limit (milliseconds, by the clock of the filesystem);
 * - what the making of a store left as LOCK.new-XXXXXX, if it is older than limit.
 *
 * own: a name whose directory stays ("": none). Removing the directory of a live process is safe:
 * that process begins again with a new one.
 */
void link_sweep(const char *lock, const char *own, int64_t limit);

/* The name of the workspace of a takeover (takeover_step.h) in HELD begins with this. */
#define LINK_WORKSPACE "takeover-"
bool link_workspace_is(const char *name);
/*
 * Remove all workspaces in the directory held except own ("": none). 0, or errno: one is still
 * there, and its maker could go on with it.
 */
int link_workspaces_remove(const char *held, const char *own);

#endif
