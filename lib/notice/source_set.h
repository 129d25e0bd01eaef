/* SPDX-License-Identifier: MIT */
/*
 * Several sources side by side: a source that cannot be asked never stops the others. A zeroed
 * struct source_set is empty.
 *
 *	source_set_add(...);
 *	for (;;) {
 *		source_set_watch(&set, &loop);
 *		loop_wait(&loop);
 *		while (source_set_take(&set, &notice))
 *			...
 *	}
 */
#ifndef NOTICE_SOURCE_SET_H
#define NOTICE_SOURCE_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/loop.h"
#include "notice/source.h"

enum { SOURCE_SET_SOURCES = 64 };

struct source_set {
	struct {
		struct source *source;
		unsigned failures;	   /* in a row */
		enum source_answer answer; /* the last one; at first SOURCE_PENDING */
	} sources[SOURCE_SET_SOURCES];
	size_t count;
	size_t next; /* index of the source to check next in this round */
	bool all;    /* this round also checks sources that are neither ready nor due */
};

enum source_set_event {
	SOURCE_SET_END,	   /* all were checked: wait, then begin the next round */
	SOURCE_SET_NOTICE, /* the notice is filled */
	SOURCE_SET_BACK,   /* after SOURCE_SET_LOST: the source answers again */
	/* With the next events, the error is filled. */
	SOURCE_SET_DOUBT,   /* failed once or twice in a row: may be temporary */
	SOURCE_SET_LOST,    /* failed three times in a row: report it; retries continue */
	SOURCE_SET_WARNING, /* a source got an answer that cannot be right: report it */
};

/* Takes ownership of source. STATUS_USAGE: the set is full; source is closed. */
enum status source_set_add(struct source_set *set, struct source *source, struct error *err);
/* Closes all. A zeroed set is legal. */
void source_set_release(struct source_set *set);

/* Let the next wait of this loop end when a source has to be asked. Call this before each wait:
 * a source may have another descriptor after each look. */
void source_set_watch(const struct source_set *set, struct loop *loop);
/* When the first notice comes that is known of now; CLOCK_NEVER: none is. */
int64_t source_set_expects(const struct source_set *set);
/* The next event of this round; *which is the index of its source. */
enum source_set_event source_set_next(
	struct source_set *set, size_t *which, struct notice *notice, struct error *err);
/* Print the event, except a notice or the end (SOURCE_SET_DOUBT only with -v). */
void source_set_say(enum source_set_event event, const char *name, const struct error *err);
/* Take the next notice of this round; print other events. False: there is none. */
bool source_set_take(struct source_set *set, struct notice *notice);
/* Take a notice that a source holds (source_take_held). False: there is none. */
bool source_set_take_held(struct source_set *set, struct notice *notice);

#endif
