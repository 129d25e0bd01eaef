/* SPDX-License-Identifier: MIT */
#include "store/machine/handoff.h"

int64_t handoff_pause(const struct handoff *handoff, int64_t now)
{
	int64_t freed = now - handoff->gave;
	return freed < 0 || freed >= HANDOFF_PAUSE || now - handoff->began < HANDOFF_LONGEST
		       ? 0
		       : HANDOFF_PAUSE - freed;
}

void handoff_taken(struct handoff *handoff, int64_t now, bool waited)
{
	int64_t freed = now - handoff->gave;
	if (waited || freed < 0 || freed >= HANDOFF_PAUSE)
		handoff->began = now;
}

void handoff_given(struct handoff *handoff, int64_t now)
{
	handoff->gave = now;
}
