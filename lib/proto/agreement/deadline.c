/* SPDX-License-Identifier: MIT */
/*
 * Derive a deadline from what another machine has announced. Clocks of machines differ, so the
 * store holds how much time was left when the deadline was written. The reader knows that this was
 * between two of its own readings.
 */
#include "base/clock.h"
#include "proto/agreement/agreement.h"

void agreement_learn_deadline(
	struct agreement_view *view, const struct agreement_sighting *sighting)
{
	int64_t told = sighting->seen + sighting->left, latest = told, earliest = told;
	if (sighting->exact) {
		earliest = latest = sighting->exact;
	} else if (sighting->absent && sighting->absent < sighting->seen) {
		earliest = sighting->absent + sighting->left;
	}
	view->deadline_told = clock_earlier(view->deadline_told, told);
	if (earliest <= sighting->seen) {
		view->deadline_doubted = true;
		return;
	}
	view->deadline = clock_earlier(view->deadline, earliest);
	view->deadline_latest = clock_earlier(view->deadline_latest, latest);
}

bool agreement_moves_deadline(const struct agreement_view *view, int64_t deadline, bool ours)
{
	int64_t spare = ours ? TOLD_LATE : NEARLY_SAME;
	return view->claimed && deadline != CLOCK_NEVER &&
	       (view->deadline_told == CLOCK_NEVER || deadline < view->deadline_told - spare);
}
