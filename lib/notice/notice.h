/* SPDX-License-Identifier: MIT */
/*
 * A notice: "this machine goes away", with its source, reason, time of receipt and the time left,
 * if that is known. It can be written as one line of text or JSON, which preempt-watch pipes into
 * preempt-claim.
 *
 * Source and reason are UTF-8 without control characters, so that they can be printed and put into
 * a variable as they are: fill them by notice_set, which escapes control characters.
 */
#ifndef NOTICE_NOTICE_H
#define NOTICE_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct notice {
	char source[64];      /* "signal:TERM", "file:/run/drain", "command:...", "group" */
	int signal;	      /* the signal that was its source; 0: none, or not known */
	char reason[256];     /* for messages; may be empty */
	int64_t received_utc; /* ms; of a signal: when it was caught, not when it was read */
	int64_t received;     /* the same instant on our monotonic clock */
	int64_t deadline;     /* on our monotonic clock; CLOCK_NEVER: not known */
	/* For a notice that is a group's claim. run "": it is none, or of an unknown run. */
	struct notice_claim {
		char run[129];
		uint64_t attempt;
		bool by_task; /* false: claimed from outside the run */
		uint64_t task;
		char then[9]; /* what follows the save: exit, continue or stop */
	} claim;
};

/* An instant on both clocks. */
struct notice_time {
	int64_t now, utc;
};
struct notice_time notice_time(void);

/* Fill a notice that was received at `received`, grace ms (negative: not known) before the end. */
void notice_set(struct notice *notice, const char *source, const char *reason,
	struct notice_time received, int64_t grace);

/*
 * The deadline by which a group plans its saves; CLOCK_NEVER: not known. It is CLOCK_NEVER, too, if
 * no time was left at receipt (--grace 0): then nothing is planned, and the group saves at once.
 */
int64_t notice_deadline(const struct notice *notice);

/*
 * One line, no newline: "2026-01-31T12:00:00.123Z signal:TERM left=30s reason text", or
 * "left=unknown". The time left counts from the time of receipt, so the line is the same whenever
 * it is written. In the source a blank is written \x20 and a backslash \x5c, so that blanks
 * separate columns.
 */
void notice_write_text(const struct notice *notice, struct text *line);
/*
 * {"utc":"2026-...Z","source":"signal:TERM","reason":"...","left_ms":30000}; no left_ms: not
 * known. The claim of a group also has "run", "attempt", "then" and, if a task claimed, "task".
 */
void notice_write_json(const struct notice *notice, struct text *line);

/*
 * Read a line of text or JSON, with or without a newline; STATUS_USAGE: it is no notice. The time
 * since receipt is computed from the wall clock and never below 0: a line from a machine whose
 * clock is ahead counts as received now.
 */
enum status notice_read(const char *line, struct notice *notice, struct error *err);

#endif
