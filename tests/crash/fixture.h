/* SPDX-License-Identifier: MIT */
/*
 * A store in a directory of its own that is put into a known state again and again, and looked at
 * as a whole. The files keep their inodes, so that the queue of this machine lives on, too: what a
 * fault leaves in it is met by the next.
 */
#ifndef FAULTS_FIXTURE_H
#define FAULTS_FIXTURE_H

#include "base/text.h"
#include "store/store.h"

enum state {
	STATE_NOTHING, /* no store */
	STATE_FULL,    /* keys of all sizes, deleted ones: the next deletion makes some forgotten */
	STATE_HOT,     /* the same after a writer was killed in the middle of its commit */
	STATES,
};

struct fixture {
	char directory[64];
	char database[80];
	char url[160];
	char page[128]; /* of the machine; empty: not known yet */
	bool unclean;	/* what fixture_restore found wrong */
};

/* parameters: "", "?assume=shared" and the like, or "token". Exits where that fails: nothing can be
 * tested. */
void fixture_make(struct fixture *fixture, const char *parameters);
void fixture_restore(struct fixture *fixture, enum state state);
void fixture_remove(struct fixture *fixture);

/* Put and delete what STATE_FULL has; for making STATE_HOT: what the killed writer was at. */
enum status fixture_change(struct store *store, bool *known, struct error *err);

/*
 * All keys, values and revisions, what is
 * remembered of deleted ones, and the beats, in lines; without revisions too, for comparing what
 * was done twice. STATUS_NO: there is no store. Takes at most patience milliseconds.
 */
enum status fixture_inspect(const struct fixture *fixture, int64_t patience, struct text *lines,
	struct text *without_revisions, struct error *err);

/* The name of a file that does not belong to a store at rest, or NULL. */
const char *fixture_stranger(const struct fixture *fixture);

#endif
