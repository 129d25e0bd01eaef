/* SPDX-License-Identifier: MIT */
/*
 * A source of notices, opened by its specification "KIND:REST". Each kind has a file and a const
 * struct (source_signal.c, source_file.c, source_command.c); source.c has the list of them.
 *
 * A caller opens its sources, then waits with poll(2) on each source_descriptor for reading and
 * until the earliest source_due, and calls source_check (source_set.h does this for several). No
 * call blocks. A source that could not ask does not answer SOURCE_NONE but SOURCE_CANNOT_ASK with
 * an error, and asks again later.
 *
 * Each event gives one notice. A file gives another notice only after it was gone or replaced; a
 * command only after it ended with 1, or if its reason has changed.
 */
#ifndef NOTICE_SOURCE_H
#define NOTICE_SOURCE_H

#include <signal.h>
#include <stdbool.h>

#include "base/text.h"
#include "notice/notice.h"
#include "platform/platform.h"

enum source_answer {
	SOURCE_NONE,	   /* asked: there is no notice, or no new one */
	SOURCE_NOTICE,	   /* the notice is filled */
	SOURCE_CANNOT_ASK, /* the error is filled */
	SOURCE_PENDING,	   /* no request ended in this call: not known yet */
	SOURCE_WARNING,	   /* the error is filled: the source got an answer that cannot be right */
};

/*
 * signal:TERM,USR1  any of these signals, each stamped with the time by a handler: reading it late
 *                   does not move its deadline. System calls are restarted where the kernel can;
 *                   poll(2) and its like end with EINTR. The signals are unblocked in the calling
 *                   thread. A signal that an open source has already stays with it
 * file:PATH         PATH exists; its first line is the reason. Its directory may not exist yet
 * command:TEXT      run by sh every period; exit 0: a notice, its first line of output is the
 *                   reason; exit 1: none; another code, or a timeout: the source could not ask.
 *                   When the command ends, the rest of its process group is killed
 * deadline:+2h|TIME the end of the machine; the notice comes earlier (notice_lead)
 * slurm:TERM,USR1   the job's end, which Slurm is asked for, and these signals: at each, Slurm
 *                   is asked how much time is left; slurm alone has NOTICE_SIGNALS
 * gce aws azure alibaba  their metadata servers (cloud.h); options and another base URL follow a
 *                   colon: aws:rebalance,http://127.0.0.1:8080. Opening loads libcurl
 * grace: how long after a notice the machine goes away (ms); negative: not known. A source that
 * learns of an earlier end uses that.
 */
struct source_options {
	int64_t grace;
	int64_t period;	 /* ms between two requests, for sources that have to ask; 0: the kind's
			    own, usually 1 s */
	int64_t timeout; /* of command: ms that one run may take; 0: 10 s */
	int64_t since;	 /* the instant from which deadline:+2h counts; 0: the opening */
};

/* A kind of source. */
struct source;
struct source_kind {
	const char *name;    /* the word before the colon */
	const char *example; /* for messages */
	bool bare;	     /* a specification without a colon is allowed; then rest is empty */
	/* The signals that it catches if rest is empty; otherwise rest names them. NULL: none. */
	const char *signals;
	/* rest: the text after the colon; valid only during the call */
	enum status (*open)(struct source **source, const char *rest,
		const struct source_options *options, struct error *err);
	void (*close)(struct source *source); /* frees it */
	int (*descriptor)(const struct source *source);
	int64_t (*due)(const struct source *source); /* NULL: never */
	enum source_answer (*check)(
		struct source *source, int64_t now, struct notice *notice, struct error *err);
	/* source_take_held; NULL: it never holds a notice */
	bool (*take_held)(struct source *source, struct notice *notice);
	int64_t (*expects)(const struct source *source); /* source_expects; NULL: never */
};
/* The first member of each source. source_open or lib/agent/source_group.c fills it. */
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
/* Call it when the descriptor is readable or the source is due; other times are allowed, too. */
enum source_answer source_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err);
/*
 * Take the notice of a caught signal that source_check has not returned, because it was not called
 * since, or Slurm has not answered yet. False: there is none. For a caller whose command has just
 * ended, or that is about to close the source.
 */
bool source_take_held(struct source *source, struct notice *notice);
/* When it will give its notice, because it knows the end of the machine or the job; CLOCK_NEVER: it
 * knows none. */
int64_t source_expects(const struct source *source);
/* Add an example of each kind to text: "signal:TERM,USR1, file:PATH, ..., azure". */
void source_list(struct text *text);

/* The signals that a source of this specification catches, "TERM,USR1"; NULL: none. */
const char *source_signals(const char *specification);
/* The signals that sources of these specifications catch. */
sigset_t source_signal_set(const char *const *specifications, size_t count);
/* The specification that the source was opened with. */
const char *source_name(const struct source *source);

/*
 * How long before a known end its notice is given: grace (ms) if the user gave one (not negative);
 * otherwise 5 minutes, but at most a quarter of whole, the ms from start to end: a short job must
 * not get its notice at its start. The group trains on after a first save if time is left, so a
 * long lead costs only one more checkpoint.
 */
int64_t notice_lead(int64_t grace, int64_t whole);

extern const struct source_kind source_signal, source_file, source_command, source_deadline,
	source_slurm, source_gce, source_aws, source_azure, source_alibaba;

#endif
