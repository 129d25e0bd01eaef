/* SPDX-License-Identifier: MIT */
/* The loop of a worker. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/process/descriptor.h"
#include "base/process/ending.h"
#include "base/xalloc.h"
#include "queue/template.h"
#include "queue/worker/loop.h"
#include "store/access.h"

#define PATIENCE      5000  /* ms that an answer of the store may take; a notice may wait as long */
#define PAUSE_FIRST   1000  /* ms */
#define PAUSE_LONGEST 30000 /* ms */
#define UNSEEN	      2 /* periods in which no other worker fences us, unless --limit is 1 or 2 */

bool work_is_idle(const struct work *work)
{
	return work_free_slots(work) == work->slot_count;
}

bool work_runs_something(const struct work *work)
{
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].child.pid > 0)
			return true;
	return false;
}

size_t work_free_slots(const struct work *work)
{
	size_t count = 0;
	for (size_t i = 0; i < work->slot_count; i++)
		count += !work->slots[i].held && !work->slots[i].busy;
	return count;
}

bool work_may_take(const struct work *work, int64_t now)
{
	/* If a command died of a signal that may belong to a notice, take no more: that notice
	 * would end the next one, too. */
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].hit && !work->slots[i].collected)
			return false;
	return work->registered && !work->leaving && now >= work->not_before;
}

/* ---- Commands ---- */

static void watch_descriptor(struct work *work, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
	if (descriptor >= 0)
		(void)epoll_ctl(work->wake, EPOLL_CTL_ADD, descriptor, &event);
}

void work_end_held(struct slot *slot, enum queue_ending_kind why, const char *text)
{
	if (!slot->held)
		return;
	slot_fail(slot, STATUS_NO, text);
	slot->run.result.ending.kind = why;
}

/*
 * If a command cannot be started on this machine (no space, no process, no answer of the store
 * about its resources), the next one could not either. Each try uses up one temporary failure that
 * a command may have, and is faster than real work: without a pause this worker would soon make
 * all commands fail.
 */
static void note_start(struct work *work, const struct slot *slot)
{
	const struct queue_ending *ending = &slot->run.result.ending;
	int64_t now = clock_now(), pause = PAUSE_FIRST;
	if (slot->child.pid > 0)
		work->not_started = 0;
	if (slot->child.pid > 0 || ending->kind != ENDING_EXITED || now < work->not_before)
		return;
	for (unsigned i = 0; i < work->not_started && pause < PAUSE_LONGEST; i++)
		pause *= 2;
	work->not_before = now + (pause < PAUSE_LONGEST ? pause : PAUSE_LONGEST);
	work->worth_trying = true;
	if (!work->not_started++)
		message_error("command %llu cannot be started here now: %s; it is put back, and "
			      "this worker takes nothing for a while",
			(unsigned long long)slot->run.item.id, ending->text);
}

/*
 * Whether another worker may have run the command that slot holds, which is ready to start: we have
 * not seen for a while that we are registered. A look at the workers that begins from now on lets
 * it start, however long the rest of that turn takes. The next turn looks at once; if it cannot,
 * the usual looks follow.
 */
static bool must_look_first(struct work *work, struct slot *slot)
{
	int64_t now = clock_boot(), looked = work->judge.looked;
	if (now - looked <= UNSEEN * work->options->period)
		return false;
	if (!slot->look_from) {
		slot->look_from = now;
		work->period_at = 0;
	}
	return looked < slot->look_from;
}

/* Start the command that slot holds, if its resources are ready, and it is certainly still ours. */
static void start_held(struct work *work, struct slot *slot)
{
	struct error why;
	char *const *names = slot->run.item.resources;
	enum resource_state state =
		names ? resources_need(&work->resources, names, &why) : RESOURCE_READY;
	if (state != RESOURCE_READY)
		slot->look_from = 0;
	if (state == RESOURCE_BUILDING)
		return;
	if (state == RESOURCE_FAILED) {
		slot_fail(slot, STATUS_NO, why.text);
	} else if (state == RESOURCE_POSTPONED) {
		slot_fail(slot, STATUS_TEMPORARY, why.text);
	} else if (must_look_first(work, slot)) {
		return;
	} else {
		char **extra = names ? resources_environment(&work->resources, names) : NULL;
		slot_start(slot, &work->place, extra);
		template_free(extra);
		message_detail("command %llu has started", (unsigned long long)slot->run.item.id);
		if (slot->child.pid > 0)
			watch_descriptor(work, slot->child.end.descriptor);
	}
	note_start(work, slot);
}

static void start_all_held(struct work *work)
{
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].held)
			start_held(work, &work->slots[i]);
}

void work_start(struct work *work, struct queue_run *run)
{
	struct slot *slot = work->slots;
	while (slot->held || slot->busy)
		slot++;
	if (work_is_idle(work))
		work->quiet_since = clock_now();
	slot_take(slot, run);
	if (work->leaving)
		/* We took it before leaving; the answer of that transaction came late. */
		work_end_held(slot, ENDING_PREEMPTED, WORK_NOT_STARTED);
	else
		start_held(work, slot);
}

/* Prepare an ended command for handing in. */
static void collect(struct work *work, struct slot *slot)
{
	struct error err;
	enum status status = slot_collect(slot, &work->place, &err);
	if (status != STATUS_OK) {
		if (!work->said_full)
			message_error("the output of command %llu cannot be kept: %s; trying again",
				(unsigned long long)slot->run.item.id, err.text);
		work->said_full = true;
		return;
	}
	work->said_full = false;
	work->ended[work->ended_count++] = slot;
	work->quiet_since = clock_now();
}

/* now: taken before the last look for notices, so that all notices until then are known. */
static void tick(struct work *work, int64_t now)
{
	resources_tick(&work->resources);
	for (size_t i = 0; i < work->slot_count; i++) {
		struct slot *slot = &work->slots[i];
		bool over = slot_tick(slot, &work->place, now);
		if (slot->hit && !over)
			(void)epoll_ctl(
				work->wake, EPOLL_CTL_DEL, slot->child.end.descriptor, NULL);
		if (slot->hit && over && !slot->told)
			work_take_held(work);
		if (over)
			collect(work, slot);
	}
}

/* ---- Waiting ---- */

static int64_t due(const struct work *work)
{
	int64_t now = clock_now(), at = source_set_due(work->options->watch);
	for (size_t i = 0; i < work->slot_count; i++)
		at = clock_earlier(at, slot_due(&work->slots[i]));
	at = clock_earlier(at, work_watchdog_due(work));
	if (work->leaving)
		at = clock_earlier(at, work->until);
	if (work->failures)
		/* The retry time may have passed; still return a finite deadline. */
		return clock_earlier(
			at, work->again > work->asked_at ? work->again : work->asked_at + PATIENCE);
	if (work->exchange.pending && work->registered)
		return now;
	if (!work->leaving || work_looks_at_others(work, now))
		at = clock_earlier(at, work->period_at);
	if (work->leaving)
		return at;
	if (work->not_before > now)
		at = clock_earlier(at, work->not_before);
	if (work_free_slots(work))
		at = clock_earlier(at, exchange_pauses_due(&work->pauses));
	if (work_asks_whether_drained(work, now))
		at = clock_earlier(at, work->drained_at);
	return at;
}

/* A source may have another descriptor after each look. */
static void watch_sources(struct work *work)
{
	struct pollfd polls[SOURCE_SET_SOURCES];
	size_t count = source_set_poll(work->options->watch, polls);
	for (size_t i = 0; i < count; i++)
		watch_descriptor(work, polls[i].fd);
}

static void wait_for_something(struct work *work)
{
	char prefix[QUEUE_KEY_MAX];
	store_revision revision = work->exchange.seen;
	struct error err;
	watch_sources(work);
	int64_t until = due(work);
	/* If a new command could not be taken, or a request is due, do not wait for new ones. */
	if (!work_may_take(work, clock_now()) || work->worth_trying || work->failures ||
		!work_free_slots(work)) {
		(void)descriptor_wait(work->wake, until);
		return;
	}
	queue_key(work->queue, prefix, work->exchange.error_pending ? "error" : "wait/");
	enum status status =
		store_wait(work->queue->store, prefix, &revision, until, work->wake, &err);
	if (status == STATUS_OK)
		work->worth_trying = true;
	else if (status == STATUS_NO || status == STATUS_TIMEOUT)
		work->exchange.seen = revision;
	else
		work_note_answer(work, status, &err);
}

static int loop(struct work *work)
{
	for (;;) {
		int64_t now = clock_now();
		work_take_signals(work);
		work_take_notices(work);
		if (reaper_keep(&work->reaper))
			watch_descriptor(work, work->reaper.socket);
		tick(work, now);
		work_ask_store(work);
		start_all_held(work);
		work_watchdog(work, clock_now());
		if (work->leaving && work_has_left(work))
			return work->code;
		wait_for_something(work);
	}
}

/* ---- Beginning and end ---- */

static enum status look_at(const char *path, struct error *err)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return STATUS_OK; /* it is not there yet: we shall make it */
	return access_check(path, &st, false, err);
}

/* We run what the queue says, so no other user may be able to write to it. */
static enum status check_access(const struct work *work, struct error *err)
{
	enum status status = store_check_private(work->queue->store, err);
	return status == STATUS_OK ? look_at(work->queue->files, err) : status;
}

static enum status open_signals(struct work *work, struct error *err)
{
	ending_catch();
	work->signals = ending_descriptor();
	work->wake = epoll_create1(EPOLL_CLOEXEC);
	if (work->signals < 0 || work->wake < 0)
		return error_set(
			err, STATUS_TEMPORARY, "cannot receive signals: %s", strerror(errno));
	watch_descriptor(work, work->signals);
	return STATUS_OK;
}

static enum status begin(struct work *work, struct error *err)
{
	const struct work_options *options = work->options;
	enum status status = check_access(work, err);
	if (status == STATUS_OK && options->joblog)
		status = work_open_joblog(options->joblog, &work->joblog, err);
	if (status == STATUS_OK)
		status = open_signals(work, err);
	if (status == STATUS_OK)
		status = reaper_start(&work->reaper, err);
	if (status != STATUS_OK)
		return status;
	watch_descriptor(work, work->reaper.socket); /* readable when the reaper is gone */
	work->slots = xcalloc(options->slots, sizeof(*work->slots));
	work->ended = xcalloc(options->slots, sizeof(struct slot *));
	work->slot_count = options->slots;
	for (size_t i = 0; i < work->slot_count; i++)
		work->slots[i] = (struct slot){
			.number = i, .child.end.descriptor = -1, .out = -1, .err = -1};
	store_set_patience(work->queue->store, PATIENCE);
	status = resources_open(&work->resources, &work->place, err);
	if (status == STATUS_OK)
		watch_descriptor(work, work->resources.descriptor);
	return status;
}

static void end(struct work *work)
{
	for (size_t i = 0; i < work->slot_count; i++)
		slot_clear(&work->slots[i], &work->place);
	resources_release(&work->resources);
	exchange_pauses_release(&work->pauses);
	beater_stop(work->beater);
	judge_release(&work->judge);
	reaper_stop(&work->reaper);
	free(work->slots);
	free(work->ended);
	if (work->joblog >= 0)
		close(work->joblog);
	if (work->signals >= 0)
		close(work->signals);
	if (work->wake >= 0)
		close(work->wake);
	/* ended_by ends us, not a caught PIPE (the reader of stderr is gone). */
	ending_set(work->ended_by);
}

int work_run(struct queue *queue, const struct work_options *options)
{
	struct error err;
	struct work work = {.queue = queue,
		.options = options,
		.wake = -1,
		.signals = -1,
		.joblog = -1,
		.kill_at = CLOCK_NEVER,
		.until = CLOCK_NEVER};
	work.place = (struct slot_context){.queue = queue,
		.worker = &work.worker,
		.reaper = &work.reaper,
		.devices = options->devices,
		.kill_after = options->kill_after};
	work.exchange =
		(struct exchange){.queue = queue, .worker = &work.worker, .pauses = &work.pauses};
	int code = begin(&work, &err) == STATUS_OK ? loop(&work) : message_fail(&err);
	end(&work);
	return code;
}
