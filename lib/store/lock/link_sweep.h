/* SPDX-License-Identifier: MIT */
/*
 * Remove what processes that were killed have left beside a lock of mode link.
 */
#ifndef STORE_LOCK_LINK_SWEEP_H
#define STORE_LOCK_LINK_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Remove directories LOCK.NONCE of processes of this machine that have ended; and, if they are
 * older than limit (milliseconds, by the filesystem's clock), other directories LOCK.NONCE, and
 * LOCK.new-XXXXXX, which an interrupted making of a store left. Errors are ignored.
 *
 * own ("": none): a name whose directory stays. If the directory of a live process is removed,
 * that process makes another one.
 */
void link_sweep(const char *lock, const char *own, int64_t limit);

/* The beginning of the name of a takeover's workspace (takeover_step.h) in HELD. */
#define LINK_WORKSPACE "takeover-"
bool link_workspace_is(const char *name);
/*
 * Remove all workspaces in the directory held except own ("": none). Returns 0, or an errno: one is
 * left, and its maker could still use it.
 */
int link_workspaces_remove(const char *held, const char *own);

#endif
