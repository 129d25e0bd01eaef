/* SPDX-License-Identifier: MIT */
/* What is so, by what the agreement knows: one-line answers for its rules. */
#ifndef PROTO_AGREEMENT_FACTS_H
#define PROTO_AGREEMENT_FACTS_H

#include "base/clock.h"
#include "proto/agreement/agreement.h"

static inline int64_t deadline_of(const struct agreement *a)
{
	return clock_earlier(a->view->deadline, a->own_deadline);
}

/* At the latest; our own machine's is known, so that is never later than it. */
static inline int64_t latest_deadline_of(const struct agreement *a)
{
	return clock_earlier(a->view->deadline_latest, a->own_deadline);
}

static inline const struct agreement_peer *self(const struct agreement *a)
{
	return &a->view->peers[a->config.task];
}

/* Until then the store has answered, and taken what this task had to write. */
static inline int64_t answered_until(const struct agreement *a)
{
	return a->unanswered_at ? clock_earlier(a->answered_at, a->unanswered_at) : a->answered_at;
}

/* Whether this attempt ends: a task was noticed, and it was not only a checkpoint on demand. */
static inline bool preempted(const struct agreement *a)
{
	return a->noticed || a->view->claimed;
}

static inline bool is_final(const struct agreement_view *view)
{
	return view->decided && view->decision.kind != KIND_SAVE;
}

/* The decision is there, but of this task nothing is known until it calls. */
static inline bool awaits_first_call(const struct agreement *a)
{
	return a->view->decided && !a->called;
}

#endif
