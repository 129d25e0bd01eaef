/* SPDX-License-Identifier: MIT */
/*
 * How the sides exchange their records: in step n side K makes the file SCRATCH/n.K, whole, and
 * waits for those of all others, with a deadline. It opens the directory again each time it looks
 * for them, so that a filesystem's cache of old names does not matter.
 *
 * On several nodes the name of the scratch directory follows from the session, and an earlier
 * launch may have left one. So each side draws a number, and side 0 answers in step 1 with a hash
 * of all. A side that finds another hash looks again, and from then on a record without that hash
 * counts as absent. All that follows is in a directory of its own below, whose name is the hash: a
 * launch of the same session that replaces the scratch directory ends this one, and shares no file
 * with it.
 */
#ifndef DOCTOR_EXCHANGE_H
#define DOCTOR_EXCHANGE_H

#include "doctor/findings.h"

struct doctor_exchange {
	/* The scratch directory; once all have met, the one below it. Released by the caller. */
	char *scratch;
	/* When side 0 made it, by clock_now; 0: not yet. NULL: side 0 is on another machine. */
	_Atomic int64_t *made;
	size_t index, count;
	unsigned step;
	int64_t deadline;	   /* no step takes longer */
	struct doctor_side *sides; /* of all; sides[index] is ours */
	bool lost;		   /* a side has certainly ended, or this one cannot write */
};

/*
 * The first two steps. STATUS_TEMPORARY: not all sides came in time; err names the hosts that did.
 * STATUS_NO: side 0 made the scratch directory, and this side does not see it: it is not the same
 * directory.
 */
enum status doctor_meet(struct doctor_exchange *exchange, struct error *err);
/*
 * Give our record, with the outcome of what we did, and take the others'. takes: milliseconds that
 * the step should take. Not STATUS_OK: the first trouble of any side, or a side did not come.
 */
enum status doctor_exchange(
	struct doctor_exchange *exchange, enum status outcome, int64_t takes, struct error *err);
/* The last step: side 0 returns when all others have read its last record, the others at once. */
void doctor_exchange_end(struct doctor_exchange *exchange);

#endif
