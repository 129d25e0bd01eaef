/* SPDX-License-Identifier: MIT */
/*
 * Sums over the tasks of a view. An agent needs them many times between two changes, and in a large
 * job a loop over all tasks each time takes most of its processor time: so the view may cache them.
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
	uint64_t least;	  /* the smallest step */
	uint64_t most;	  /* the largest step */
	uint64_t stride;  /* the fewest steps between two boundaries */
	int64_t longest;  /* the longest time between two boundaries, ms */
};

/* The saves of the members of the newest decision. */
struct agreement_saves {
	uint64_t members, saved; /* how many there are, and how many have saved as the view shows */
	uint64_t low, high;	 /* the least and the greatest step at which they have */
};
struct agreement_saves agreement_count_saves(const struct agreement_view *view);

/* Return the sums of the view as it is now, from its cache if that is known. */
struct agreement_tally agreement_tally(const struct agreement_view *view);

#endif
