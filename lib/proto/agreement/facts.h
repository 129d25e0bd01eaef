/* SPDX-License-Identifier: MIT */
/* Facts that the rules of the agreement ask for, derived from struct agreement. */
#ifndef PROTO_AGREEMENT_FACTS_H
#define PROTO_AGREEMENT_FACTS_H

#include "base/clock.h"
#include "proto/agreement/agreement.h"

static inline int64_t deadline_of(const struct agreement *a)
{
	return clock_earlier(a->view->deadline, a->own_deadline);
}

/* The latest instant that the deadline can be. Our own machine's deadline is known exactly. */
static inline int64_t latest_deadline_of(const struct agreement *a)
{
	return clock_earlier(a->view->deadline_latest, a->own_deadline);
}

static inline const struct agreement_peer *self(const struct agreement *a)
{
	return &a->view->peers[a->config.task];
}

/* Up to this instant the store has answered everything, also the writes of this task. */
static inline int64_t answered_until(const struct agreement *a)
{
	return a->unanswered_at ? clock_earlier(a->answered_at, a->unanswered_at) : a->answered_at;
}

/* Whether the attempt ends because a task has a notice. (A checkpoint on demand is no notice.) */
static inline bool preempted(const struct agreement *a)
{
	return a->noticed || a->view->claimed;
}

/* Whether there is a decision, and it is not to save and run on. */
static inline bool is_final(const struct agreement_view *view)
{
	return view->decided && view->decision.kind != KIND_SAVE;
}

/* There is a decision, but where this task is will be known only when it calls preempt_step. */
static inline bool awaits_first_call(const struct agreement *a)
{
	return a->view->decided && !a->called;
}

#endif
