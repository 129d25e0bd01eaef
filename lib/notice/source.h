/* SPDX-License-Identifier: MIT */
/*
 * A source of notices, opened by its specification "KIND:REST". Each kind has a file and a const
 * struct (source_signal.c, source_file.c, source_command.c); source.c has the list of them.
 *
 * A caller opens its sources, then waits with poll(2) on each source_descriptor for reading and
 * until the earliest source_due, and calls source_check (source_set.h does this for several). No
 * call blocks. "Could not ask" is not "none": it is SOURCE_CANNOT_ASK with an error, and asking
 * goes on.
 *
 * Each event gives one notice. A file gives another only after it was gone or replaced, a command
 * only after it answered no, or gives another reason.
 */
#ifndef NOTICE_SOURCE_H
#define NOTICE_SOURCE_H

#include <signal.h>
#include <stdbool.h>

#include "base/text.h"
#include "notice/notice.h"

enum source_answer {
	SOURCE_NONE,	   /* asked: there is no notice, or no new one */
	SOURCE_NOTICE,	   /* the notice is filled */
	SOURCE_CANNOT_ASK, /* the error is filled */
	SOURCE_PENDING,	   /* no request ended in this call: not known yet */
	SOURCE_WARNING,	   /* the error is filled: the answer cannot be right */
};

/*
 * signal:TERM,USR1  any of these signals, each stamped with the time by a handler: reading it late
 *                   does not move its deadline. System calls are restarted where the kernel can;
 *                   poll(2) and its like end with EINTR. Unblocked in the calling thread.
 *                   INT is refused: it is no notice. Only one source at a time takes a signal
 * file:PATH         PATH exists; its first line is the reason. Its directory may not exist yet
 * command:TEXT      run by sh every period; exit 0: a notice, its first line of output is the
 *                   reason; 1: none; anything else, or running longer than the timeout: could not
 *                   ask. Its process group is killed when it ends
 * deadline:+2h|TIME the end of the machine; the notice comes earlier, by grace or up to 5 min
 * slurm:TERM,USR1   the job's end, asked from Slurm, and these signals, for which Slurm is asked
 *                   how much time is left; slurm alone is slurm:TERM,USR1
 * gce aws azure alibaba  their metadata servers (cloud.h); options and another base URL behind a
 *                   colon: aws:rebalance,http://127.0.0.1:8080. libcurl is loaded for them
 * grace: how long after a notice the machine goes away (ms); negative: not known. If a source
 * finds out that it goes earlier, that is used.
 */
struct source_options {
	int64_t grace;
	int64_t period;	 /* ms between two requests, for sources that have to ask; 0: 1 s, or the
			    source's own */
	int64_t timeout; /* ms that one request may take; 0: 10 s */
	int64_t since;	 /* the instant from which deadline:+2h counts; 0: the opening */
	bool beside;	 /* do not catch signals that a source without this has already */
};

/* What a kind of source is. */
struct source;
struct source_kind {
	const char *name;    /* the word before the colon */
	const char *example; /* for messages */
	bool bare;	     /* the name may stand alone; then rest is empty */
	/* Signals that it catches if rest is empty; else rest names them. NULL: none. */
	const char *signals;
	/* rest: the text after the colon; valid only during the call */
	enum status (*open)(struct source **source, const char *rest,
		const struct source_options *options, struct error *err);
	void (*close)(struct source *source); /* frees it */
	int (*descriptor)(const struct source *source);
	int64_t (*due)(const struct source *source);
	enum source_answer (*check)(
		struct source *source, int64_t now, struct notice *notice, struct error *err);
	/* source_take_held; NULL: never has one */
	bool (*take_held)(struct source *source, struct notice *notice);
};
/* The first member of each source. Without source_open, a source fills it itself. */
struct source {
	const struct source_kind *kind;
	char *name; /* malloc'd */
};

enum status source_open(struct source **source, const char *specification,
	const struct source_options *options, struct error *err);
/* NULL is legal. */
void source_close(struct source *source);

/* To be polled for reading; -1: none. May change after each source_check. */
int source_descriptor(const struct source *source);
/* The instant by which to call source_check in any case; CLOCK_NEVER: none. */
int64_t source_due(const struct source *source);
/* To be called when the descriptor is readable or the source is due; allowed at other times. */
enum source_answer source_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err);
/*
 * The notice of a signal that was caught, but not returned yet: source_check was not called since,
 * or Slurm has not answered yet. False: there is none. For a caller whose command has just ended,
 * or that is about to close the source.
 */
bool source_take_held(struct source *source, struct notice *notice);
/* Add an example of each kind to text: "signal:TERM,USR1, file:PATH, ..., azure". */
void source_list(struct text *text);

/* The signals that a source of this specification catches, "TERM,USR1"; NULL: none. */
const char *source_signals(const char *specification);
/* Add them to set; a word that is no signal adds nothing. */
void source_add_signals(const char *specification, sigset_t *set);
/* The specification it was opened with. */
const char *source_name(const struct source *source);

extern const struct source_kind source_signal, source_file, source_command, source_deadline,
	source_slurm, source_gce, source_aws, source_azure, source_alibaba;

#endif
