/* SPDX-License-Identifier: MIT */
/*
 * How the sides meet, and exchange their records through files.
 *
 * The scratch directory .preempt-doctor-NAME, mode 0700, is made by side 0. Each side K writes its
 * record there, 0.K, and draws a random number in it. Who sees all records knows a hash of all
 * numbers; side 0 then makes the subdirectory of that name, and a side that finds it has met the
 * others. In each later step side K writes STEP.K in the subdirectory, and waits for the files of
 * all others.
 *
 * On several nodes NAME follows from the session, and an earlier launch may have left such a
 * directory: side 0 replaces it, and the others write their records again. Two launches never share
 * a file, as their hashes differ; the one whose directory was replaced ends.
 *
 * Files get their names when they are complete. The directory is opened again at each look, in case
 * the filesystem has cached old names.
 */
#ifndef DOCTOR_MEET_H
#define DOCTOR_MEET_H

#include "doctor/findings.h"

#define MEETING_NAME 40

struct meeting {
	char scratch[PATH_MAX]; /* after meeting_begin, the subdirectory */
	/* clock_now when side 0 made it; 0: not yet. NULL: each side is on a node of its own. */
	_Atomic int64_t *made;
	size_t index, count;
	unsigned step;
	int64_t deadline;	   /* of every step */
	struct doctor_side *sides; /* the records of all sides; ours is sides[index] */
	bool lost;		   /* a side has ended or is silent, or this one cannot write */
};

/* The name of the scratch directory. session: NULL: of one machine. False: no random numbers. */
bool meeting_name(const char *session, char name[MEETING_NAME]);
/*
 * For side 0: make the scratch directory in place of one of the same name. Also remove those that
 * other doctors left a day ago, by the clock of the filesystem.
 */
enum status meeting_make(const char *scratch, struct error *err);
/* Remove it; repeated for two seconds, because NFS keeps names of removed files that are open. */
void meeting_remove(const char *scratch);

/*
 * Wait until all sides are there. STATUS_TEMPORARY: not all came in time; err names the hosts that
 * did. STATUS_NO: side 0 has made the scratch directory, and this side does not see it.
 */
enum status meeting_begin(struct meeting *meeting, struct error *err);
/*
 * A step: write our record with how our work went, and read those of the others. takes: how much
 * longer, in milliseconds, another side may work. Not STATUS_OK: a record did not come, or ours
 * could not be written.
 */
enum status meeting_step(
	struct meeting *meeting, enum status outcome, int64_t takes, struct error *err);
/* The last step: side 0 waits until all others have read its last record. */
void meeting_end(struct meeting *meeting);

#endif
