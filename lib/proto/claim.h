/* SPDX-License-Identifier: MIT */
/*
 * To announce a notice to the whole job, from one of its tasks or from outside, without an agent.
 */
#ifndef PROTO_CLAIM_H
#define PROTO_CLAIM_H

#include "notice/notice.h"
#include "proto/view.h"

struct claim {
	bool outside;
	uint64_t task;
	/*
	 * Of one from outside whose notice this process has made itself: two that begin in one
	 * millisecond are two. 0: a notice that was passed on says who it is, however often it is.
	 */
	uint64_t pid;
	enum agreement_then then; /* THEN_CONTINUE: a checkpoint on demand, which claims nothing */
	struct notice notice;
};

/*
 * view: the attempt as it was read a moment ago; what is stale in it is found out.
 * STATUS_OK: it is ours (also when it has been since an earlier call); what the view shows includes
 * it. STATUS_NO: another claim is there (the view says whose), the attempt is ending or over, or a
 * round is under way already. A deadline earlier than the known one is announced in any case.
 * An unknown outcome is cleared up by reading again, until deadline.
 */
enum status claim_make(struct store *store, struct view *view, const struct claim *claim,
	int64_t deadline, struct error *err);

/*
 * Whether the claimer of a view that is claimed is gone: it has left, is dead, its agent's process
 * on this machine is gone, or it never joined; made from outside, there is no task to wait for.
 */
bool claim_is_gone(const struct view *view);

#endif
