/* SPDX-License-Identifier: MIT */
/*
 * What a task makes of a deadline that another machine has announced. Clocks of machines do not
 * agree, so what crosses machines is how much time was left when it was written. A reader knows
 * that it was written between two of its own readings.
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
