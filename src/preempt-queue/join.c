/* SPDX-License-Identifier: MIT */
/* preempt-queue join: wait until all commands, or the chosen ones, have ended. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/process/ending.h"
#include "client.h"
#include "queue/after.h"
#include "queue/throughput.h"
#include "queue/workers/workers.h"
#include "rows.h"

#define ALONE 5000 /* ms without a worker, after which a warning is printed */

static int64_t recovery = 3600000, watchdog;
static bool exit_status, follow;
static const char *tag;

const struct args_option join_options[] = {
	{"recovery", "D", "exit 75 if no worker has been alive for D (1h)", ARGS_DURATION,
		.target = &recovery},
	{"watchdog", "D", "report running commands if none has ended for D", ARGS_DURATION,
		.target = &watchdog},
	{"exit-status", NULL, "exit with the code of the first failed command, not 44 or 1",
		ARGS_FLAG, .target = &exit_status},
	{"tag", "T", "wait for commands with this tag", ARGS_TEXT, .target = &tag},
	{"follow", NULL, "print a line for each command that ends", ARGS_FLAG, .target = &follow,
		.letter = 'f'},
	{0},
};

struct joiner {
	struct queue *queue;
	struct queue_selection set;
	int64_t took; /* ms that the last look_at_set took */
	int wake;
	int64_t began, deadline;
	struct queue_throughput progress;
	bool terminal, shown; /* stderr is a terminal; the line of progress is on it */
	struct judge judge;
	size_t registered;
	bool warned,
		gave_up; /* warned that no worker is alive; an error that waiting cannot cure */
	int64_t judged, alive; /* when workers were looked at; when one was last alive */
	uint64_t over;	       /* commands that are over; over_since: when this last changed */
	int64_t over_since, reported;
	store_revision followed;
	int64_t unanswered; /* since when the store does not answer; 0: it does */
	int code;	    /* of the first that failed */
};

static void hide_progress(struct joiner *j)
{
	if (j->shown)
		fputs("\r\033[K", stderr);
	j->shown = false;
}

static void show_progress(struct joiner *j)
{
	struct text line = {0};
	struct winsize size = {0};
	if (!j->terminal)
		return;
	size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
			       ? size.ws_col - 1u
			       : 79;
	queue_throughput_line(&j->progress, clock_now(), width, &line);
	fprintf(stderr, "\r\033[K%s", text_string(&line));
	j->shown = true;
	text_release(&line);
}

static enum status print_row(void *context, const struct queue_view *view)
{
	struct joiner *j = context;
	struct text row = {0};
	rows_add(&row, view, clock_utc());
	hide_progress(j);
	fputs(text_string(&row), stdout);
	text_release(&row);
	return STATUS_OK;
}

/* ---- The workers ---- */

static enum status say_running(void *context, const struct queue_view *view)
{
	uint64_t *left = context;
	if (!*left)
		return STATUS_NO;
	--*left;
	message_error("command %" PRIu64 "%s%s%s: has run for %s, on worker %s (%s)", view->item.id,
		view->item.tag ? " [" : "", view->item.tag ? view->item.tag : "",
		view->item.tag ? "]" : "", rows_time(clock_utc() - view->lease.since).text,
		view->lease.worker, view->lease.host);
	return STATUS_OK;
}

static void say_all_running(struct joiner *j)
{
	uint64_t most = 10;
	hide_progress(j);
	(void)queue_visit_running(j->queue, say_running, &most, NULL);
}

/* Warn early, long before --recovery is over: the user may have forgotten to start workers. */
static void warn_no_workers(struct joiner *j, const struct queue_count *count)
{
	hide_progress(j);
	message_info("queue %s: no worker is alive, %" PRIu64 " commands wait; waiting up to %s "
		     "for a worker (--recovery)",
		j->queue->name, count->waiting, rows_time(recovery).text);
	j->warned = true;
}

/* STATUS_TEMPORARY: no worker was alive for --recovery. */
static enum status look_at_workers(
	struct joiner *j, const struct queue_count *count, struct error *err)
{
	int64_t now = clock_now();
	size_t alive;
	if (now - j->judged < 1000)
		return STATUS_OK;
	j->judged = now;
	enum status status = judge_count_alive(&j->judge, j->queue, &j->registered, &alive, err);
	if (status != STATUS_OK)
		return status;
	if (alive)
		j->alive = now;
	if (now - j->alive < ALONE)
		j->warned = false;
	else if (!j->warned && now - j->alive < recovery)
		warn_no_workers(j, count);
	if (alive || now - j->alive < recovery)
		return STATUS_OK;
	say_all_running(j);
	j->gave_up = true;
	return error_set(err, STATUS_TEMPORARY,
		"queue %s: no worker was alive for %s (%zu registered): %" PRIu64
		" commands wait, %" PRIu64 " were being run; nothing is lost: start workers with "
		"preempt-queue work, and join again",
		j->queue->name, rows_time(now - j->alive).text, j->registered, count->waiting,
		count->running);
}

static void watch(struct joiner *j, const struct queue_count *count)
{
	int64_t now = clock_now();
	if (queue_throughput_over(count) != j->over) {
		j->over = queue_throughput_over(count);
		j->over_since = j->reported = now;
	}
	if (!watchdog || now - j->reported < watchdog)
		return;
	j->reported = now;
	hide_progress(j);
	message_error("watchdog: no command of queue %s has ended for %s; %" PRIu64 " run, %" PRIu64
		      " wait",
		j->queue->name, rows_time(now - j->over_since).text, count->running,
		count->waiting);
	say_all_running(j);
}

/* ---- The end ---- */

/* All are over: take their outcome. */
static enum status finish(struct joiner *j, const struct queue_awaited *outcome, struct error *err)
{
	enum status status = queue_awaited_answer(j->queue, &j->set, outcome, err);
	if (outcome->failed)
		j->code = queue_ending_code(&outcome->first.ending);
	else if (outcome->kept_going)
		j->code = queue_ending_code(&outcome->first_kept_going.ending);
	return status;
}

/*
 * Look at the chosen commands, or at all; with --tag this reads the whole queue. STATUS_TIMEOUT:
 * some are not over.
 */
static enum status look_at_set(struct joiner *j, const struct queue_count *count, struct error *err)
{
	struct queue_awaited outcome;
	int64_t began = clock_now();
	enum status status = queue_awaited(j->queue, &j->set, count, &outcome, err);
	j->took = clock_now() - began;
	if (status != STATUS_OK)
		return status;
	return outcome.going_on ? STATUS_TIMEOUT : finish(j, &outcome, err);
}

/* With --follow: print the commands that have ended since the last call. */
static enum status print_ended(struct joiner *j, struct error *err)
{
	if (!follow)
		return STATUS_OK;
	enum status status = queue_visit_done(j->queue, &j->followed, NULL, print_row, j, err);
	j->gave_up = status == STATUS_OK && client_stdout_lost();
	return j->gave_up ? error_set(err, STATUS_TEMPORARY, "cannot write to stdout") : status;
}

/* Look once. STATUS_TIMEOUT: a command is not over, so wait. */
static enum status look(struct joiner *j, struct queue_count *count, struct error *err)
{
	struct queue_failure failure;
	struct error trouble;
	enum status status = queue_carry_on(j->queue, NULL, err);
	if (status == STATUS_OK)
		status = queue_count(j->queue, count, err);
	if (status != STATUS_OK)
		return status;
	queue_throughput_note(&j->progress, count, clock_now());
	if (follow && !j->followed)
		j->followed = count->revision;
	/* Read the failure after the counts: the transaction that counts a failed command also
	 * records its failure, so a failure that was counted is not missed. */
	status = queue_raise(j->queue, clock_now(), -1, &failure, err);
	if (status == STATUS_OK)
		return look(j, count, err);
	if (status != STATUS_NO && status != STATUS_TIMEOUT)
		return status;
	status = j->set.count || j->set.tag ||
				 (status == STATUS_NO && !count->waiting && !count->running)
			 ? look_at_set(j, count, err)
			 : STATUS_TIMEOUT;
	/* Print what has ended after look_at_set has seen it: this may be the last look. */
	enum status printed = print_ended(j, &trouble);
	if (printed != STATUS_OK)
		*err = trouble;
	if (printed != STATUS_OK || status != STATUS_TIMEOUT)
		return printed != STATUS_OK ? printed : status;
	watch(j, count);
	status = look_at_workers(j, count, err);
	return status == STATUS_OK ? STATUS_TIMEOUT : status;
}

/* The store does not answer. STATUS_OK: ask again. Otherwise --timeout or --recovery is over. */
static enum status outlast(struct joiner *j, struct error *err)
{
	if (j->gave_up)
		return STATUS_TEMPORARY;
	int64_t now = clock_now();
	bool first = !j->unanswered;
	if (first)
		j->unanswered = now;
	if (now - j->unanswered >= recovery)
		return STATUS_TEMPORARY;
	if (now >= j->deadline) {
		error_prefix(err, "the commands are not over after the --timeout");
		return err->status = STATUS_TIMEOUT;
	}
	if (first) {
		hide_progress(j);
		message_error("%s; trying again", err->text);
	}
	ending_wait(NULL, 0, clock_earlier(clock_after(1000), j->deadline));
	return STATUS_OK;
}

/* Wait until a count changes, or for the time between two looks. */
static enum status wait_for_change(
	struct joiner *j, const struct queue_count *count, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	store_revision since = count->revision;
	int64_t now = clock_now();
	int64_t next = clock_earlier(now + (j->terminal ? 500 : 1000), j->deadline);
	if (now >= j->deadline)
		return error_set(err, STATUS_TIMEOUT,
			"queue %s: %" PRIu64 " commands wait and %" PRIu64
			" run after the --timeout",
			j->queue->name, count->waiting, count->running);
	/* Do not read the counts after each of many commands: workers need the store more. */
	int64_t pause = (now - j->began) / 20;
	pause = pause > 200 ? 200 : pause < 2 ? 2 : pause;
	/* If reading the queue takes long, spend at most a tenth of the time on it. */
	pause = pause > 10 * j->took ? pause : 10 * j->took;
	ending_wait(NULL, 0, clock_earlier(now + pause, j->deadline));
	if (client_interrupted())
		return STATUS_OK;
	queue_key(j->queue, prefix, "count/");
	enum status status = store_wait(j->queue->store, prefix, &since, next, j->wake, err);
	return status == STATUS_TIMEOUT || status == STATUS_NO ? STATUS_OK : status;
}

static enum status join(struct joiner *j, struct error *err)
{
	enum status status = STATUS_OK;
	while (status == STATUS_OK && !client_interrupted()) {
		struct queue_count count;
		store_set_patience(j->queue->store, client_patience(j->deadline));
		status = look(j, &count, err);
		if (status == STATUS_TIMEOUT) {
			show_progress(j);
			j->unanswered = 0;
			status = wait_for_change(j, &count, err);
			if (status == STATUS_OK)
				continue;
		}
		if (status != STATUS_TEMPORARY)
			return status;
		status = outlast(j, err);
	}
	return status;
}

/* ---- The command ---- */

int run_join(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	int64_t now = clock_now();
	struct parse_numbers ids = {0};
	struct joiner j = {.queue = &client.queue,
		.wake = client_catch(),
		.began = now,
		.deadline = client_deadline(),
		.alive = now,
		.over_since = now,
		.reported = now,
		.judged = now - 1000,
		.terminal = isatty(STDERR_FILENO) && !message_is_quiet()};
	enum status status = client_select(rest, tag, &ids, &j.set, &err);
	if (status == STATUS_OK)
		status = client_open(&client, 0, &err);
	if (status == STATUS_OK)
		status = join(&j, &err);
	hide_progress(&j);
	judge_release(&j.judge);
	parse_numbers_release(&ids);
	bool failed = status == STATUS_BROKEN || status == STATUS_NO;
	int code = client_end_asked(&client, status, &err);
	return failed && exit_status && j.code ? j.code : code;
}
