/* SPDX-License-Identifier: MIT */
#include "compose/batch.h"

#include <signal.h>
#include <string.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/message.h"
#include "platform/slurm.h"
#include "proto/claim.h"
#include "run/attempt.h"

#define ASK_LIMIT   5000     /* ms to ask Slurm for the deadline */
#define STORE_LIMIT 3000     /* ms for one try to notify the tasks */
#define TELL_EVERY  1000     /* ms between two tries */
#define TELL_LIMIT  5000     /* ms after which we send the launcher a signal instead */
#define FAR_AWAY    86400000 /* ms: an end of the job further away did not cause the notice */

enum status batch_open(struct batch *batch, const char *const *sources, size_t count, int64_t grace,
	struct error *err)
{
	static const int numbers[] = {SIGCHLD, SIGINT, SIGHUP, SIGQUIT};
	struct source_options how = {.grace = grace};
	agent_hold_signals(sources, count);
	enum status status = loop_open(&batch->loop, err);
	if (status == STATUS_OK)
		status = loop_open_signals(
			&batch->loop, numbers, sizeof(numbers) / sizeof(numbers[0]), err);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		struct source *source;
		status = source_open(&source, sources[i], &how, err);
		if (status == STATUS_OK)
			status = source_set_add(&batch->watch, source, err);
	}
	return status;
}

void batch_close(struct batch *batch)
{
	source_set_release(&batch->watch);
	loop_close(&batch->loop);
}

static void take_notice(struct batch *batch, const struct notice *notice)
{
	struct slurm_job job;
	if (batch->notices++ && notice_deadline(notice) >= notice_deadline(&batch->notice))
		return;
	message_info("notice: %s%s%s", notice->source, *notice->reason ? ": " : "", notice->reason);
	batch->question->noticed = true;
	batch->notice = *notice;
	batch->tell_at = clock_now();
	batch->forward_at = clock_after(TELL_LIMIT);
	/*
	 * Slurm knows the end of the job: by its time limit, or earlier when it preempts the job.
	 * The end of a cancelled job is in the past, although KILL comes later: do not use it.
	 * If the notice's deadline has passed already, do not ask Slurm, which may be slow now.
	 */
	if (batch->command.pid && batch->slurm_job && notice->deadline > notice->received &&
		slurm_ask(batch->slurm_job, clock_after(ASK_LIMIT), &job, NULL) == STATUS_OK &&
		!strcmp(job.state, "RUNNING")) {
		int64_t left = job.end - clock_utc(); /* negative: no end is known */
		if (left > 0 && left < FAR_AWAY && clock_after(left) < batch->notice.deadline)
			batch->notice.deadline = clock_after(left);
	}
}

static void reap(struct batch *batch)
{
	if (subprocess_finish(&batch->command, clock_now()) == SUBPROCESS_ENDED)
		batch->question->code = batch->command.code;
	/* If we are process 1, the orphans are our children, too. */
	subprocess_reap_others(NULL);
}

static void take_signals(struct batch *batch)
{
	struct signalfd_siginfo info;
	for (int number; (number = loop_take_signal(&batch->loop, &info));) {
		if (number == SIGCHLD)
			continue;
		batch->ended_by = number;
		/* The terminal has sent it to the launcher, too: srun must not count it twice. */
		if (info.ssi_code != SI_KERNEL)
			subprocess_signal(&batch->command, number);
	}
	reap(batch);
}

/* Claim one run. STATUS_NO: see tell_once. */
static enum status tell_run(const struct batch *batch, struct store *store, const char *run,
	int64_t limit, struct error *err)
{
	const struct requeue_question *question = batch->question;
	struct claim claim = {.outside = true, .then = THEN_EXIT, .notice = batch->notice};
	struct view view = {0};
	enum status status = attempt_view(store, run, 0, &view, err);
	if (status == STATUS_OK && run == question->run &&
		!requeue_is_ours(question, &view.attempt))
		status = error_set(err, STATUS_NO, "run %s has no attempt of this job yet", run);
	else if (status == STATUS_OK) {
		status = claim_make(store, &view, &claim, limit, err);
		/* Another claim came first. */
		if (status == STATUS_NO && view.agreement.claimed)
			status = STATUS_OK;
	}
	view_release(&view);
	return status;
}

/*
 * Try once to claim all runs of this job. STATUS_OK: the tasks of one know. STATUS_NO: it has no
 * attempt yet, or one ends without a claim, and the next one may follow.
 */
static enum status tell_once(const struct batch *batch, int64_t limit, struct error *err)
{
	const struct requeue_question *question = batch->question;
	struct store *store = NULL;
	struct error unused;
	char name[129] = "";
	enum status status = store_open(&store, question->store, 0, limit, err);
	if (status == STATUS_OK) {
		store_set_deadline(store, limit);
		status = tell_run(batch, store, question->run, limit, err);
	}
	while (!status_is_error(status) &&
		requeue_next_run(store, question, name, &unused) == STATUS_OK)
		if (tell_run(batch, store, name, limit, &unused) == STATUS_OK)
			status = STATUS_OK;
	store_close(store);
	return status;
}

/*
 * Notify the tasks through the store, and go on, for a run that begins later; if that takes too
 * long, send the launcher a signal, once.
 */
static void tell(struct batch *batch)
{
	struct error err;
	int number = SIGUSR1;
	int64_t limit = clock_earlier(clock_after(STORE_LIMIT), batch->forward_at);
	if (tell_once(batch, clock_later(limit, clock_after(TELL_EVERY)), &err) == STATUS_OK)
		batch->forward_at = CLOCK_NEVER;
	batch->tell_at = clock_earlier(clock_after(TELL_EVERY), batch->forward_at);
	if (clock_now() < batch->forward_at)
		return;
	batch->forward_at = CLOCK_NEVER;
	/* srun passes USR1 on to its tasks; at TERM it kills them. */
	if (!batch->slurm_job)
		number = batch->notice.signal ? batch->notice.signal : SIGTERM;
	message_info("cannot notify the tasks through the store: %s: sending the command a SIG%s",
		err.text, sigabbrev_np(number));
	subprocess_signal(&batch->command, number);
}

static void wait_once(struct batch *batch, int64_t deadline)
{
	struct notice notice;
	source_set_watch(&batch->watch, &batch->loop);
	loop_wake_at(&batch->loop, deadline);
	loop_wait(&batch->loop);
	while (source_set_take(&batch->watch, &notice))
		take_notice(batch, &notice);
	take_signals(batch);
}

enum status batch_run(struct batch *batch, char *const *command, struct error *err)
{
	/* In our process group, so that a signal to the batch script's group also ends it. */
	struct subprocess_options start = {.argv = command, .in_our_group = true};
	enum status status = subprocess_start(&batch->command, &start, err);
	while (status == STATUS_OK && batch->command.pid) {
		bool tells = batch->question->noticed;
		if (tells && clock_now() >= batch->tell_at)
			tell(batch);
		wait_once(batch, tells ? batch->tell_at : CLOCK_NEVER);
	}
	struct notice notice;
	while (source_set_take_held(&batch->watch, &notice))
		take_notice(batch, &notice);
	return status;
}

bool batch_wait(struct batch *batch, int64_t deadline)
{
	unsigned notices = batch->notices;
	while (clock_now() < deadline && !batch->ended_by && batch->notices == notices)
		wait_once(batch, deadline);
	return clock_now() >= deadline;
}
