/* SPDX-License-Identifier: MIT */
/* What can be wrong with a history, and how it is reported. */
#ifndef HISTORY_FAULT_H
#define HISTORY_FAULT_H

#include "base/text.h"
#include "operations.h"

/* In the comments, A is fault.operation and B is fault.other. */
enum fault_kind {
	FAULT_NONE,
	FAULT_TWO_MAKERS,    /* A and B made the same revision */
	FAULT_NO_MAKER,	     /* no operation can have made a revision that A saw */
	FAULT_NEVER_WRITTEN, /* A read a value that no operation put */
	FAULT_REFUSED,	     /* A read the value of B, and B was told that nothing was changed */
	FAULT_TWICE,	     /* A read the value of B at a revision that B did not make */
	FAULT_FUTURE,	     /* A read a key of a later revision than the store had for A */
	FAULT_BACK,	     /* A was answered with a revision from before the base */
	FAULT_FAR,	     /* A was answered with a revision that is far too large */
	FAULT_ENTRY,	     /* A read a key wrongly; B changed it last */
	FAULT_MISSING,	     /* the list of A lacks a key; B put it */
	FAULT_ENTRIES,	     /* A was answered with entries that do not fit what it asked */
	FAULT_HELD,	     /* A was told wrongly whether its compares held */
	FAULT_UNCHANGED,     /* A must have made a revision, and could not change anything */
	FAULT_NOT_DELETED,   /* A deleted a key that is still there; B put it */
	FAULT_ORDER,	     /* A was answered before B was called, and A has the later revision */
	FAULT_WAIT_NOTHING,  /* the wait of A was answered, and nothing had changed */
	FAULT_WAIT_MISSED,   /* the wait of A says that nothing had changed; B changed it */
	FAULT_WAIT_LATE,     /* the wait of A does not know what B had been answered earlier */
};

struct fault {
	enum fault_kind kind;
	const struct operation *operation, *other; /* other: NULL: none */
	int key;
	store_revision revision; /* at which it went wrong */
	struct key_entry found;	 /* what was read */
	struct key_entry wanted; /* what it is at that revision */
	int64_t instant;
};

/* Add what is wrong, in sentences, and the operations concerned, one line for each property. */
void fault_say(struct text *text, const struct history *history, const struct fault *fault);

#endif
