/* SPDX-License-Identifier: MIT */
/*
 * Resources: directories that a worker fills by a command of the user (the build) when it takes the
 * first command that needs them. A restarted worker builds them again. If a build fails, the
 * commands that wait for it fail; the next command that needs the resource starts another build.
 *
 * A worker never waits for a build. Its loop is:
 *
 *	resources_open(&resources, &place, &err);
 *	... poll(resources.descriptor, POLLIN)
 *	resources_tick(&resources);
 *	for each command that is held:
 *		switch (resources_need(&resources, item->resources, &why)) {
 *		case RESOURCE_READY: resources_environment(), slot_start()
 *		case RESOURCE_BUILDING: later
 *		case RESOURCE_FAILED: slot_fail(slot, STATUS_NO, why.text)
 *		case RESOURCE_POSTPONED: slot_fail(slot, STATUS_TEMPORARY, why.text)
 *		}
 *	resources_release(&resources);
 */
#ifndef QUEUE_WORKER_RESOURCE_H
#define QUEUE_WORKER_RESOURCE_H

#include "queue/worker/slot.h"

#define RESOURCE_NAME_MAX 64 /* bytes */

/* ---- In the store: resource.c ---- */

/*
 * Define (or replace) how a resource is built: argv in directory (absolute). name: A-Z a-z 0-9 and
 * _, at most RESOURCE_NAME_MAX bytes, no digit first. {worker} and {per-worker:...} in argv are
 * filled for each build (template.h); STATUS_USAGE: they cannot be filled, or argv is too long.
 * Workers that have built the resource keep it as it is.
 */
enum status resource_define(struct queue *queue, const char *name, char *const *argv,
	const char *directory, struct error *err);
/* STATUS_NO: there is none of this name. Free argv with template_free, and directory. */
enum status resource_find(const struct queue *queue, const char *name, char ***argv,
	char **directory, struct error *err);

/* ---- In a worker: resource_build.c ---- */

enum resource_state {
	RESOURCE_READY,
	RESOURCE_BUILDING,
	RESOURCE_FAILED,    /* no such name, or its build could not start, or failed */
	RESOURCE_POSTPONED, /* its build exited with 75, or the store gave no answer, or no space */
};

struct resource;
/* A zeroed struct is not open, and may be released. */
struct resources {
	const struct slot_context *place;
	int descriptor;	 /* readable when resources_tick has something to do (epoll) */
	char *directory; /* private, in $TMPDIR or /tmp, holds all builds; NULL: none yet */
	struct resource *list;
	size_t count;
};

/* place belongs to the caller, and must outlive *all. */
enum status resources_open(
	struct resources *all, const struct slot_context *place, struct error *err);
/*
 * Whether all of these resources (NULL-terminated; NULL: none) are ready. The builds of the missing
 * ones are started, all at once, each only once; their definitions are read from the store. FAILED
 * and POSTPONED fill why, and stay the answer until the next resources_tick.
 *
 * A build runs in the directory of its definition, with empty stdin and PREEMPT_RESOURCE (its
 * name), PREEMPT_RESOURCE_DIR (the directory to fill; at first empty, removed when the build fails
 * or the worker ends), PREEMPT_QUEUE, PREEMPT_WORKER and PREEMPT_WORKER_INDEX. After a success its
 * background processes live until the worker ends. A build has no time limit.
 */
enum resource_state resources_need(struct resources *all, char *const *names, struct error *why);
/* Look which builds have ended. Forget earlier failures, so that they are tried again. */
void resources_tick(struct resources *all);
/*
 * PREEMPT_RESOURCE_<NAME>=DIRECTORY for each of these that is ready; NULL-terminated, to be freed
 * with template_free.
 */
char **resources_environment(const struct resources *all, char *const *names);
/* Send KILL to the running builds, and remove all directories. */
void resources_release(struct resources *all);

#endif
