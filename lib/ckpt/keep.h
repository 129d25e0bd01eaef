/* SPDX-License-Identifier: MIT */
/*
 * Which checkpoints stay: a function of the checkpoints, the rules, the time and the free space,
 * and of nothing else. Everything goes by rising step; "older" is of a lower step.
 *
 * A checkpoint is kept if any rule keeps it. Whatever the rules, these stay:
 *   the newest complete one (the highest step);
 *   the complete one committed last (after a reset to an earlier step it is not the newest);
 *   what is pinned;
 *   whatever is not ours, could not be read, or of which it is not known whether it is complete.
 * Only complete ones count for a rule, and are kept by one; what --keep-step names stays in any
 * state. A bad or damaged one goes when a complete one is newer, under --keep-last N when N are;
 * until then it is evidence, and perhaps all there is.
 *
 * Then, while the kept ones are larger than a limit allows, the oldest of them that nothing above
 * and no rule of "must" protects goes. With limits and no rule every complete one is kept at first.
 *
 * Without limits, to decide again on what was kept, at the same time, keeps all of it.
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

/* A rule with the number 0 is not given. */
struct keep_policy {
	uint64_t last;	      /* the newest so many */
	uint64_t every_steps; /* each whose step is divisible by it; step 0 is */
	/*
	 * Milliseconds. The first, then each committed at least so much later than the last one
	 * that this rule kept; also one that seems older than that: a clock went backwards.
	 */
	int64_t every;
	int64_t within; /* milliseconds: each committed so short before now, or after it */
	/*
	 * Of each of the newest so many days, weeks (from Monday) or months of UTC in which one was
	 * committed: the one committed last; of equal times the one of the highest step.
	 */
	uint64_t daily, weekly, monthly;
	uint64_t best; /* the best so many by metric; of equal ones the newer */
	const char *metric;
	bool highest;	 /* greater is better */
	bool unmeasured; /* each that has no (finite) value of metric */
	const uint64_t *steps;
	size_t step_count;
	unsigned must;	    /* enum keep_rule: what they keep no limit takes */
	uint64_t max_bytes; /* all kept ones together; 0: no such limit */
	uint64_t min_free;  /* bytes to be free on the filesystem; 0: no such limit */
};

/* The rules that are given, of enum keep_rule. */
unsigned keep_rules(const struct keep_policy *policy);
/* The name of one rule. */
const char *keep_rule_name(enum keep_rule rule);
/* Add those of a list "keep-last,keep-best" or "all" (of those given so far) to must. */
enum status keep_read_must(struct keep_policy *policy, const char *text, struct error *err);
/* Add those of a list "100,200" to steps, of which *count of capacity are there. */
enum status keep_read_steps(
	const char *text, uint64_t *steps, size_t capacity, size_t *count, struct error *err);
/* STATUS_USAGE: the rules say nothing, or not what is meant. */
enum status keep_check(const struct keep_policy *policy, struct error *err);

/* The world at the moment of the decision. */
struct keep_moment {
	int64_t now;   /* milliseconds since 1970 */
	uint64_t free; /* bytes that may still be written; only for min_free */
};

struct keep_decision {
	bool keep;
	bool must;	/* kept, and no limit takes it */
	unsigned rules; /* enum keep_rule: those that keep it */
	char why[192];
};

/*
 * items by strictly rising step, none CHECKPOINT_INCOMPLETE; decisions has as many places. A time
 * of 0 is not known: no rule about time removes it. False: a limit is not met although all went
 * that may go.
 */
bool keep_decide(const struct keep_policy *policy, const struct keep_moment *moment,
	const struct checkpoint *const *items, size_t count, struct keep_decision *decisions);

/*
 * STATUS_USAGE: --keep-best compares by a metric that none of these has, so that it would keep
 * nothing; err names the metrics that they have. STATUS_OK: one has it, or unmeasured ones are
 * kept, or none is complete, so that nothing is there to compare.
 */
enum status keep_check_metric(const struct keep_policy *policy,
	const struct checkpoint *const *items, size_t count, struct error *err);

/*
 * Whether a directory stays that is or was being written. newest_attempt: the highest attempt of
 * a complete checkpoint of the same line of lives (base/process/life.h); 0: none. An attempt is
 * over when a later one has saved (attempts follow one another), unless it is a copy; attempt 0
 * means that they are not counted. newest: the complete one of the highest step, NULL: none is. A
 * whole one that is newer stays: to commit it again publishes it.
 */
void keep_decide_incomplete(const struct checkpoint *item, uint64_t newest_attempt,
	const struct checkpoint *newest, struct keep_decision *decision);

#endif
