/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/subprocess.h"
#include "base/process/variables.h"
#include "base/xalloc.h"
#include "queue/template.h"
#include "queue/worker/resource.h"

struct resource {
	char name[RESOURCE_NAME_MAX + 1];
	enum resource_state state;
	struct subprocess child; /* RESOURCE_BUILDING */
	int output;		 /* what the build writes; -1: none */
	char *directory;	 /* NULL: not made */
	struct error error;	 /* in the last two states */
};

enum status resources_open(
	struct resources *all, const struct slot_context *place, struct error *err)
{
	*all = (struct resources){.place = place, .descriptor = epoll_create1(EPOLL_CLOEXEC)};
	if (all->descriptor >= 0)
		return STATUS_OK;
	*all = (struct resources){0};
	return error_set(err, STATUS_TEMPORARY, "cannot watch the builds of resources");
}

static struct resource *find(const struct resources *all, const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->list[i].name, name))
			return &all->list[i];
	return NULL;
}

static struct resource *add(struct resources *all, const char *name)
{
	all->list = xrealloc(all->list, all->count + 1, sizeof(*all->list));
	struct resource *resource = &all->list[all->count++];
	*resource = (struct resource){.state = RESOURCE_BUILDING, .output = -1};
	snprintf(resource->name, sizeof(resource->name), "%s", name);
	return resource;
}

/* The build has failed. Keep the resource until the next tick, to give the reason. */
static void fail(struct resource *resource, const struct error *why)
{
	bool passes = why->status == STATUS_TEMPORARY || why->status == STATUS_PERMISSION;
	resource->state = passes ? RESOURCE_POSTPONED : RESOURCE_FAILED;
	resource->error = *why;
	error_prefix(&resource->error, "resource %s", resource->name);
}

/* Close its descriptor, and remove its directory unless it is built. */
static void release(struct resource *resource)
{
	if (resource->output >= 0)
		close(resource->output);
	resource->output = -1;
	if (resource->directory && resource->state != RESOURCE_READY) {
		(void)file_remove_tree(resource->directory, NULL);
		free(resource->directory);
		resource->directory = NULL;
	}
}

/* Whether path was removed: many machines remove what was not used for days from /tmp. */
static bool is_gone(const char *path)
{
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* ---- Starting ---- */

/* Make the private directory, which holds those of all builds. */
static enum status make_private(struct resources *all, struct error *err)
{
	const char *above = getenv("TMPDIR");
	if (all->directory && !is_gone(all->directory))
		return STATUS_OK;
	free(all->directory);
	all->directory = NULL;
	if (!above || !*above)
		above = "/tmp";
	all->directory = reaper_make_directory(all->place->reaper, above, "preempt-resources.");
	if (all->directory)
		return STATUS_OK;
	return error_set(
		err, STATUS_TEMPORARY, "cannot make a directory in %s: %s", above, strerror(errno));
}

static enum status make_directory(
	struct resources *all, struct resource *resource, struct error *err)
{
	enum status status = make_private(all, err);
	if (status != STATUS_OK)
		return status;
	resource->directory = xprintf("%s/%s", all->directory, resource->name);
	if (mkdir(resource->directory, 0700) == 0)
		return STATUS_OK;
	status = error_set(err, STATUS_TEMPORARY, "cannot make its directory %s: %s",
		resource->directory, strerror(errno));
	free(resource->directory);
	resource->directory = NULL;
	return status;
}

static void build_environment(const struct slot_context *place, const struct resource *resource,
	const char *directory, struct variables *list)
{
	char own[sizeof("PREEMPT_RESOURCE_") + RESOURCE_NAME_MAX];
	/* Commands get this variable too, so that they can share scripts with the build. */
	snprintf(own, sizeof(own), "PREEMPT_RESOURCE_%s", resource->name);
	slot_environment(place, list);
	variables_set(list, "PREEMPT_RESOURCE", resource->name);
	variables_set(list, own, resource->directory);
	variables_set(list, "PREEMPT_RESOURCE_DIR", resource->directory);
	variables_set(list, "PWD", directory);
	variables_set(list, REAPER_MARK, place->reaper->mark);
}

static enum status start_command(struct resources *all, struct resource *resource, char **words,
	const char *directory, struct error *err)
{
	struct variables environment = {0};
	build_environment(all->place, resource, directory, &environment);
	resource->output = output_open(err);
	struct subprocess_options command = {.argv = words,
		.environment = environment.items,
		.directory = directory,
		.standard = {SUBPROCESS_NOTHING, resource->output, resource->output},
		.reaper = all->place->reaper};
	enum status status = resource->output < 0
				     ? STATUS_TEMPORARY
				     : subprocess_start(&resource->child, &command, err);
	variables_release(&environment);
	return status;
}

/* Make all->descriptor readable when the build ends. */
static enum status attend(struct resources *all, struct resource *resource, struct error *err)
{
	struct epoll_event event = {.events = EPOLLIN};
	if (epoll_ctl(all->descriptor, EPOLL_CTL_ADD, resource->child.end.descriptor, &event) == 0)
		return STATUS_OK;
	int number = errno;
	subprocess_kill(&resource->child);
	return error_set(err, STATUS_TEMPORARY, "cannot watch its build: %s", strerror(number));
}

static void build(struct resources *all, struct resource *resource)
{
	const struct queue_worker *worker = all->place->worker;
	char **given = NULL, **words = NULL, *directory = NULL;
	struct error err = {0};
	enum status status =
		resource_find(all->place->queue, resource->name, &given, &directory, &err);
	if (status == STATUS_OK)
		status = template_fill_worker(given, worker->name, worker->index, &words, &err);
	if (status == STATUS_OK)
		status = make_directory(all, resource, &err);
	if (status == STATUS_OK)
		status = start_command(all, resource, words, directory, &err);
	if (status == STATUS_OK)
		status = attend(all, resource, &err);
	if (status != STATUS_OK) {
		fail(resource, &err);
		release(resource);
	}
	template_free(words);
	template_free(given);
	free(directory);
}

/* ---- Asking for resources ---- */

/* Find a resource, or start its build. */
static struct resource *look_up(struct resources *all, const char *name)
{
	struct resource *resource = find(all, name);
	if (resource && resource->state == RESOURCE_READY && is_gone(resource->directory)) {
		resource->state = RESOURCE_BUILDING;
		release(resource);
		build(all, resource);
	} else if (!resource) {
		resource = add(all, name);
		build(all, resource);
	}
	return resource;
}

enum resource_state resources_need(struct resources *all, char *const *names, struct error *why)
{
	enum resource_state worst = RESOURCE_READY;
	for (; names && *names; names++) {
		bool possible = strlen(*names) <= RESOURCE_NAME_MAX;
		const struct resource *resource = possible ? look_up(all, *names) : NULL;
		enum resource_state state = resource ? resource->state : RESOURCE_FAILED;
		/* Report the first failure, but begin all builds. */
		if (state >= RESOURCE_FAILED && worst < RESOURCE_FAILED) {
			if (resource)
				*why = resource->error;
			else
				error_set(why, STATUS_NO, "no resource has so long a name: %s",
					*names);
		}
		if (state > worst && worst < RESOURCE_FAILED)
			worst = state;
	}
	return worst;
}

char **resources_environment(const struct resources *all, char *const *names)
{
	struct variables list = {0};
	for (; names && *names; names++) {
		char name[sizeof("PREEMPT_RESOURCE_") + RESOURCE_NAME_MAX];
		const struct resource *resource = find(all, *names);
		if (!resource || resource->state != RESOURCE_READY)
			continue;
		snprintf(name, sizeof(name), "PREEMPT_RESOURCE_%s", resource->name);
		variables_set(&list, name, resource->directory);
	}
	return list.items ? list.items : xcalloc(1, sizeof(*list.items));
}

/* ---- Ending ---- */

/* Find out how the build ended. */
static void judge(struct resource *resource, const siginfo_t *info)
{
	char line[256];
	struct error why;
	bool exited = info->si_code == CLD_EXITED;
	if (exited && info->si_status == STATUS_OK) {
		resource->state = RESOURCE_READY;
		return;
	}
	output_last_line(resource->output, line, sizeof(line));
	error_set(&why,
		exited && info->si_status == STATUS_TEMPORARY ? STATUS_TEMPORARY : STATUS_NO,
		"its build %s %d%s%s", exited ? "ended with" : "was ended by signal",
		info->si_status, *line ? ": " : "", line);
	fail(resource, &why);
}

static void look_at(struct resources *all, struct resource *resource)
{
	if (subprocess_check(&resource->child, clock_now()) != SUBPROCESS_ENDED)
		return;
	judge(resource, &resource->child.how);
	/* Closing the descriptor is not enough: a child between fork and exec may have it, too. */
	(void)epoll_ctl(all->descriptor, EPOLL_CTL_DEL, resource->child.end.descriptor, NULL);
	subprocess_reap(&resource->child, resource->state == RESOURCE_READY);
	release(resource);
}

void resources_tick(struct resources *all)
{
	size_t kept = 0;
	for (size_t i = 0; i < all->count; i++) {
		struct resource *resource = &all->list[i];
		/* The commands that waited for it have failed, or were put back. Forget it. */
		if (resource->state >= RESOURCE_FAILED)
			continue;
		if (resource->state == RESOURCE_BUILDING)
			look_at(all, resource);
		if (kept < i)
			all->list[kept] = *resource;
		kept++;
	}
	all->count = kept;
}

void resources_release(struct resources *all)
{
	for (size_t i = 0; i < all->count; i++) {
		struct resource *resource = &all->list[i];
		if (resource->state == RESOURCE_BUILDING)
			subprocess_kill(&resource->child);
		release(resource);
		free(resource->directory);
	}
	if (all->directory)
		(void)file_remove_tree(all->directory, NULL);
	if (all->place)
		close(all->descriptor);
	free(all->directory);
	free(all->list);
	*all = (struct resources){0};
}
