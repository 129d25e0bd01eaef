/* SPDX-License-Identifier: MIT */
/*
 * Which checkpoints are kept: a pure function of the checkpoints, the rules, the time and the free
 * space. "Older" means of a lower step.
 *
 * A checkpoint is kept if any rule keeps it. Independent of the rules, these are kept:
 *   the newest complete checkpoint (the highest step);
 *   the complete checkpoint that was committed last (after a reset, perhaps of an earlier step);
 *   pinned checkpoints; checkpoints that are not ours, could not be read, or are unproven.
 * Rules count and keep only complete checkpoints; but --keep-step keeps a step in any state. A bad
 * or damaged checkpoint is removed when a complete one is newer (under --keep-last N, when N are
 * newer); until then it may be needed to find out what happened, or be the only one.
 *
 * Then, while a limit is exceeded, the oldest one is removed that neither the list above nor a rule
 * of --must protects. With limits and no rule, all complete ones are kept at first.
 *
 * Without limits, a second decision about the kept ones, with the same time, keeps all of them.
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
	KEEP_UNMEASURED = 32,
	KEEP_STEP = 64,
	KEEP_DAILY = 128,
	KEEP_WEEKLY = 256,
	KEEP_MONTHLY = 512,
};

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
	/*
	 * For each of this number of the newest days, weeks (from Monday) or months (UTC) with a
	 * commit: keep the checkpoint committed last; of equal times the highest step.
	 */
	uint64_t daily, weekly, monthly;
	uint64_t best; /* keep the best by metric, this number of them; of equal ones the newer */
	const char *metric;
	bool highest;	 /* greater is better */
	bool unmeasured; /* keep those without a finite value of metric */
	const uint64_t *steps;
	size_t step_count;
	unsigned must;	    /* set of enum keep_rule: no limit removes what these rules keep */
	uint64_t max_bytes; /* of all kept ones together; 0: no limit */
	uint64_t min_free;  /* bytes that must be free on the filesystem; 0: no limit */
};

/* The set of rules that are given (enum keep_rule). */
unsigned keep_rules(const struct keep_policy *policy);
/* The name of one rule. */
const char *keep_rule_name(enum keep_rule rule);
/* Add the rules of a list "keep-last,keep-best", or with "all" those given so far, to must. */
enum status keep_read_must(struct keep_policy *policy, const char *text, struct error *err);
/* Append the numbers of a list "100,200" to steps, an array of capacity with *count in use. */
enum status keep_read_steps(
	const char *text, uint64_t *steps, size_t capacity, size_t *count, struct error *err);
/* STATUS_USAGE: there is no rule, or the rules contradict each other. */
enum status keep_check(const struct keep_policy *policy, struct error *err);

struct keep_decision {
	bool keep;
	bool must;	/* kept, and no limit removes it */
	unsigned rules; /* set of enum keep_rule: the rules that keep it */
	char why[192];
};

/*
 * Decide by the rules. now: milliseconds since 1970. items are sorted by rising step (several may
 * have the same one), and none is CHECKPOINT_INCOMPLETE; decisions has `count` elements. An item
 * without a time (0) is kept by each rule about time.
 */
void keep_decide(const struct keep_policy *policy, int64_t now,
	const struct checkpoint *const *items, size_t count, struct keep_decision *decisions);

/* The space when the limits are applied. */
struct keep_space {
	uint64_t free;	/* free bytes; only needed for min_free */
	uint64_t apart; /* bytes of other checkpoints that are kept; only needed for max_bytes */
	bool removed;	/* what the rules do not keep is removed already: free has its bytes */
};

/*
 * Then decide by the limits: keep no more than they allow, and let the oldest go first. False: a
 * limit is still exceeded, because the rest must be kept.
 */
bool keep_limit(const struct keep_policy *policy, const struct keep_space *space,
	const struct checkpoint *const *items, size_t count, struct keep_decision *decisions);

/*
 * STATUS_USAGE: none of these has the metric of --keep-best, which would therefore keep nothing;
 * err names the metrics that they have. STATUS_OK: one has it, there is no --keep-best, unmeasured
 * ones are kept, or none is complete.
 */
enum status keep_check_metric(const struct keep_policy *policy,
	const struct checkpoint *const *items, size_t count, struct error *err);

/*
 * Decide about an incomplete checkpoint. newest_attempt: the highest attempt of a complete or bad
 * checkpoint in the same line of lives (base/process/life.h); 0: none. Attempts follow one another,
 * so an attempt is over when a later one has saved; this does not hold for a copy, and attempt 0
 * means that attempts are not counted. begun: the highest attempt of any checkpoint in the line; in
 * an earlier one no more tasks begin. newest: the complete checkpoint of the highest step; NULL:
 * none. An incomplete checkpoint that has all its shards and is newer than that is kept, because
 * committing it again publishes it.
 */
void keep_decide_incomplete(const struct checkpoint *item, uint64_t newest_attempt, uint64_t begun,
	const struct checkpoint *newest, struct keep_decision *decision);

#endif
