/* SPDX-License-Identifier: MIT */
/*
 * Draw attempts, a lane per task with what it did, as one SVG or HTML page that needs no other
 * file. Pure: all inputs, also the time, are arguments. All times are UTC milliseconds; strings may
 * hold any bytes and belong to the caller.
 */
#ifndef STATUS_TIMELINE_H
#define STATUS_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum timeline_phase {
	PHASE_TRAIN,
	PHASE_HOLD,  /* from its report to the decision */
	PHASE_REACH, /* it trains on to the agreed step */
	PHASE_SAVE,
	PHASE_STAY, /* it has saved, and stays until all have */
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
	int64_t began, ended;	    /* ended, while it runs: the time of the reading */
	int64_t zoom_from, zoom_to; /* the part that is drawn large; equal: the whole attempt */
	int64_t called;		    /* the notice, or the round's opening: phases count from here */
	int64_t deadline;	    /* 0: none */
	struct timeline_lane *lanes; /* [tasks] */
	struct timeline_span *spans;
	struct timeline_mark *marks;
	struct timeline_line *lines;
	size_t span_count, mark_count, line_count;
};

/* Append the page of these attempts, the newest first. */
void timeline_add_svg(struct text *text, const struct timeline_attempt *attempts, size_t count);
/* The same drawing, and for each attempt a table of how long the phases took. */
void timeline_add_html(struct text *text, const struct timeline_attempt *attempts, size_t count);

/* For both, and for tests: */

/* ms between two ticks, so that there are at most `most` in a time of this length. */
int64_t timeline_tick(int64_t length, int most);
/* A duration: "250 ms", "1.5 s", "2 min 5 s", "3 h 20 min". */
void timeline_add_time(struct text *text, int64_t milliseconds);
/* Any bytes, as XML; bytes that XML cannot hold are escaped as by text_escape. */
void timeline_add_xml(struct text *text, const char *string);

#endif
