/* SPDX-License-Identifier: MIT */
/* How a command comes into its slot. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/variables.h"
#include "base/xalloc.h"
#include "queue/files.h"
#include "queue/template.h"
#include "queue/worker/slot.h"

void slot_take(struct slot *slot, struct queue_run *run)
{
	*slot = (struct slot){.held = true,
		.run = *run,
		.number = slot->number,
		.child.end.descriptor = -1,
		.out = -1,
		.err = -1,
		.timeout = CLOCK_NEVER,
		.kill_at = CLOCK_NEVER};
	*run = (struct queue_run){0};
}

static void begin(struct slot *slot)
{
	slot->held = false;
	slot->busy = true;
	slot->started = clock_utc();
}

static void cannot(struct slot *slot, enum queue_ending_kind kind, int code, const char *why)
{
	struct queue_ending *ending = &slot->run.result.ending;
	*ending = (struct queue_ending){.kind = kind, .code = code};
	text_escape(ending->text, sizeof(ending->text), why, strlen(why));
}

void slot_refuse(struct slot *slot, const char *why)
{
	begin(slot);
	cannot(slot, ENDING_CANNOT, 1, why);
}

void slot_postpone(struct slot *slot, const char *why)
{
	begin(slot);
	cannot(slot, ENDING_EXITED, STATUS_TEMPORARY, why);
}

/* It has not started: whose fault that is, by what says so. */
static void fail(struct slot *slot, const struct error *err)
{
	switch (err->status) {
	case STATUS_NO:
	case STATUS_USAGE: cannot(slot, ENDING_CANNOT, 1, err->text); break;
	case STATUS_NOT_FOUND:
	case STATUS_CANNOT_RUN: cannot(slot, ENDING_CANNOT, (int)err->status, err->text); break;
	default: cannot(slot, ENDING_EXITED, STATUS_TEMPORARY, err->text); break;
	}
}

/* The words that are started; *words is to be freed with template_free. */
static enum status build_words(const struct queue_item *item, const struct queue_worker *worker,
	char ***words, struct error *err)
{
	static char shell[] = "/bin/sh", option[] = "-c", name[] = "sh";
	char **given = item->argv, *list[3] = {shell, option, NULL};
	size_t count = 0;
	enum status status;
	if (!item->shell)
		return template_fill_worker(given, worker->name, worker->index, words, err);
	while (given[count])
		count++;
	/* sh -c TEXT sh $1 $2 ... */
	char **all = xcalloc(count + 4, sizeof(*all));
	memcpy(all, list, 2 * sizeof(*all));
	all[2] = given[0];
	all[3] = name;
	memcpy(all + 4, given + 1, (count - 1) * sizeof(*all));
	status = template_fill_worker(all, worker->name, worker->index, words, err);
	free(all);
	return status;
}

static void build_environment(const struct slot *slot, const struct slot_context *place,
	const char *directory, char *const *extra, struct variables *all)
{
	const struct queue_item *item = &slot->run.item;
	variables_inherit(all);
	variables_set(all, "PREEMPT_QUEUE", place->queue->name);
	variables_set_number(all, "PREEMPT_ITEM_ID", item->id);
	variables_set_number(all, "PREEMPT_ITEM_ATTEMPT", slot->run.lease.history.starts);
	variables_set(all, "PREEMPT_ITEM_DIR", directory);
	variables_set(all, "PREEMPT_WORKER", place->worker->name);
	variables_set_number(all, "PREEMPT_WORKER_INDEX", place->worker->index);
	variables_set_number(all, "PREEMPT_SLOT", slot->number);
	/* As a shell that goes there. */
	if (item->directory)
		variables_set(all, "PWD", item->directory);
	variables_set_all(all, extra);
	variables_set_all(all, item->environment);
	/* Set last, so that neither resources nor --env can change it: by this variable the
	 * reaper finds processes that would outlive us. */
	variables_set(all, REAPER_MARK, place->reaper->mark);
}

/* Absolute, as the command may run elsewhere. */
static enum status make_directory(
	const struct slot_context *place, uint64_t id, char **directory, struct error *err)
{
	char *made = NULL;
	enum status status = files_make_item(place->queue, id, &made, err);
	if (status != STATUS_OK || *made == '/') {
		*directory = made;
		return status;
	}
	*directory = realpath(made, NULL);
	int number = errno;
	free(made);
	return *directory ? STATUS_OK
			  : error_set(err, STATUS_TEMPORARY, "cannot find %s: %s",
				    place->queue->files, strerror(number));
}

void slot_start(struct slot *slot, const struct slot_context *place, char *const *extra)
{
	struct error err = {0};
	struct variables environment = {0};
	char **words = NULL, *directory = NULL;
	const struct queue_item *item = &slot->run.item;
	begin(slot);
	if (item->damaged) {
		queue_ending_damaged(&slot->run.result.ending, item->id);
		return;
	}
	enum status status = build_words(item, place->worker, &words, &err);
	if (status == STATUS_OK)
		status = make_directory(place, item->id, &directory, &err);
	if (status == STATUS_OK)
		build_environment(slot, place, directory, extra, &environment);
	if (status == STATUS_OK &&
		((slot->out = output_open(&err)) < 0 || (slot->err = output_open(&err)) < 0))
		status = err.status;
	if (status == STATUS_OK) {
		struct subprocess_options command = {.argv = words,
			.environment = environment.items,
			.directory = item->directory,
			.input_path = item->input,
			.standard = {SUBPROCESS_NOTHING, slot->out, slot->err},
			.reaper = place->reaper};
		slot->started = clock_utc();
		status = subprocess_start(&slot->child, &command, &err);
	}
	if (status != STATUS_OK)
		fail(slot, &err);
	else if (item->timeout > 0)
		slot->timeout = clock_after(item->timeout);
	variables_release(&environment);
	free(directory);
	template_free(words);
}
