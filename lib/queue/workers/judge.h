/* SPDX-License-Identifier: MIT */
/*
 * Whether a worker is dead, by observations (docs/design.md, section 5): pure functions of what was
 * read and of one's own clock, never of the wall clock.
 *
 * One observation of silence is: a beat of our own was written since the last one, then the other's
 * was read unchanged, at least a period (ours, or its own if that is longer) after the last one.
 * Its limit of them in a row is death. So whatever stops the observer, too (a filesystem that
 * stalls, a suspended machine, a pause), makes nobody look dead.
 */
#ifndef QUEUE_WORKERS_JUDGE_H
#define QUEUE_WORKERS_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was read of one, and by whom. */
struct judge_reading {
	enum judge_seen {
		JUDGE_BEAT,
		JUDGE_NOTHING, /* there is none yet: silence, too, since it wrote one to register */
		JUDGE_ERROR,   /* could not be read: says nothing */
	} seen;
	uint64_t token, sequence; /* of the beat */
	bool gone;		  /* its process was on this machine, and does not exist any more */
	bool fenced;		  /* somebody has judged it already */
	bool paused;		  /* the observer was stopped itself since its last look */
	uint64_t written;	  /* beats that the observer has written */
	int64_t now;		  /* of any clock that does not jump, before reading; ms */
	int64_t took;		  /* ms that reading took */
	int64_t period;		  /* the longer one of the two */
	uint64_t limit;		  /* of whom is judged */
};

enum judge_verdict {
	JUDGE_ALIVE,
	JUDGE_LATE, /* observed silent, but not often enough */
	JUDGE_DEAD,
};

/* What is remembered of one. Zeroed but for its token: nothing is known. */
struct judged {
	char token[17];
	bool known;  /* was looked at */
	bool proved; /* was seen to change from one look to the next */
	enum judge_verdict verdict;
	uint64_t seen_token, seen_sequence; /* of its beat */
	uint64_t silent;		    /* observations in a row */
	uint64_t own;			    /* our beats at the last observation */
	int64_t at;			    /* of the last observation */
	int64_t changed;		    /* when it was last seen to change, or first */
};

/* Take in one reading. */
enum judge_verdict judge_observe(struct judged *judged, const struct judge_reading *reading);

/* Who reads whom, and who acts: workers in the order of their beat numbers. */
#define JUDGE_UNPROVED 8 /* that one who looks for the monitor passes by in one look */
#define JUDGE_DEPUTY   5 /* observations beyond the limit after which anybody fences */

/* Whether to fence one that was answered to be dead: the monitor does, anybody where it does not.
 */
bool judge_may_fence(
	const struct judged *judged, const struct judge_reading *reading, bool monitor);

#endif
