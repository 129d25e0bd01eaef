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
