/* SPDX-License-Identifier: MIT */
#include "live/cut_off.h"

#define LONGEST_TICK 2500 /* ms: count at most this between two calls: the rest was a pause */
#define DECLARED     3	  /* periods beyond the limit: by then other tasks have declared a death */

void cut_off_update(struct cut_off *cut_off, bool answered, int64_t now)
{
	int64_t passed = cut_off->looked_at ? now - cut_off->looked_at : 0;
	cut_off->looked_at = now;
	cut_off->lasted =
		answered ? 0 : cut_off->lasted + (passed < LONGEST_TICK ? passed : LONGEST_TICK);
}

int64_t cut_off_given_up(const struct heartbeat_rules *rules)
{
	return (int64_t)(rules->limit + DECLARED) * rules->period;
}

int64_t cut_off_default(const struct heartbeat_rules *rules)
{
	int64_t given_up = cut_off_given_up(rules);
	return given_up > CUT_OFF_LEAST ? given_up : CUT_OFF_LEAST;
}
