/* SPDX-License-Identifier: MIT */
/*
 * A command of ours that runs: in a process group of its own, known to the guard, its end seen by a
 * descriptor. Until it is reaped its number, and that of its group, is its own. Private to
 * lib/queue.
 */
#ifndef QUEUE_WORKER_CHILD_H
#define QUEUE_WORKER_CHILD_H

#include <signal.h>
#include <sys/resource.h>

#include "base/process.h"
#include "base/reaper.h"

struct child {
	pid_t pid;	/* 0: there is none */
	int descriptor; /* readable when it has ended (pidfd) */
};

/*
 * Start it, from a thread that lives as long as we do (it dies with that); own_group and
 * die_with_parent are set by us. As process_start; where it cannot be
 * watched it is ended again: STATUS_TEMPORARY.
 */
enum status child_start(struct child *child, struct process_command *command,
	const struct reaper *reaper, struct error *err);
/* Whether it has ended, and how; it stays to be reaped. */
bool child_has_ended(const struct child *child, siginfo_t *info);
/* To its group; where it has left that, also to itself. */
void child_signal(const struct child *child, int signal);
/* One that has ended. usage may be NULL. */
void child_reap(struct child *child, const struct reaper *reaper, struct rusage *usage);
/* KILL its group and reap it, unless the kernel holds it: then it is left to the guard. */
void child_kill(struct child *child, const struct reaper *reaper);

/* /dev/null or path for its stdin, a descriptor above 2, or -1 and err: STATUS_NO: path cannot be
 * read, and that does not pass; STATUS_TEMPORARY. A pipe without a writer is empty. */
int child_open_input(const char *path, struct error *err);

#endif
