/* SPDX-License-Identifier: MIT */
/*
 * Resources: directories that a command of the user fills once per worker, when the first command
 * that needs it arrives there, and again when the worker comes back. If a build fails, only the
 * commands that wait for it then fail: the next command that needs it has it built again.
 *
 * A worker's side never waits for a build; its loop is:
 *
 *	resources_open(&resources, &place, &err);
 *	... poll(resources.descriptor, POLLIN)
 *	resources_tick(&resources);
 *	for each command that was taken and has not started:
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
 * filled when it is built (template.h); STATUS_USAGE where they cannot be, or it is too long.
 * Workers that have built it already keep what they have.
 */
enum status resource_define(struct queue *queue, const char *name, char *const *argv,
	const char *directory, struct error *err);
/* STATUS_NO: there is none of this name. argv is to be freed with template_free. */
enum status resource_find(const struct queue *queue, const char *name, char ***argv,
	char **directory, struct error *err);

/* ---- In a worker: resource_build.c ---- */

enum resource_state {
	RESOURCE_READY,
	RESOURCE_BUILDING,
	RESOURCE_FAILED,    /* there is none of the name, it cannot be started, it failed */
	RESOURCE_POSTPONED, /* not now: its build said 75, or we could not ask, or have no space */
};

struct resource;
/* Zeroed is not opened, and may be released. */
struct resources {
	const struct slot_context *place;
	int descriptor;	 /* readable when resources_tick has something to do (epoll) */
	char *directory; /* what is built is below: private, in $TMPDIR or /tmp; NULL: nothing yet
			  */
	struct resource *list;
	size_t count;
};

/* place stays the caller's, and outlives it. */
enum status resources_open(
	struct resources *all, const struct slot_context *place, struct error *err);
/*
 * Whether all of these (NULL-terminated; NULL: none) are there. Those that are not are built now,
 * side by side, each once. Asks the store about those that are new here. why is
 * filled for the last two answers, which stand until the next resources_tick.
 *
 * A build runs where it was defined, stdin empty, with PREEMPT_RESOURCE (its name),
 * PREEMPT_RESOURCE_DIR (the directory to fill: empty, removed when the build fails or the worker
 * ends), PREEMPT_QUEUE, PREEMPT_WORKER and PREEMPT_WORKER_INDEX. What it leaves in the background
 * lives until the worker ends. It has no time limit.
 */
enum resource_state resources_need(struct resources *all, char *const *names, struct error *why);
/* Look which builds have ended; forget those that have failed before. */
void resources_tick(struct resources *all);
/*
 * PREEMPT_RESOURCE_<NAME>=DIRECTORY of those of these that are ready; NULL-terminated, to be freed
 * with template_free.
 */
char **resources_environment(const struct resources *all, char *const *names);
/* KILL what is being built, remove all directories. */
void resources_release(struct resources *all);

#endif
