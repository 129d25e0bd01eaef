/* SPDX-License-Identifier: MIT */
/*
 * Which checkpoints stay: a function of what there is and of the rules, and of nothing else.
 *
 * A checkpoint is kept if any rule keeps it. Whatever the rules, these stay:
 *   the newest complete one (the highest step);
 *   the complete one committed last (after a reset to an earlier step it is not the newest);
 *   whatever is not ours, or could not be read.
 * Only complete ones count towards a number. A damaged one goes when as many complete ones are
 * newer as the rules want; until then it is evidence, and perhaps all there is.
 */
#ifndef CKPT_KEEP_H
#define CKPT_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

struct keep_policy {
	uint64_t last; /* --keep-last: at least 1 */
};

struct keep_verdict {
	bool keep;
	char why[96];
};

/*
 * items by strictly rising step, none CHECKPOINT_INCOMPLETE; verdicts has as many places.
 */
void keep_decide(const struct keep_policy *policy, const struct checkpoint *items, size_t count,
	struct keep_verdict *verdicts);

/*
 * What becomes of a directory that is or was being written. newest_attempt: the highest attempt of
 * a complete checkpoint; 0: none. An attempt is over when a later one has saved (attempts follow
 * one another); attempt 0 means that nobody counts them.
 */
void keep_decide_incomplete(
	const struct checkpoint *item, uint64_t newest_attempt, struct keep_verdict *verdict);

#endif
