/* SPDX-License-Identifier: MIT */
/*
 * Which checkpoints are kept: a pure function of the checkpoints, the rules and the time. "Newer"
 * means of a higher step.
 *
 * Never removed:
 *   the newest complete one, and the newest complete one that is settled;
 *   of the complete ones that are settled, the one committed last (after a reset to an earlier
 *   step, it is not the newest);
 *   complete ones that changed within `settled`: perhaps they are still being written;
 *   doubtful ones, those of an unknown form, and those that could not be read;
 *   pinned ones, the trainer's own, and those with a reason why they stay (ckpt.h).
 * By the rules: complete ones that are settled. Only these count; one that any rule keeps is kept.
 * Removed:
 *   bad, incomplete and damaged ones that have not changed within `settled`, if a newer complete
 *   one is settled; but --keep-step keeps a step in any of these states;
 *   unfinished ones that have not changed for a day, or for an hour if a complete one of the same
 *   step or a newer one is settled.
 *
 * Then, while all kept ones are larger than --max-bytes, the oldest one goes that only a rule
 * keeps. With this limit and no rule, all complete ones are kept at first. Without the limit, a
 * second decision about the kept ones, at the same time, keeps all of them.
 */
#ifndef CKPT_KEEP_H
#define CKPT_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

enum keep_rule {
	KEEP_LAST = 1,
	KEEP_EVERY_STEPS = 2,
	KEEP_EVERY = 4,
	KEEP_WITHIN = 8,
	KEEP_BEST = 16,
	KEEP_STEP = 32,
};
/* The name of one rule, for instance "keep-last". */
const char *keep_rule_name(enum keep_rule rule);

/* A rule with the value 0 is not given. */
struct keep_policy {
	uint64_t last;	      /* keep the newest ones, this number of them */
	uint64_t every_steps; /* keep those whose step is divisible by this, also step 0 */
	/*
	 * Milliseconds: keep the first one, then each that was committed at least this time after
	 * the last one that this rule has kept, or before it, because a clock went backwards.
	 */
	int64_t every;
	int64_t within; /* milliseconds: keep those committed at most this ago, or in the future */
	uint64_t best;	/* keep the best by metric, this number of them; of equal ones the newer */
	const char *metric;
	bool highest; /* greater is better */
	const uint64_t *steps;
	size_t step_count;
	uint64_t max_bytes; /* of all kept ones together, without unfinished ones; 0: no limit */
};

/* STATUS_USAGE: there is no rule, or the rules contradict each other. */
enum status keep_check(const struct keep_policy *policy, struct error *err);
/* Append the numbers of a list "100,200" to steps, an array of capacity with *count in use. */
enum status keep_read_steps(
	const char *text, uint64_t *steps, size_t capacity, size_t *count, struct error *err);
/*
 * STATUS_USAGE: none of these has the metric of --keep-best, which would therefore keep nothing;
 * err names the metrics that they have. STATUS_OK: one has it, there is no --keep-best, or none is
 * complete.
 */
enum status keep_check_metric(const struct keep_policy *policy,
	const struct checkpoint *const *items, size_t count, struct error *err);

/* Milliseconds; the first two since 1970. */
struct keep_moment {
	int64_t now;	 /* for the rules about the time of the commit */
	int64_t clock;	 /* the same time by the clock that dates the files in DIR */
	int64_t settled; /* what has not changed for this long is no longer being written */
};

/* Whether the rules count it: it is complete, settled, and not the trainer's own. */
bool keep_counts(const struct checkpoint *checkpoint, const struct keep_moment *moment);

struct keep_decision {
	bool keep;
	bool must;	/* kept, and no limit removes it */
	unsigned rules; /* set of enum keep_rule: the rules that keep it */
	char why[256];
};

/*
 * Decide about all checkpoints of a DIR, in the order of struct list; decisions has `count`
 * elements. A checkpoint without a time of commit (0) is kept by each rule about this time; one
 * without a time of change is settled, if it is published. False: those that must be kept are
 * larger than max_bytes.
 */
bool keep_decide(const struct keep_policy *policy, const struct keep_moment *moment,
	const struct checkpoint *const *items, size_t count, struct keep_decision *decisions);

#endif
