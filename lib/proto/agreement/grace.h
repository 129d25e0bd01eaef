/* SPDX-License-Identifier: MIT */
/* When the last save before a deadline has to begin: pure functions; all times are milliseconds. */
#ifndef PROTO_AGREEMENT_GRACE_H
#define PROTO_AGREEMENT_GRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Measured durations of this and earlier attempts; 0: not measured yet. */
struct grace_measure {
	int64_t longest_save;
	int64_t usual_save;   /* of at least three saves; 0: not known */
	int64_t longest_step; /* from one boundary to the next */
	int64_t usual_step;   /* the same, on average; 0: not known, use longest_step */
	uint64_t skew;	      /* by how many such steps the tasks are apart */
};

/* The time from an order to save at the next boundary to the last byte on disk, ms. */
int64_t grace_save_time(const struct grace_measure *measure);

/*
 * The time that a final round takes, from its opening to the last byte on disk: the sum of the
 * longest save, half of it (less where saves differ little), the longest step (at least 2.5 s, to
 * agree), a usual step, skew x the longest step, and 1 s.
 */
int64_t grace_needed(const struct grace_measure *measure);

/* The instant at which the final round has to be opened; CLOCK_NEVER without a deadline. */
int64_t grace_final_time(int64_t deadline, const struct grace_measure *measure);

/*
 * Whether the first decision may be to save and run on: there is a deadline, and after a save now
 * there is still time to train before the final round.
 */
bool grace_allows_training(int64_t now, int64_t deadline, const struct grace_measure *measure);

/* Whether a save that is ordered now meets the deadline, if nothing takes longer than before. */
bool grace_fits(int64_t now, int64_t deadline, const struct grace_measure *measure);

/*
 * The instant up to which a task that has known its deadline since `known` waits for an agreement;
 * then it has to save at its next boundary. From there to the deadline there is time for a save, at
 * least 1 s; if no save was measured yet, at least a quarter of the whole time. If the whole time
 * is too short, the agreement gets half of what a step and a save leave, at least 500 ms.
 */
int64_t grace_last_call(int64_t known, int64_t deadline, const struct grace_measure *measure);

/*
 * How long to wait for a further report before deciding without it: report_timeout, or less, so
 * that two such waits leave enough time for the save; but at least 250 ms.
 */
int64_t grace_report_patience(int64_t opened, int64_t deadline, int64_t report_timeout,
	const struct grace_measure *measure);

#endif
