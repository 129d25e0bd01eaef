/* SPDX-License-Identifier: MIT */
/*
 * Whether the training of one task advances: pure functions of what its agent reads on the board.
 * Time counts only while the agent runs, does not hold the training, and gets answers from the
 * store: a pause of the machine, an agreement, or a filesystem that stalls during a save is no
 * hang. Time counts, too, once the others must have given the task up (cut_off_given_up).
 *
 * The training process says in which section of its work it is (preempt_section NAME). Unless it
 * does, it is in `setup` before its first preempt_step, then in `warm-up` for two steps, then in
 * `step`. Each section may have a limit of its own.
 */
#ifndef LIVE_PROGRESS_H
#define LIVE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PROGRESS_NAME	  32 /* bytes of a section's name, with its NUL */
#define PROGRESS_SECTIONS 16
#define PROGRESS_SETUP	  "setup"
#define PROGRESS_TRAINING "step"
#define PROGRESS_WARM_UP  "warm-up" /* the first steps, in which a program may be compiled */

/* How long a section may go without a change, and the longest time that was seen. */
struct progress_section {
	char name[PROGRESS_NAME]; /* "step" is the training itself */
	int64_t limit;		  /* ms; 0: none of its own */
	int64_t longest;	  /* ms without a change, the most that was seen; 0: not known */
};

struct progress_rules {
	int64_t limit; /* ms without a change of the step; 0: none. With learn: the least limit */
	bool learn;    /* limits are PROGRESS_FACTOR times the longest seen in any attempt so far */
	struct progress_section sections[PROGRESS_SECTIONS];
	size_t count;
};
#define PROGRESS_LEAST	60000 /* ms: the least learned limit if progress_rules.limit is 0 */
#define PROGRESS_FACTOR 5

/* Add "NAME=D". STATUS_USAGE: text has another form, or there are too many. */
enum status progress_add_section(struct progress_rules *rules, const char *text, struct error *err);

/* The section of that name, added if it is missing. NULL: no room. */
struct progress_section *progress_section(struct progress_rules *rules, const char *name);

/* Add what other rules have learned. Return true if `longest` of any section grew. */
bool progress_merge(struct progress_rules *rules, const struct progress_rules *learned);

/* One reading of the board. */
struct progress_reading {
	int64_t now;
	bool counts;  /* the time since the last reading counts (above) */
	bool started; /* the training has called preempt_step */
	uint64_t step;
	const char *section; /* as the board has it; "": none */
	int64_t written;     /* changes each time a section is reported, even the same one again */
};

struct progress {
	bool any; /* one reading was taken in */
	bool started;
	uint64_t step;
	uint64_t advances; /* times that the step was seen to change */
	char section[PROGRESS_NAME];
	int64_t written;
	int64_t looked_at;
	int64_t standing; /* ms that count since the last change */
};

/* Take in one reading, and note in rules what is learned. True: the training hangs. */
bool progress_observe(
	struct progress *p, struct progress_rules *rules, const struct progress_reading *look);

/*
 * The limit that holds now, ms; 0: none. It is the section's own limit, or in "warm-up" that of
 * "step". If there is none: with learn, PROGRESS_FACTOR times the longest time seen, but not below
 * the least limit (0 if no time was seen); without learn, rules->limit, except in "setup".
 */
int64_t progress_limit(const struct progress *p, const struct progress_rules *rules);

/* Return true if any limit is given, or if limits are learned. */
bool progress_is_wanted(const struct progress_rules *rules);

#endif
