/* SPDX-License-Identifier: MIT */
#include "live/progress.h"

#define LONGEST_TICK 2500 /* ms: count at most this between two calls: the rest was a pause */

bool progress_observe(struct progress *p, int64_t limit, const struct progress_reading *look)
{
	bool same =
		p->started == look->started && p->step == look->step && p->written == look->written;
	int64_t passed = look->now - p->looked_at;
	if (passed > LONGEST_TICK)
		passed = LONGEST_TICK;
	if (!same || !look->started)
		p->standing = 0;
	else if (look->counts)
		p->standing += passed;
	p->looked_at = look->now;
	p->started = look->started;
	p->step = look->step;
	p->written = look->written;
	return limit > 0 && p->standing >= limit;
}
