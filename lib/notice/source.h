/* SPDX-License-Identifier: MIT */
/*
 * A source of notices, by its specification "KIND:REST". One file and one const struct each
 * (source_signal.c, source_file.c, source_command.c), and one list of them in source.c.
 *
 * A caller opens its sources, then waits with poll(2) on each source_descriptor for reading and
 * until the earliest source_due, and calls source_check. No call blocks.
 * "Could not ask" is not "none": it is SOURCE_CANNOT_ASK with an error, and asking goes on.
 */
#ifndef NOTICE_SOURCE_H
#define NOTICE_SOURCE_H

#include "notice/notice.h"

struct source;

enum source_answer { SOURCE_NONE, SOURCE_NOTICE, SOURCE_CANNOT_ASK };

/*
 * signal:TERM,USR1  any of these signals; they are blocked in the calling thread from now on (open
 *                   before starting threads)
 * file:PATH         PATH exists; its first line is the reason
 * command:TEXT      run by sh every period; exit 0: a notice, its first line of output is the
 *                   reason; 1: none; anything else, or running longer than the timeout: could not ask
 * grace: how long after a notice the machine goes away (ms); negative: not known.
 */
struct source_options {
	int64_t grace;
	int64_t period;  /* ms between two looks, for those that have to look; 0: their default */
	int64_t timeout; /* ms that one look may take; 0: their default */
};
enum status source_open(struct source **source, const char *specification,
	const struct source_options *options, struct error *err);
void source_close(struct source *source);

/* To be polled for reading; -1: none. May change after each source_check. */
int source_descriptor(const struct source *source);
/* The instant at which source_check wants to be called in any case; CLOCK_NEVER: none. */
int64_t source_due(const struct source *source);
enum source_answer source_check(struct source *source, int64_t now, struct notice *notice,
	struct error *err);
/* The specification it was opened with. */
const char *source_name(const struct source *source);

#endif
