/* SPDX-License-Identifier: MIT */
/*
 * Whether a key store as store/store.h describes it can have given the answers of a history. Every
 * change has a revision of its own, one more than the change before, and every answer says at which
 * revision the store was. So the revisions order all acknowledged operations, and what is left to
 * check is one walk through them:
 * - each revision is made by one operation, and its compares, its reads and what it was told agree
 *   with the keys before it;
 * - each other operation that was answered at that revision saw exactly the keys of it: all keys of
 *   a list at one revision, each compare, each delete that found nothing, each wait;
 * - the order of the revisions agrees with the clock: no operation was answered before another was
 *   called that has an earlier revision;
 * - where a wait timed out and says that nothing was newer at an instant, no operation had been
 *   answered by then at the next change under its prefix, or later.
 * This is strict: one order of all keys, not one for each.
 *
 * In a store whose server has other users, too, a revision may change nothing here
 * (history->shared).
 *
 * An operation of unknown outcome may have made a revision that no acknowledged one made, at any
 * instant after its call. A value that was read says which one it was; else all of them are tried,
 * depth first, and no state twice.
 */
#ifndef HISTORY_CHECK_H
#define HISTORY_CHECK_H

#include "base/text.h"
#include "operations.h"

/*
 * A store remembers deletions of this many revisions, at least (store/sqlite/compact.c; the store
 * in memory remembers all). It may answer a wait from further back at once, though nothing has
 * changed.
 */
#define CHECK_REMEMBERED 512

/*
 * A wait of at least this many nanoseconds must have seen what was acknowledged before its call.
 * A shorter one may end before the store has looked.
 */
#define CHECK_LONG_WAIT ((int64_t)60 * 1000000000)

enum verdict_kind {
	LINEARIZABLE,
	VIOLATED,
	UNDECIDED, /* the search was given up */
};

struct verdict {
	enum verdict_kind kind;
	struct text words;  /* what is wrong, and the operations concerned; empty: nothing */
	size_t revisions;   /* made since the base */
	size_t unknown;	    /* operations of unknown outcome that may have changed something */
	size_t took_effect; /* how many of them did */
	int64_t steps;	    /* revisions walked through, with those of the search */
};

/* most: steps after which the search is given up. To be released with verdict_release. */
void check_history(const struct history *history, int64_t most, struct verdict *verdict);
void verdict_release(struct verdict *verdict);

#endif
