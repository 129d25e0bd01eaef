/* SPDX-License-Identifier: MIT */
/*
 * The notice that preempt-watch gave last, for a preempt-claim that the same shell starts after it:
 * `preempt-watch && preempt-claim`. It is a small file beside the boards (task/board_place.h),
 * named after the parent process of both.
 */
#ifndef AGENT_LAST_NOTICE_H
#define AGENT_LAST_NOTICE_H

#include "notice/notice.h"

/* Keep the notice for our parent's next commands. Failures are ignored: it is only told better. */
void last_notice_keep(const struct notice *notice);

/*
 * The notice in $PREEMPT_NOTICE (preempt-watch --exec), or the one that was kept for our parent
 * less than a minute ago; else one with the source "command". A group's claim does not count.
 * reason "" and grace -1: those of the notice.
 */
void last_notice_find(struct notice *notice, const char *reason, int64_t grace);

#endif
