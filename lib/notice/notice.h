/* SPDX-License-Identifier: MIT */
/*
 * A notice: "this machine goes away". Where it came from, why, when it was received and how much
 * time is left, if that is known. One line of text or JSON each way, so that preempt-watch can pipe
 * it into preempt-claim.
 */
#ifndef NOTICE_NOTICE_H
#define NOTICE_NOTICE_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct notice {
	char source[64];  /* "signal:TERM", "file:/run/drain", "command:...", "group" */
	char reason[256]; /* for people; may be empty */
	int64_t received_utc; /* ms: when the signal was caught, not when somebody asked */
	int64_t received;     /* the same instant on our monotonic clock */
	int64_t deadline;     /* on our monotonic clock; CLOCK_NEVER where it is not known */
};

/* One line, no newline: "2026-01-31T12:00:00.123Z signal:TERM left=30s reason text". */
void notice_write_text(const struct notice *notice, struct text *line);
void notice_write_json(const struct notice *notice, struct text *line);

/* Either form; STATUS_USAGE with a reason where it is neither. */
enum status notice_read(const char *line, struct notice *notice, struct error *err);

#endif
