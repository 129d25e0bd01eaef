/* SPDX-License-Identifier: MIT */
/*
 * Opens the sources that the user names, and those of the platform. A named source may also be
 * "group" (source_group.h).
 */
#ifndef AGENT_LISTEN_H
#define AGENT_LISTEN_H

#include "base/text.h"
#include "notice/source_set.h"

struct listen_request {
	const char *const *specifications; /* source.h; also "group", "group:ROUND" */
	size_t count;
	const char *platform;	   /* platform.h; NULL: only the specifications */
	struct source_options how; /* a grace that is not known becomes the platform's */
	bool until_exit, past;	   /* for the group: source_group.h */
};

/*
 * Open all into watch. *group becomes the group's source, which watch owns; NULL: none. If the user
 * has not named the platform, a failure of one of its sources after the first is not an error:
 * warnings gets a line for each failure.
 */
enum status listen_open(struct source_set *watch, struct listen_request *request,
	struct source **group, struct text *warnings, struct error *err);

/*
 * The signals that this process treats as notices, "TERM,USR1": those of PREEMPT_SIGNALS, if that
 * is set, else those of the platform.
 */
enum { LISTEN_SIGNALS_SIZE = 256 };
enum status listen_signals(char names[LISTEN_SIGNALS_SIZE], struct error *err);

#endif
