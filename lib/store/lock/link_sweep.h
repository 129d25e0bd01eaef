/* SPDX-License-Identifier: MIT */
/* What those who were killed while they waited for a lock of mode link left beside it. */
#ifndef STORE_LOCK_LINK_SWEEP_H
#define STORE_LOCK_LINK_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Remove the directories LOCK.NONCE that hold the name of a process of this machine that is gone,
 * or, whoever they are of, that are older than limit (milliseconds, by the clock of the
 * filesystem), and what the making of a store left as LOCK.new-XXXXXX, when so old. own: a name
 * whose directory stays ("": none). It is harmless to remove what is of one who lives: he begins
 * anew. Nothing is said.
 */
void link_sweep(const char *lock, const char *own, int64_t limit);

/* What begins the name of the workspace of a takeover (takeover_step.h), in HELD. */
#define LINK_WORKSPACE "takeover-"
bool link_workspace_is(const char *name);
/*
 * Remove all workspaces in the directory held but own ("": none), for good: 0, or errno where one
 * is still there, and whoever made it could go on with it. Nothing is said.
 */
int link_workspaces_remove(const char *held, const char *own);

#endif
