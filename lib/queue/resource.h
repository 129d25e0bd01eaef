/* SPDX-License-Identifier: MIT */
/*
 * Resources: directories that are filled by a command of the user (the build), once for a worker.
 *
 * The command that needs a resource builds it itself: it is started by a shell that takes the lock
 * of the resource (flock(1)), builds what is not built yet, and then becomes the command. So nobody
 * waits but the commands that need the resource, and the time limit, the signals and the stderr of
 * the command are those of the build, too. If the build fails, the command ends with its exit code
 * (42 and 43 are no failure of a command: with 1), and so do those that have waited for the lock
 * meanwhile; the next one builds again.
 *
 * A build runs in the directory of its definition, with an empty stdin, stdout on the command's
 * stderr, and PREEMPT_RESOURCE (its name) and PREEMPT_RESOURCE_DIR (the directory to fill, at first
 * empty). Its background processes must not outlive the command.
 */
#ifndef QUEUE_RESOURCE_H
#define QUEUE_RESOURCE_H

#include "base/process/reaper.h"
#include "base/process/variables.h"
#include "queue/queue.h"

#define RESOURCE_NAME_MAX 64 /* bytes */

/* A-Z a-z 0-9 and _, no digit first. STATUS_USAGE: it cannot be the name of a resource. */
enum status resource_check_name(const char *name, struct error *err);

/*
 * The words that build those resources (NULL-terminated) that are missing, and then run words;
 * each NAME also becomes PREEMPT_RESOURCE_NAME in variables. *directory holds them all; NULL: it is
 * made in $TMPDIR or /tmp; the caller removes it (file_remove_tree), the reaper if we are killed.
 * *wrapped: to be freed with template_free. STATUS_NO: there is no such resource.
 */
enum status resource_wrap(struct queue *queue, const struct queue_worker *worker,
	const struct reaper *reaper, char **directory, char *const *names, char *const *words,
	struct variables *variables, char ***wrapped, struct error *err);

#endif
