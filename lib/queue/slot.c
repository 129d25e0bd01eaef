/* SPDX-License-Identifier: MIT */
#include "queue/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/variables.h"
#include "base/xalloc.h"
#include "queue/output.h"
#include "queue/resource.h"
#include "queue/template.h"

#define SETTLE 2000 /* ms to wait for the notice of a signal of which a command has died */

/* ---- The start ---- */

/* The argv to start. */
static enum status build_words(const struct queue_item *item, const struct queue_worker *worker,
	char ***words, struct error *err)
{
	enum status status =
		template_fill_worker(item->argv, worker->name, worker->index, words, err);
	if (status != STATUS_OK || !item->shell)
		return status;
	char **filled = *words;
	*words = template_for_shell(filled[0], filled + 1);
	template_free(filled);
	return STATUS_OK;
}

static void build_variables(const struct slot *slot, const char *directory, struct variables *all)
{
	const struct queue_item *item = &slot->run.item;
	variables_inherit(all);
	variables_set(all, "PREEMPT_QUEUE", slot->place->queue->name);
	variables_set(all, "PREEMPT_WORKER", slot->place->worker->name);
	variables_set_number(all, "PREEMPT_WORKER_INDEX", slot->place->worker->index);
	variables_set_number(all, "PREEMPT_ITEM_ID", item->id);
	variables_set_number(all, "PREEMPT_ITEM_ATTEMPT", slot->run.history.starts);
	variables_set(all, "PREEMPT_ITEM_DIR", directory);
	variables_set_number(all, "PREEMPT_SLOT", slot->number);
	if (slot->place->devices && slot->place->devices->per_slot) {
		struct text value = {0};
		devices_of_slot(slot->place->devices, slot->number, &value);
		variables_set(all, "CUDA_VISIBLE_DEVICES", text_string(&value));
		text_release(&value);
	}
	/* As a shell sets it after cd. */
	if (item->directory)
		variables_set(all, "PWD", item->directory);
	variables_set_all(all, item->environment);
	/* Set this last, so that --env cannot change it: the reaper needs it to find processes
	 * that would outlive us. */
	variables_set(all, REAPER_MARK, slot->place->reaper->mark);
}

/* A machine without the directory for temporary files fails most commands. */
static enum status check_tmpdir(const struct variables *variables, struct error *err)
{
	for (size_t i = 0; i < variables->count; i++) {
		const char *path = variables->items[i] + strlen("TMPDIR=");
		if (!strncmp(variables->items[i], "TMPDIR=", strlen("TMPDIR=")) && *path &&
			access(path, X_OK) < 0)
			return error_set(
				err, STATUS_TEMPORARY, "TMPDIR is %s: %s", path, strerror(errno));
	}
	return STATUS_OK;
}

/* Wrap words in a shell that builds the resources of the command. */
static enum status add_resources(
	const struct slot *slot, char ***words, struct variables *variables, struct error *err)
{
	char *const *names = slot->run.item.resources;
	char **wrapped;
	if (!names || !names[0])
		return STATUS_OK;
	enum status status =
		resource_wrap(slot->place->queue, slot->place->worker, slot->place->reaper,
			slot->place->resources, names, *words, variables, &wrapped, err);
	if (status != STATUS_OK)
		return status;
	template_free(*words);
	*words = wrapped;
	return STATUS_OK;
}

static char *stdout_file(const struct slot *slot)
{
	const struct queue_item *item = &slot->run.item;
	return item->output ? template_fill_name(item->output, item->directory, item->id,
				      slot->place->worker->name)
			    : NULL;
}

/* Make its files, and start words. */
static enum status launch(
	struct slot *slot, char *const *words, const struct variables *variables, struct error *err)
{
	const struct queue_item *item = &slot->run.item;
	const struct queue *queue = slot->place->queue;
	enum status status = check_tmpdir(variables, err);
	if (status == STATUS_OK && !item->output)
		status = output_open(queue, item->id, slot->run.token, OUTPUT_OUT, &slot->out, err);
	if (status == STATUS_OK)
		status = output_open(queue, item->id, slot->run.token, OUTPUT_ERR, &slot->err, err);
	if (status != STATUS_OK)
		return status;
	char *file = stdout_file(slot);
	struct subprocess_options command = {.argv = words,
		.environment = variables->items,
		.directory = item->directory,
		.input_path = item->input,
		.output_path = file,
		.standard = {SUBPROCESS_NOTHING, slot->out, slot->err},
		.loop = slot->place->loop,
		.reaper = slot->place->reaper};
	status = subprocess_start(&slot->child, &command, err);
	free(file);
	return status;
}

/* It is over; an ending that is filled stays. */
static void end(struct slot *slot)
{
	struct queue_result *result = &slot->result;
	const struct rusage *usage = &slot->child.usage;
	strcpy(result->worker, slot->place->worker->name);
	strcpy(result->host, slot->place->worker->process.host);
	result->ended = clock_utc();
	result->user = (int64_t)usage->ru_utime.tv_sec * 1000 + usage->ru_utime.tv_usec / 1000;
	result->system = (int64_t)usage->ru_stime.tv_sec * 1000 + usage->ru_stime.tv_usec / 1000;
	result->memory = (uint64_t)usage->ru_maxrss * 1024;
	slot->state = SLOT_ENDED;
}

static void end_with(struct slot *slot, enum queue_ending_kind kind, int code, const char *text)
{
	struct queue_ending *ending = &slot->result.ending;
	*ending = (struct queue_ending){.kind = kind, .code = code};
	text_escape(ending->text, sizeof(ending->text), text, strlen(text));
	end(slot);
}

static void hold(struct slot *slot, struct queue_view *run)
{
	*slot = (struct slot){.number = slot->number,
		.place = slot->place,
		.run = *run,
		.child.end = {.descriptor = -1, .due = CLOCK_NEVER},
		.result.started = clock_utc()};
	*run = (struct queue_view){0};
}

void slot_refuse(
	struct slot *slot, struct queue_view *run, enum queue_ending_kind why, const char *text)
{
	hold(slot, run);
	end_with(slot, why, 0, text);
}

void slot_start(struct slot *slot, struct queue_view *run)
{
	struct error err = {0};
	struct variables variables = {0};
	char **words = NULL, *directory = NULL;
	hold(slot, run);
	const struct queue_item *item = &slot->run.item;
	/* `own`: what is wrong with the command itself. The rest a machine may lack. */
	enum status own = build_words(item, slot->place->worker, &words, &err), status = own;
	if (status == STATUS_OK)
		status = output_prepare(slot->place->queue, item->id, &directory, &err);
	if (status == STATUS_OK) {
		build_variables(slot, directory, &variables);
		status = own = add_resources(slot, &words, &variables, &err);
	}
	if (status == STATUS_OK)
		status = launch(slot, words, &variables, &err);
	if (status == STATUS_OK) {
		slot->state = SLOT_RUNS;
		slot->at = item->timeout > 0 ? clock_after(item->timeout) : CLOCK_NEVER;
	} else if (own == STATUS_NO || own == STATUS_USAGE || own == STATUS_DAMAGED) {
		end_with(slot, ENDING_EXITED, CODE_NO, err.text);
	} else {
		bool missing = status == STATUS_NOT_FOUND || status == STATUS_CANNOT_RUN;
		end_with(slot, missing || status == STATUS_NO ? ENDING_CANNOT : ENDING_MACHINE,
			missing ? (int)status : 1, err.text);
	}
	template_free(words);
	variables_release(&variables);
	free(directory);
}

/* ---- While it runs ---- */

/* Whether it died of a signal that schedulers use as a notice; a shell exits with 128 + signal. */
static bool was_hit(const siginfo_t *info)
{
	static const int signals[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGPWR};
	int number = info->si_code == CLD_EXITED ? info->si_status - 128 : info->si_status;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (number == signals[i])
			return true;
	return false;
}

/* Decide how it ended: by itself (why: ENDING_EXITED), or because it was told to. */
static void end_run(struct slot *slot, enum queue_ending_kind why)
{
	struct queue_ending *ending = &slot->result.ending;
	const siginfo_t *how = &slot->child.how;
	*ending = (struct queue_ending){.kind = ENDING_EXITED};
	if (how->si_code == CLD_EXITED) {
		ending->code = how->si_status;
	} else {
		ending->kind = ENDING_SIGNALLED;
		ending->number = how->si_status;
	}
	bool decided = ending->kind == ENDING_EXITED &&
		       (ending->code == CODE_OK || ending->code == CODE_DECIDED);
	if (why != ENDING_EXITED && !(why == ENDING_PREEMPTED && decided))
		ending->kind = why;
	if (ending->kind != ENDING_EXITED || ending->code != CODE_OK)
		output_last_line(slot->err, ending->text, sizeof(ending->text));
	end(slot);
}

/* Whether it has ended; it is then reaped. After a success, the rest of its group lives on. */
static bool has_ended(struct slot *slot)
{
	if (subprocess_check(&slot->child, clock_now()) != SUBPROCESS_ENDED)
		return false;
	subprocess_reap(&slot->child, slot->state == SLOT_RUNS &&
					      slot->child.how.si_code == CLD_EXITED &&
					      slot->child.how.si_status == 0);
	return true;
}

static void tell(struct slot *slot, enum queue_ending_kind why, int number, int64_t kill_at)
{
	slot->state = SLOT_TOLD;
	slot->why = why;
	slot->at = CLOCK_NEVER;
	subprocess_end(&slot->child, number, kill_at);
}

void slot_tell(struct slot *slot, enum queue_ending_kind why, int number, int64_t kill_at)
{
	if (slot->state == SLOT_RUNS || slot->state == SLOT_TOLD)
		slot_tick(slot, clock_now());
	switch (slot->state) {
	case SLOT_RUNS: tell(slot, why, number, kill_at); return;
	case SLOT_TOLD:
		subprocess_end(&slot->child, slot->why != why ? number : 0, kill_at);
		return;
	case SLOT_HIT:
		if (why == ENDING_PREEMPTED)
			end_run(slot, why);
		return;
	case SLOT_FREE:
	case SLOT_ENDED: return;
	}
}

int64_t slot_due(const struct slot *slot)
{
	if (slot->state == SLOT_FREE || slot->state == SLOT_ENDED)
		return CLOCK_NEVER;
	return clock_earlier(slot->child.end.due, slot->at);
}

void slot_tick(struct slot *slot, int64_t now)
{
	switch (slot->state) {
	case SLOT_RUNS:
		if (has_ended(slot)) {
			if (was_hit(&slot->child.how)) {
				slot->state = SLOT_HIT;
				slot->at = now + SETTLE;
			} else {
				end_run(slot, ENDING_EXITED);
			}
		} else if (now >= slot->at) {
			tell(slot, ENDING_TIMED_OUT, SIGTERM, now + slot->place->kill_after);
		}
		return;
	case SLOT_TOLD:
		if (has_ended(slot))
			end_run(slot, slot->why);
		return;
	case SLOT_HIT:
		if (now >= slot->at)
			end_run(slot, ENDING_EXITED);
		return;
	case SLOT_FREE:
	case SLOT_ENDED: return;
	}
}

/* ---- Afterwards ---- */

/* The file of --stdout. Where it cannot be opened any more, the command has moved it. */
static enum status sync_file(const struct slot *slot, struct error *err)
{
	char *path = stdout_file(slot);
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int number = file >= 0 && fsync(file) < 0 && errno != EINVAL && errno != EROFS ? errno : 0;
	if (file >= 0)
		close(file);
	free(path);
	return number ? error_errno(err, number, "sync the output") : STATUS_OK;
}

bool slot_has_output(const struct slot *slot)
{
	enum queue_ending_kind kind = slot->result.ending.kind;
	return kind == ENDING_EXITED || kind == ENDING_SIGNALLED || kind == ENDING_TIMED_OUT;
}

void slot_keep(struct slot *slot, const struct error *why)
{
	struct queue_ending *ending = &slot->result.ending;
	struct error err;
	enum status status = STATUS_OK;
	if (!slot_has_output(slot))
		return;
	if (slot->out)
		status = output_keep(slot->out, &slot->result.out, &err);
	if (status == STATUS_OK && slot->err)
		status = output_keep(slot->err, &slot->result.err, &err);
	if (status == STATUS_OK && slot->run.item.output)
		status = sync_file(slot, &err);
	if (status == STATUS_OK && !why) {
		if (slot->doubted)
			*ending = (struct queue_ending){.kind = ENDING_PREEMPTED,
				.text = "there was no room for its output while it ran"};
		return;
	}
	*ending = (struct queue_ending){.kind = ENDING_MACHINE, .code = 1};
	snprintf(ending->text, sizeof(ending->text), "its output cannot be kept: %.200s",
		why ? why->text : err.text);
}

static void clear_output(struct slot *slot, int descriptor, enum output_stream stream, bool keep)
{
	if (!descriptor)
		return;
	close(descriptor);
	if (!keep)
		output_remove(slot->place->queue, slot->run.item.id, slot->run.token, stream);
}

void slot_clear(struct slot *slot, bool accepted, enum queue_state state)
{
	if (slot->state == SLOT_FREE)
		return;
	bool final = accepted && state != QUEUE_WAITING;
	subprocess_release(&slot->child);
	clear_output(slot, slot->out, OUTPUT_OUT, final && slot->result.out);
	clear_output(slot, slot->err, OUTPUT_ERR, final && slot->result.err);
	if (accepted && state == QUEUE_SUCCEEDED)
		output_remove_item(slot->place->queue, slot->run.item.id);
	queue_item_release(&slot->run.item);
	*slot = (struct slot){.number = slot->number, .place = slot->place};
}
