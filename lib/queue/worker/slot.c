/* SPDX-License-Identifier: MIT */
#include "queue/worker/slot.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "queue/output/files.h"

#define AGAIN  1000 /* ms until the next try after a full disk */
#define SETTLE 2000 /* ms to wait for the notice of a signal of which a command has died */

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

static bool has_ended(struct slot *slot)
{
	return subprocess_check(&slot->child, clock_now()) == SUBPROCESS_ENDED;
}

void slot_tell(struct slot *slot, enum queue_ending_kind why, int signal, int64_t kill_at)
{
	if (!slot->busy || slot->child.pid <= 0)
		return;
	if (has_ended(slot)) {
		if (why == ENDING_PREEMPTED && !slot->told && was_hit(&slot->child.how)) {
			slot->told = true;
			slot->why = why;
		}
		return;
	}
	bool again = slot->told && slot->why == why;
	if (!slot->told)
		slot->why = why;
	slot->told = true;
	slot->kill_at = clock_earlier(slot->kill_at, kill_at);
	if (again)
		return;
	subprocess_signal(&slot->child, signal);
	subprocess_signal(&slot->child, SIGCONT);
}

int64_t slot_due(const struct slot *slot)
{
	if (!slot->busy || slot->collected)
		return CLOCK_NEVER;
	if (slot->child.pid <= 0)
		return slot->again;
	if (slot->hit)
		return slot->told ? slot->hit : slot->hit + SETTLE;
	int64_t due = slot->told ? slot->kill_at : clock_earlier(slot->timeout, slot->kill_at);
	return clock_earlier(slot->child.end.due, due);
}

bool slot_tick(struct slot *slot, const struct slot_context *place, int64_t now)
{
	if (!slot->busy || slot->collected)
		return false;
	if (slot->child.pid <= 0)
		return now >= slot->again;
	if (has_ended(slot)) {
		if (slot->told || !was_hit(&slot->child.how))
			return true;
		if (!slot->hit)
			slot->hit = now;
		return now >= slot->hit + SETTLE;
	}
	if (!slot->told && now >= slot->timeout)
		slot_tell(slot, ENDING_TIMED_OUT, SIGTERM, now + place->kill_after);
	if (now >= slot->kill_at) {
		subprocess_signal(&slot->child, SIGKILL);
		slot->kill_at = CLOCK_NEVER;
	}
	return false;
}

/* ---- When the command has ended ---- */

/* Decide how it ended: by itself, or because it was told to. */
static void judge(const struct slot *slot, const siginfo_t *info, struct queue_ending *ending)
{
	*ending = (struct queue_ending){.kind = ENDING_EXITED};
	if (info->si_code == CLD_EXITED) {
		ending->code = info->si_status;
	} else {
		ending->kind = ENDING_SIGNALLED;
		ending->number = info->si_status;
	}
	bool decided = ending->kind == ENDING_EXITED &&
		       (ending->code == STATUS_OK || ending->code == CODE_DECIDED);
	if (slot->told && !(slot->why == ENDING_PREEMPTED && decided))
		ending->kind = slot->why;
	if (ending->kind != ENDING_EXITED || ending->code != STATUS_OK)
		output_last_line(slot->err, ending->text, sizeof(ending->text));
}

/* Reap the command, and fill its result. False: it still runs. */
static bool reap(struct slot *slot)
{
	struct queue_result *result = &slot->run.result;
	const struct rusage *usage = &slot->child.usage;
	if (slot->child.pid > 0) {
		if (!has_ended(slot))
			return false;
		judge(slot, &slot->child.how, &result->ending);
		/* After a success, the rest of its group lives on. */
		subprocess_reap(&slot->child, !slot->told && result->ending.kind == ENDING_EXITED &&
						      !result->ending.code);
	}
	result->started = slot->started;
	result->ended = clock_utc();
	result->user = (int64_t)usage->ru_utime.tv_sec * 1000 + usage->ru_utime.tv_usec / 1000;
	result->system = (int64_t)usage->ru_stime.tv_sec * 1000 + usage->ru_stime.tv_usec / 1000;
	result->memory = (uint64_t)usage->ru_maxrss * 1024;
	run_end(&slot->run);
	if (result->state == QUEUE_CANCELLED)
		result->because = slot->because;
	slot->ended = true;
	return true;
}

static enum status keep_output(struct slot *slot, const struct slot_context *place,
	enum output_stream stream, struct error *err)
{
	struct queue_run *run = &slot->run;
	struct output output = {.queue = place->queue,
		.id = run->item.id,
		.token = run->lease.token,
		.stream = stream,
		.descriptor = stream == OUTPUT_OUT ? slot->out : slot->err};
	/* A command that will run again writes its output again. */
	if (slot->kept[stream] || run->result.state == QUEUE_WAITING || output.descriptor < 0)
		return STATUS_OK;
	enum status status = output_keep(&output, err);
	if (status != STATUS_OK)
		return run->result.state == QUEUE_CANCELLED ? STATUS_OK : status;
	slot->kept[stream] = true;
	*(stream == OUTPUT_OUT ? &run->out : &run->err) = output.bytes;
	*(stream == OUTPUT_OUT ? &run->result.out : &run->result.err) = output.length;
	*(stream == OUTPUT_OUT ? &run->result.out_filed : &run->result.err_filed) = output.filed;
	return STATUS_OK;
}

enum status slot_collect(struct slot *slot, const struct slot_context *place, struct error *err)
{
	if (!slot->ended && !reap(slot))
		return error_set(err, STATUS_TEMPORARY, "the command has not ended");
	enum status status = keep_output(slot, place, OUTPUT_OUT, err);
	if (status == STATUS_OK)
		status = keep_output(slot, place, OUTPUT_ERR, err);
	if (status == STATUS_OK)
		slot->collected = true;
	else
		slot->again = clock_after(AGAIN);
	return status;
}

/* ---- Afterwards ---- */

void slot_clear(struct slot *slot, const struct slot_context *place)
{
	struct queue_run *run = &slot->run;
	bool refused = run->outcome == RUN_PENDING || run->outcome == RUN_REFUSED;
	subprocess_release(&slot->child);
	if (run->result.out_filed && refused)
		output_remove(place->queue, run->item.id, run->lease.token, OUTPUT_OUT);
	if (run->result.err_filed && refused)
		output_remove(place->queue, run->item.id, run->lease.token, OUTPUT_ERR);
	if (run->outcome == RUN_ACCEPTED && run->result.state == QUEUE_SUCCEEDED)
		files_remove_item(place->queue, run->item.id, false);
	if (slot->out >= 0)
		close(slot->out);
	if (slot->err >= 0)
		close(slot->err);
	run_release(run);
	*slot = (struct slot){
		.number = slot->number, .child.end.descriptor = -1, .out = -1, .err = -1};
}
