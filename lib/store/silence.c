/* SPDX-License-Identifier: MIT */
#include "store/silence.h"

int64_t silence_observe(struct silence *silence, uint64_t what, int64_t now, int64_t limit)
{
	/* Only the observer whose exchange succeeds adds the elapsed time, so two observers at
	 * once count it once. */
	int64_t gap = now - atomic_exchange(&silence->last, now);
	if (silence->what != what) {
		/* In this order: should we be killed in between, the next one starts anew. */
		silence->silent = 0;
		silence->what = what;
		return 0;
	}
	if (gap < 0)
		gap = 0;
	if (gap > limit / 16)
		gap = limit / 16;
	return atomic_fetch_add(&silence->silent, gap) + gap;
}
