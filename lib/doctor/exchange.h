/* SPDX-License-Identifier: MIT */
/*
 * How the sides exchange their records. In step n, side K writes the file SCRATCH/n.K (complete
 * before it gets this name), and waits for the files of all others, up to a deadline. It opens the
 * directory again each time it looks for them, in case the filesystem has cached old names.
 *
 * On several nodes the name of the scratch directory follows from the session, and an earlier
 * launch may have left a directory of that name. So each side draws a random number. In step 1 side
 * 0 writes a hash of all numbers; a side that computes another hash looks again. From then on a
 * record with another hash counts as absent, and all files are in a subdirectory whose name is the
 * hash: if a later launch of the same session replaces the scratch directory, this launch ends, and
 * the two never share a file.
 */
#ifndef DOCTOR_EXCHANGE_H
#define DOCTOR_EXCHANGE_H

#include "doctor/findings.h"

struct doctor_exchange {
	/* The scratch directory; after doctor_meet, the subdirectory. The caller frees it. */
	char *scratch;
	/* clock_now when side 0 made it; 0: not yet. NULL: each side is on a node of its own. */
	_Atomic int64_t *made;
	size_t index, count;
	unsigned step;
	int64_t deadline;	   /* of every step */
	struct doctor_side *sides; /* the records of all sides; ours is sides[index] */
	bool lost;		   /* a side has ended or is silent, or this one cannot write */
};

/*
 * The first two steps: wait until all sides are there. STATUS_TEMPORARY: not all came in time; err
 * names the hosts that did. STATUS_NO: side 0 has made the scratch directory, and this side does
 * not see it, so the two directories are not the same.
 */
enum status doctor_meet(struct doctor_exchange *exchange, struct error *err);
/*
 * A step: write our record with the outcome of our work, and read those of the others. takes: how
 * much longer, in milliseconds, the work of another side may take. Not STATUS_OK: a side had
 * trouble, or its record did not come in time.
 */
enum status doctor_exchange(
	struct doctor_exchange *exchange, enum status outcome, int64_t takes, struct error *err);
/*
 * The last step: side 0 waits until all others have read its last record; the others do not wait.
 */
void doctor_exchange_end(struct doctor_exchange *exchange);

#endif
