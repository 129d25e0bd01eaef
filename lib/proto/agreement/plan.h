/* SPDX-License-Identifier: MIT */
/* What the rules of the agreement add to a plan: a write, an instant to wake at, a look at the
 * store. */
#ifndef PROTO_AGREEMENT_PLAN_H
#define PROTO_AGREEMENT_PLAN_H

#include "base/clock.h"
#include "proto/agreement/alone.h"
#include "proto/agreement/reading.h"

static inline void wake_at(struct agreement_plan *plan, int64_t instant)
{
	plan->wake = clock_earlier(plan->wake, instant);
}

/* Whether the instant has come. If not, the plan wakes at it. */
static inline bool has_come(struct agreement_plan *plan, int64_t instant, int64_t now)
{
	if (now < instant)
		wake_at(plan, instant);
	return now >= instant;
}

/* Other tasks are awaited: look at the store's news soon. */
static inline void look_soon(const struct agreement *a, struct agreement_plan *plan)
{
	plan->look = clock_earlier(
		plan->look, clock_later(a->answered_at, a->awaits_at) + agreement_pace(a));
}

/* Read all records now. */
static inline void read_now(const struct agreement *a, struct agreement_plan *plan)
{
	plan->read = clock_earlier(plan->read, a->answered_at);
}

/* Plan this write until it is done. After an unknown or refused outcome read the store first. */
static inline void want(const struct agreement *a, struct agreement_plan *plan,
	enum agreement_write what, uint64_t round)
{
	bool in_memory = a->solo && agreement_is_of_round(what);
	if (a->done[what] == round || (a->pending[what] && !in_memory))
		return;
	if ((!a->look_first && !a->read_first) || in_memory)
		plan->write[what] = round;
}

#endif
