/* SPDX-License-Identifier: MIT */
/*
 * Several sources side by side, so that one which cannot be asked never stops the others. A zeroed
 * struct watch is empty.
 *
 *	watch_add(...);
 *	for (;;) {
 *		struct pollfd polls[WATCH_SOURCES];
 *		size_t count = watch_poll(&watch, polls);
 *		poll(polls, count, clock_poll_timeout(watch_due(&watch)));
 *		watch_begin(&watch, polls);
 *		while ((event = watch_next(&watch, &which, &notice, &err)) != WATCH_END)
 *			...
 *	}
 */
#ifndef NOTICE_WATCH_H
#define NOTICE_WATCH_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "notice/source.h"

enum { WATCH_SOURCES = 64 };

struct watch {
	struct {
		struct source *source;
		unsigned failures;	   /* in a row */
		bool ready;		   /* its descriptor was readable */
		enum source_answer answer; /* the last one; at first SOURCE_PENDING */
	} sources[WATCH_SOURCES];
	size_t count;
	size_t next; /* to be checked in this round */
};

enum watch_event {
	WATCH_END,    /* all were checked: poll again */
	WATCH_NOTICE, /* the notice is filled */
	/* The error is filled: */
	WATCH_DOUBT, /* failed once or twice in a row: may be temporary */
	WATCH_LOST,  /* failed three times in a row: report it; retries continue */
	WATCH_BACK,  /* after WATCH_LOST: it answers again */
	/* The error is filled: report it. A source received an answer that cannot be right. */
	WATCH_WARNING,
};

/* Takes source over. STATUS_USAGE when there are too many; then it is closed. */
enum status watch_add(struct watch *watch, struct source *source, struct error *err);
/* Closes all. A zeroed watch is legal. */
void watch_release(struct watch *watch);

/* Fill polls[] (WATCH_SOURCES long), one for each source, in order; their number. */
size_t watch_poll(const struct watch *watch, struct pollfd *polls);
/* The instant until which to poll; CLOCK_NEVER: no limit. */
int64_t watch_due(const struct watch *watch);
/* Start a round with what poll(2) answered. */
void watch_begin(struct watch *watch, const struct pollfd *polls);
/* The next event of this round; *which is its source's index. */
enum watch_event watch_next(
	struct watch *watch, size_t *which, struct notice *notice, struct error *err);
/* A notice that one of them has caught, but not given yet (source_take_held). False: none has. */
bool watch_take_held(struct watch *watch, struct notice *notice);
/* Whether pid is the child of one of the sources: watch_next reaps it. */
bool watch_owns(const struct watch *watch, pid_t pid);

#endif
