/* SPDX-License-Identifier: MIT */
#include "store/machine/staleness.h"

int64_t staleness_observe(struct staleness *staleness, uint64_t what, int64_t now, int64_t limit)
{
	/* Of two observers at once, the second finds no time elapsed since the first. */
	int64_t gap = now - atomic_exchange(&staleness->last, now);
	if (staleness->what != what) {
		/* In this order: if we are killed in between, the next observer counts from 0. */
		staleness->silent = 0;
		staleness->what = what;
		return 0;
	}
	if (gap < 0)
		gap = 0;
	if (gap > limit / 16)
		gap = limit / 16;
	return atomic_fetch_add(&staleness->silent, gap) + gap;
}
