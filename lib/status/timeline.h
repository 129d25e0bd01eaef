/* SPDX-License-Identifier: MIT */
/*
 * Draw attempts, with a lane for each task that shows what it did, as one SVG or HTML page that
 * needs no other file. Pure: all inputs, also the time, are arguments. Times are UTC milliseconds.
 * Strings may hold any bytes and belong to the caller.
 */
#ifndef STATUS_TIMELINE_H
#define STATUS_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum timeline_phase {
	PHASE_TRAIN,
	PHASE_HOLD,  /* from the task's report to the decision */
	PHASE_REACH, /* the task trains on to the agreed step */
	PHASE_SAVE,
	PHASE_STAY, /* the task has saved, and stays until all have */
	PHASE_KINDS,
};

struct timeline_span {
	enum timeline_phase phase;
	uint64_t task; /* spans are sorted by it */
	int64_t from, to;
};

enum timeline_event {
	EVENT_REPORT,
	EVENT_ACK,
	EVENT_SAVED,
	EVENT_EXIT,
	EVENT_DEAD,
	EVENT_KINDS,
};

struct timeline_mark {
	enum timeline_event event;
	uint64_t task; /* marks are sorted by it */
	int64_t at;
	uint64_t step;
	bool has_step;
};

/* A line through all lanes: the claim, the decision, ... */
struct timeline_line {
	int64_t at;
	char label[64];
};

struct timeline_lane {
	const char *host, *state;
	bool bad; /* a user should look at this task */
};

struct timeline_attempt {
	const char *run, *word;
	char why[640]; /* "claimed by task 2 on n3: signal:TERM"; may be empty */
	uint64_t number, tasks;
	bool agreed;
	uint64_t step;		    /* the agreed step */
	int64_t began, ended;	    /* ended: if it still runs, when the store was read */
	int64_t zoom_from, zoom_to; /* the part that is drawn large; equal: the whole attempt */
	int64_t called;	  /* since when phases count: the notice, or the opening of a later round */
	int64_t deadline; /* 0: none */
	struct timeline_lane *lanes; /* [tasks] */
	struct timeline_span *spans;
	struct timeline_mark *marks;
	struct timeline_line *lines;
	size_t span_count, mark_count, line_count;
};

/* Append a page of these attempts; attempts[0] is drawn at the top. */
void timeline_add_svg(struct text *text, const struct timeline_attempt *attempts, size_t count);
/* The same drawing, and for each attempt a table with the durations of its phases. */
void timeline_add_html(struct text *text, const struct timeline_attempt *attempts, size_t count);

/* For both, and for tests: */

/* Return the ms between two ticks, of which a time of this length has about `most` at most. */
int64_t timeline_tick(int64_t length, int most);
/* Add a duration: "250 ms", "1.5 s", "2 min 5 s", "3 h 20 min". */
void timeline_add_time(struct text *text, int64_t milliseconds);
/* Add any bytes as XML; bytes that XML cannot hold are escaped as by text_escape. */
void timeline_add_xml(struct text *text, const char *string);

#endif
