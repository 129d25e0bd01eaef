/* SPDX-License-Identifier: MIT */
/*
 * The operations of a history, sorted by the revision at which each was answered, and what can be
 * said about each revision before it is walked through. A level is a revision less the base.
 */
#ifndef HISTORY_LEVELS_H
#define HISTORY_LEVELS_H

#include "fault.h"
#include "operations.h"

struct levels {
	const struct history *history;
	size_t last; /* level */
	/* The operations answered at level l are members[first[l]] to members[first[l + 1] - 1]. */
	const struct operation **members;
	size_t *first;
	/*
	 * The operation that certainly made the level: its answer said so, or its value was read.
	 * NULL: not known.
	 */
	const struct operation **maker;
	int64_t *least_back; /* of all operations of this level and later ones */
	int32_t *untouched;  /* [key * (last + 2) + level] > 0: certainly no change of this key */
	store_revision *made_by; /* for each operation: the revision that it certainly made, or 0 */
	/* Operations of unknown outcome whose values were not read: some changed something. */
	const struct operation **unknown;
	size_t unknown_count;
	size_t may_write_unknown; /* with those whose values were read */
	struct fault fault;
};

/* False: levels->fault says what is wrong. To be released with levels_release in any case. */
bool levels_make(struct levels *levels, const struct history *history);
void levels_release(struct levels *levels);

/* Whether an operation puts or deletes in that branch. */
bool operation_has(const struct history *history, const struct operation *operation, bool otherwise,
	enum store_op_kind kind);

#endif
