/* SPDX-License-Identifier: MIT */
/* Starting a command in its slot. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/variables.h"
#include "base/xalloc.h"
#include "queue/output/files.h"
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

void slot_fail(struct slot *slot, enum status why, const char *text)
{
	struct queue_ending *ending = &slot->run.result.ending;
	bool of_command = why == STATUS_NO || why == STATUS_USAGE;
	begin(slot);
	if (of_command || why == STATUS_NOT_FOUND || why == STATUS_CANNOT_RUN)
		*ending = (struct queue_ending){
			.kind = ENDING_CANNOT, .code = of_command ? 1 : (int)why};
	else
		*ending = (struct queue_ending){.code = STATUS_TEMPORARY};
	text_escape(ending->text, sizeof(ending->text), text, strlen(text));
}

/* The argv to start; *words is to be freed with template_free. */
static enum status build_words(const struct queue_item *item, const struct queue_worker *worker,
	char ***words, struct error *err)
{
	static char shell[] = "/bin/sh", option[] = "-c", name[] = "sh";
	char **given = item->argv, *list[3] = {shell, option, NULL};
	if (!item->shell)
		return template_fill_worker(given, worker->name, worker->index, words, err);
	size_t count = template_count(given);
	/* sh -c TEXT sh $1 $2 ... */
	char **all = xcalloc(count + 4, sizeof(*all));
	memcpy(all, list, 2 * sizeof(*all));
	all[2] = given[0];
	all[3] = name;
	memcpy(all + 4, given + 1, (count - 1) * sizeof(*all));
	enum status status = template_fill_worker(all, worker->name, worker->index, words, err);
	free(all);
	return status;
}

void slot_environment(const struct slot_context *place, struct variables *all)
{
	variables_inherit(all);
	variables_set(all, "PREEMPT_QUEUE", place->queue->name);
	variables_set(all, "PREEMPT_WORKER", place->worker->name);
	variables_set_number(all, "PREEMPT_WORKER_INDEX", place->worker->index);
}

static void build_environment(const struct slot *slot, const struct slot_context *place,
	const char *directory, char *const *extra, struct variables *all)
{
	const struct queue_item *item = &slot->run.item;
	slot_environment(place, all);
	variables_set_number(all, "PREEMPT_ITEM_ID", item->id);
	variables_set_number(all, "PREEMPT_ITEM_ATTEMPT", slot->run.lease.history.starts);
	variables_set(all, "PREEMPT_ITEM_DIR", directory);
	variables_set_number(all, "PREEMPT_SLOT", slot->number);
	if (place->devices && place->devices->per_slot) {
		struct text value = {0};
		devices_of_slot(place->devices, slot->number, &value);
		variables_set(all, "CUDA_VISIBLE_DEVICES", text_string(&value));
		text_release(&value);
	}
	/* As a shell sets it after cd. */
	if (item->directory)
		variables_set(all, "PWD", item->directory);
	variables_set_all(all, extra);
	variables_set_all(all, item->environment);
	/* Set this last, so that neither resources nor --env can change it: the reaper needs it
	 * to find processes that would outlive us. */
	variables_set(all, REAPER_MARK, place->reaper->mark);
}

/* Make $PREEMPT_ITEM_DIR. Its path is absolute: the command may run in another directory. */
static enum status make_directory(
	const struct slot_context *place, uint64_t id, char **directory, struct error *err)
{
	char *made = NULL;
	enum status status = files_make_item(place->queue, id, &made, err);
	*directory = made;
	if (status != STATUS_OK || *made == '/')
		return status;
	*directory = realpath(made, NULL);
	if (!*directory)
		status = error_set(err, STATUS_TEMPORARY, "cannot find %s: %s", place->queue->files,
			strerror(errno));
	free(made);
	return status;
}

void slot_start(struct slot *slot, const struct slot_context *place, char *const *extra)
{
	struct error err = {0};
	struct variables environment = {0};
	char **words = NULL, *directory = NULL, *file = NULL;
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
	if (status == STATUS_OK && item->output)
		file = template_fill_name(
			item->output, item->directory, item->id, place->worker->name);
	if (status == STATUS_OK && !file && (slot->out = output_open(&err)) < 0)
		status = err.status;
	if (status == STATUS_OK && (slot->err = output_open(&err)) < 0)
		status = err.status;
	if (status == STATUS_OK) {
		struct subprocess_options command = {.argv = words,
			.environment = environment.items,
			.directory = item->directory,
			.input_path = item->input,
			.output_path = file,
			.standard = {SUBPROCESS_NOTHING, slot->out, slot->err},
			.reaper = place->reaper};
		slot->started = clock_utc();
		status = subprocess_start(&slot->child, &command, &err);
	}
	if (status != STATUS_OK)
		slot_fail(slot, status, err.text);
	else if (item->timeout > 0)
		slot->timeout = clock_after(item->timeout);
	variables_release(&environment);
	free(file);
	free(directory);
	template_free(words);
}
