/* SPDX-License-Identifier: MIT */
/*
 * A reaper: a small process that outlives this one for a moment. If this process dies without
 * cleaning up (kill -9), the reaper sends KILL to the process groups that were registered and to
 * every process with our mark in its environment, and removes the directories that were registered.
 * It has its own session, name and argv, so a signal to our process group, to our session or, by
 * pkill -f, to our command line does not reach it. If it is killed, reaper_keep replaces it. If
 * both are killed at once, the kernel still kills the process groups (base/process/subprocess.h).
 */
#ifndef BASE_PROCESS_REAPER_H
#define BASE_PROCESS_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define REAPER_MARK "PREEMPT_AGENT" /* an environment variable */

struct reaper_told;

struct reaper {
	int socket;		  /* the reaper sees its other end closed when we die */
	pid_t pid;		  /* 0: there is none */
	struct reaper_told *told; /* all that a replacement has to know */
	/* Value of REAPER_MARK in our commands, to find processes that have left their group. */
	char mark[64];
};

enum status reaper_start(struct reaper *reaper, struct error *err);
void reaper_add(const struct reaper *reaper, pid_t group);
void reaper_remove(const struct reaper *reaper, pid_t group);
/*
 * Make a directory of mode 0700 in `parent`, named `name` and random digits. The reaper (NULL:
 * none) learns the name before the directory exists, so it removes the directory with its contents
 * at whatever moment we are killed. Returns the absolute path, to be freed; NULL with errno.
 */
char *reaper_make_directory(const struct reaper *reaper, const char *parent, const char *name);
/*
 * If the reaper was killed, start another one; true: it was replaced. The reaper is our child: call
 * this when a child has ended, or about once a second. After a failure, the next call tries again.
 */
bool reaper_keep(struct reaper *reaper);
/* End the reaper and every process that carries our mark. */
void reaper_stop(struct reaper *reaper);

#endif
