/* SPDX-License-Identifier: MIT */
/* Announce a notice to the whole job without an agent: from one of its tasks, or from outside. */
#ifndef PROTO_CLAIM_H
#define PROTO_CLAIM_H

#include "notice/notice.h"
#include "proto/view.h"

struct claim {
	bool outside; /* not made by a task: `task` is not used */
	uint64_t task;
	/*
	 * From outside: this process, if it made the notice itself, so that two claims in one
	 * millisecond differ; 0 if it passes on a notice, so that a repeated claim is the same.
	 */
	uint64_t pid;
	enum agreement_then then; /* THEN_CONTINUE: a checkpoint on demand, which claims nothing */
	struct notice notice;
};

/*
 * view: the attempt as read a moment ago; it is read again if the store shows it to be stale.
 * STATUS_OK: the claim is ours, perhaps from an earlier call, and the view shows it. STATUS_NO:
 * another claim is there (the view shows whose), the task has left, the attempt is ending or over,
 * or no checkpoint on demand can be taken now. If there is any claim, a deadline that is clearly
 * earlier than the known one is announced. After an unknown outcome it tries again until deadline.
 * Shortens the store's patience to what is left until deadline.
 */
enum status claim_make(struct store *store, struct view *view, const struct claim *claim,
	int64_t deadline, struct error *err);

/*
 * Whether the task that made the view's claim is gone: it left, died or never joined, or its
 * agent's process on this machine is gone. A claim from outside has no task: true.
 */
bool claim_is_gone(const struct view *view);

#endif
