/* SPDX-License-Identifier: MIT */
/* preempt-queue join: wait until all commands, or the chosen ones, are over. And done: ask. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/process/ending.h"
#include "client.h"
#include "queue/say.h"

#define ALONE 5000 /* ms without a worker, after which a warning is printed */

struct joiner {
	struct queue *queue;
	int64_t began, deadline;
	uint64_t told, unfit; /* commands that messages were about */
	/* How many were over at the first look, for the line of progress. */
	bool looked;
	uint64_t at_first;
	/* The workers: when we looked at them, when one was last alive. */
	struct queue_ring ring;
	int64_t judged, alive;
	bool warned;
	int64_t silent;	     /* since when the store does not answer; 0: it does */
	struct lister ended; /* --follow */
	bool lost;	     /* there is an error that waiting cannot cure */
	int code;	     /* of the command that failed first */
};

static void show_progress(struct joiner *j, const struct queue_outcome *outcome)
{
	uint64_t over = 0;
	for (size_t i = QUEUE_SUCCEEDED; i < QUEUE_STATES; i++)
		over += outcome->in[i];
	if (!j->looked)
		j->at_first = over;
	j->looked = true;
	say_progress(
		outcome->in, over > j->at_first ? over - j->at_first : 0, clock_now() - j->began);
}

/* ---- Looking ---- */

/* Warn early, long before --recovery is over: the user may have forgotten to start workers.
 * STATUS_TEMPORARY: no worker was alive for --recovery. */
static enum status look_at_workers(
	struct joiner *j, const struct queue_outcome *outcome, struct error *err)
{
	size_t registered, alive;
	int64_t now = clock_now();
	uint64_t waiting = outcome->in[QUEUE_WAITING] + outcome->in[QUEUE_BLOCKED];
	struct text recovery = {0};
	if (now - j->judged < 1000)
		return STATUS_OK;
	j->judged = now;
	enum status status = queue_ring_alive(&j->ring, j->queue, &registered, &alive, err);
	if (status != STATUS_OK)
		return status;
	if (alive || now - j->alive < ALONE) {
		j->alive = alive ? now : j->alive;
		j->warned = false;
	}
	text_add_age(&recovery, options.recovery);
	if (!alive && now - j->alive >= options.recovery) {
		j->lost = true;
		status = error_set(err, STATUS_TEMPORARY,
			"queue %s: no worker was alive for %s (%zu registered): %" PRIu64
			" commands wait, %" PRIu64 " were being run; nothing is lost: start "
			"workers with preempt-queue work, and join again",
			j->queue->name, text_string(&recovery), registered, waiting,
			outcome->in[QUEUE_RUNNING]);
	} else if (now - j->alive >= ALONE && !j->warned) {
		message_info("queue %s: no worker is alive, %" PRIu64
			     " commands wait; waiting up to %s for a worker (--recovery)",
			j->queue->name, waiting, text_string(&recovery));
		j->warned = true;
	}
	text_release(&recovery);
	return status;
}

/* Look once. STATUS_TIMEOUT: a command is not over, so wait. */
static enum status look(struct joiner *j, struct queue_outcome *outcome, struct error *err)
{
	struct error trouble = {0};
	enum status found = client_outcome(j->queue, &j->told, outcome, err);
	/* After the outcome: this may be the last look. */
	enum status status = options.follow && outcome->scheduled
				     ? list_ended(j->queue, &j->ended, outcome->over, &trouble)
				     : STATUS_OK;
	if (status_is_error(status)) {
		*err = trouble;
		j->lost = ferror(stdout);
		return status;
	}
	if (found != STATUS_TIMEOUT)
		return found;
	if (outcome->unfit && outcome->unfit != j->unfit) {
		message_error("warning: command %" PRIu64 " needs more time (--needs) than any "
			      "registered worker has left",
			outcome->unfit);
		j->unfit = outcome->unfit;
	}
	show_progress(j, outcome);
	status = look_at_workers(j, outcome, err);
	return status == STATUS_OK ? STATUS_TIMEOUT : status;
}

/* The store does not answer. STATUS_OK: ask again. Otherwise --timeout or --recovery is over. */
static enum status outlast(struct joiner *j, struct error *err)
{
	int64_t now = clock_now();
	if (!j->silent) {
		message_error("%s; trying again", err->text);
		j->silent = now;
	}
	if (now - j->silent >= options.recovery)
		return STATUS_TEMPORARY;
	if (now >= j->deadline) {
		error_prefix(err, "the commands are not over after the --timeout");
		return err->status = STATUS_TIMEOUT;
	}
	ending_wait(NULL, 0, clock_earlier(clock_after(1000), j->deadline));
	return STATUS_OK;
}

/* Wait for a change, but do not look after each of many commands: workers need the store more. */
static enum status wait_for_change(struct joiner *j, int64_t took,
	const struct queue_outcome *outcome, store_revision *since, struct error *err)
{
	int64_t now = clock_now(), pause = (now - j->began) / 20;
	if (now >= j->deadline)
		return error_set(err, STATUS_TIMEOUT,
			"queue %s: %" PRIu64 " commands wait and %" PRIu64
			" run after the --timeout",
			j->queue->name, outcome->in[QUEUE_WAITING] + outcome->in[QUEUE_BLOCKED],
			outcome->in[QUEUE_RUNNING]);
	pause = pause > 200 ? 200 : pause < 2 ? 2 : pause;
	/* Spend at most a tenth of the time on reading. */
	pause = pause > 10 * took ? pause : 10 * took;
	ending_wait(NULL, 0, clock_earlier(now + pause, j->deadline));
	if (client_interrupted())
		return STATUS_OK;
	return client_wait(j->queue, QUEUE_OVER, since, clock_earlier(now + 500, j->deadline), err);
}

static enum status wait_until_over(
	struct joiner *j, struct queue_outcome *outcome, struct error *err)
{
	store_revision since = j->queue->revision;
	enum status status = STATUS_OK;
	while (status == STATUS_OK && !client_interrupted()) {
		int64_t began = clock_now();
		status = look(j, outcome, err);
		if (status == STATUS_TIMEOUT) {
			j->silent = 0;
			status = wait_for_change(j, clock_now() - began, outcome, &since, err);
			if (status != STATUS_TEMPORARY)
				continue;
		}
		if (status != STATUS_TEMPORARY || j->lost)
			return status;
		status = outlast(j, err);
	}
	return status;
}

static enum status join(struct queue *queue, void *context, struct error *err)
{
	struct joiner *j = context;
	/* With counts: the line of progress and the messages have numbers. */
	struct queue_outcome outcome = {0};
	struct queue_view view;
	struct text text = {0};
	j->queue = queue;
	enum status status = wait_until_over(j, &outcome, err);
	uint64_t first = outcome.failed ? outcome.failed : outcome.because;
	message_progress(NULL);
	list_totals(&text, outcome.in);
	if (status == STATUS_OK && !client_interrupted())
		message_info("queue %s: %s", queue->name, text_string(&text));
	text_release(&text);
	if (status == STATUS_BROKEN && queue_inspect(queue, first, &view, NULL) == STATUS_OK) {
		j->code = queue_ending_code(&view.result.ending);
		queue_view_release(&view);
	}
	queue_ring_release(&j->ring);
	return status;
}

int run_join(const struct args_rest *rest)
{
	int64_t now = clock_now();
	struct joiner j = {.began = now, .deadline = client_deadline(), .alive = now};
	client_catch();
	int code = client_run(rest, 0, join, &j);
	return options.exit_status && j.code ? j.code : code;
}

/* ---- done ---- */

static enum status look_once(struct queue *queue, void *context, struct error *err)
{
	struct queue_outcome outcome = {0};
	uint64_t told = 0;
	(void)context;
	enum status status = client_outcome(queue, &told, &outcome, err);
	if (status != STATUS_TIMEOUT)
		return status;
	return error_set(err, STATUS_NO, "queue %s: %" PRIu64 " commands wait, %" PRIu64 " run",
		queue->name, outcome.in[QUEUE_WAITING] + outcome.in[QUEUE_BLOCKED],
		outcome.in[QUEUE_RUNNING]);
}

int run_done(const struct args_rest *rest)
{
	return client_run(rest, 0, look_once, NULL);
}
