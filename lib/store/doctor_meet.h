/* SPDX-License-Identifier: MIT */
/*
 * How N processes of one launch, strangers to each other, find together through a directory that
 * all of them see, and nobody that an earlier launch left there.
 *
 * Each has a nonce of its own and shows that it lives by renaming a file that bears it, ten times a
 * second: only who is seen to change is there, so left-overs never are. The smallest nonce that
 * sees N, itself among them, calls: a file with the N nonces, in order. Each of them accepts one
 * call at a time, and only from a smaller nonce than its own. When all have accepted, the caller
 * leads and says go; when one does not in time, it takes the call back and begins anew. A call of
 * an earlier launch names nobody that is there now.
 *
 * session keeps launches apart that come at the same time; without one, whoever comes is taken,
 * which does no harm: all that meet test the same directory.
 *
 * doctor_meet_leave in any case; the directory goes with the last one.
 */
#ifndef STORE_DOCTOR_MEET_H
#define STORE_DOCTOR_MEET_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process.h"
#include "store/doctor_findings.h"

struct doctor_member {
	char nonce[17];
	char host[65];
	struct process_identity identity;
	uint64_t sequence;
	int64_t changed; /* when it was seen to change last, clock_now; 0: never */
};

struct doctor_meeting {
	char path[PATH_MAX];
	char session[17], nonce[17];
	uint64_t sequence;
	struct doctor_member *known;
	size_t known_count;

	/* Once they have met: who leads is 0. */
	bool leads;
	uint64_t index, count;
	struct doctor_member members[DOCTOR_SIDES_MAX];
	char scratch[64]; /* name of the scratch directory that the one who leads has made */
};

/*
 * STATUS_TEMPORARY when not all have come by the deadline; the error names those who have.
 * A scratch directory that was made for a call nobody led to an end is removed.
 */
enum status doctor_meet(struct doctor_meeting *meeting, const char *directory, const char *session,
	uint64_t nodes, int64_t deadline, struct error *err);
void doctor_meet_leave(struct doctor_meeting *meeting);

#endif
