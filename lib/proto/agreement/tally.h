/* SPDX-License-Identifier: MIT */
/*
 * What the tasks of a view add up to. An agent asks this many times between two changes, and in a
 * large job looking at each task every time takes most of its processor time: so the view may keep
 * the answer.
 */
#ifndef PROTO_AGREEMENT_TALLY_H
#define PROTO_AGREEMENT_TALLY_H

#include <stdbool.h>
#include <stdint.h>

struct agreement_view;

struct agreement_tally {
	bool known;	  /* false: the view has changed since */
	uint64_t reports; /* of the newest round */
	uint64_t awaited; /* tasks that count, and whose report is not there */
	uint64_t unsaved; /* members that count, and whose save is not there */
	/* Of the reports of tasks that train: */
	uint64_t least;	 /* the smallest, */
	uint64_t most;	 /* and the largest step, */
	uint64_t stride; /* the smallest distance of two boundaries, */
	int64_t longest; /* and the longest way between them, ms */
};

/* Of this view, as it is now. */
struct agreement_tally agreement_tally(const struct agreement_view *view);

#endif
