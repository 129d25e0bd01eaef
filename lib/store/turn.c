/* SPDX-License-Identifier: MIT */
#include "store/turn.h"

int64_t turn_rest(const struct turn *turn, int64_t now)
{
	int64_t freed = now - turn->gave;
	return freed < 0 || freed >= TURN_REST || now - turn->began < TURN_LONGEST
		       ? 0
		       : TURN_REST - freed;
}

void turn_took(struct turn *turn, int64_t now, bool waited)
{
	int64_t freed = now - turn->gave;
	if (waited || freed < 0 || freed >= TURN_REST)
		turn->began = now;
}

void turn_gave(struct turn *turn, int64_t now)
{
	turn->gave = now;
}
