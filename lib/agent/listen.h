/* SPDX-License-Identifier: MIT */
/* The sources that a user names or a platform has, opened, the group among them. */
#ifndef AGENT_LISTEN_H
#define AGENT_LISTEN_H

#include "base/text.h"
#include "notice/source_set.h"

struct listen_request {
	const char *const *specifications; /* source.h; also "group", "group:ROUND" */
	size_t count;
	const char *platform;	   /* platform.h; NULL: none besides */
	struct source_options how; /* its grace, where not known, becomes the platform's */
	bool until_exit, past;	   /* of the group: source_group.h */
};

/*
 * Open all into watch. *group is the one of them that is the group, NULL where none is; it stays
 * the watch's. warnings: a line for each source that was only found here and cannot be opened.
 */
enum status listen_open(struct source_set *watch, struct listen_request *request,
	struct source **group, struct text *warnings, struct error *err);

/*
 * The signals that are notices of this process, "TERM,USR1", for PREEMPT_SIGNALS: what that says
 * already, else those of the platform.
 */
enum { LISTEN_SIGNALS_SIZE = 256 };
enum status listen_signals(char names[LISTEN_SIGNALS_SIZE], struct error *err);

#endif
