/* SPDX-License-Identifier: MIT */
#include "group/restart.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/process.h"
#include "group/agent_inside.h"
#include "group/attempt.h"
#include "group/history.h"
#include "group/pulse.h"
#include "notice/watch.h"

#define OPEN_PATIENCE 10000 /* ms for the store */
#define LOOK_EVERY    250   /* ms between looks for a notice while the store is waited for */
#define GONE_EVERY    1000  /* ms between looks for agents that are gone */

/* The time between two attempts: no agent runs, but notices and signals come. */
struct between {
	const struct agent_options *options;
	struct watch watch;
	int signals; /* signalfd of those that end us */
	bool noticed;
	int ended_by; /* INT, HUP, QUIT; 0 */
};

static enum status open_between(struct between *between, struct error *err)
{
	static const int endings[] = {SIGINT, SIGHUP, SIGQUIT};
	const struct agent_options *options = between->options;
	sigset_t set;
	sigemptyset(&set);
	process_add_heeded(&set, endings, sizeof(endings) / sizeof(endings[0]));
	between->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (between->signals < 0)
		return error_set(
			err, STATUS_TEMPORARY, "cannot receive signals: %s", strerror(errno));
	return agent_watch_sources(options, &between->watch, err);
}

static void take_notice(struct between *between, const struct notice *notice)
{
	message_info("notice: %s%s%s", notice->source, *notice->reason ? ": " : "", notice->reason);
	between->noticed = true;
}

/* Wait until deadline; false: a notice or a signal came. */
static bool wait_between(struct between *between, int64_t deadline)
{
	struct pollfd polled[1 + WATCH_SOURCES];
	do {
		struct signalfd_siginfo info;
		struct notice notice;
		struct error err;
		size_t which;
		enum watch_event event;
		int64_t due = watch_due(&between->watch);
		polled[0] = (struct pollfd){.fd = between->signals, .events = POLLIN};
		size_t count = watch_poll(&between->watch, polled + 1);
		(void)poll(polled, 1 + count, clock_poll_timeout(due < deadline ? due : deadline));
		watch_begin(&between->watch, polled + 1);
		while ((event = watch_next(&between->watch, &which, &notice, &err)) != WATCH_END)
			if (event == WATCH_NOTICE)
				take_notice(between, &notice);
		if (read(between->signals, &info, sizeof(info)) == sizeof(info))
			between->ended_by = (int)info.ssi_signo;
	} while (!between->noticed && !between->ended_by && clock_now() < deadline);
	return !between->noticed && !between->ended_by;
}

/* The end of the time between; false: a notice has come that was not given yet. */
static bool end_between(struct between *between)
{
	struct notice notice;
	sigset_t all;
	/* What comes from here on waits for the next start. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	while (watch_take_held(&between->watch, &notice))
		take_notice(between, &notice);
	return !between->noticed;
}

/* Agents of this machine that were killed cannot say goodbye. */
static void look_for_the_gone(struct store *store, struct view *view)
{
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		struct write write;
		if (!view->members[i].joined || !agreement_counts(&view->agreement, i) ||
			process_look(&view->members[i].agent) != PROCESS_GONE)
			continue;
		write_build_death(&write, view, i, "is gone");
		(void)write_carry_out(&write, store, NULL);
		write_release(&write);
	}
}

/*
 * Wait until the attempt is closed. STATUS_OK; STATUS_NO: a notice or a signal; STATUS_TIMEOUT; or
 * the store cannot be asked.
 */
static enum status wait_closed(struct between *between, struct store *store, struct view *view,
	bool finished, struct error *err)
{
	int64_t limit = finished ? CLOCK_NEVER : clock_after(between->options->join_timeout);
	int64_t gone_at = clock_now();
	bool said = false;
	for (;;) {
		enum status status = view_refresh(view, store, err);
		if (status == STATUS_OK && !view->agreement.closed && clock_now() >= gone_at) {
			if (!finished || *view->seal)
				look_for_the_gone(store, view);
			gone_at = clock_after(GONE_EVERY);
		}
		if (status == STATUS_OK && view_all_through(view))
			status = attempt_close(store, view, false, err);
		if (view->agreement.closed)
			return STATUS_OK;
		if (status == STATUS_DAMAGED || status == STATUS_PERMISSION)
			return status; /* that does not pass */
		if (clock_now() >= limit)
			return status == STATUS_OK || status == STATUS_NO
				       ? error_set(err, STATUS_TIMEOUT,
						 "run %s: attempt %llu has not closed",
						 view->attempt.run,
						 (unsigned long long)view->attempt.number)
				       : status;
		if (finished && !said)
			message_info("finished; the other tasks have not (--restarts)");
		said = true;
		if (!wait_between(between, clock_after(status == STATUS_OK ? 0 : LOOK_EVERY)))
			return STATUS_NO;
		store_revision revision;
		if (status == STATUS_OK)
			(void)store_wait(store, view->attempt.prefix, view->revision,
				clock_after(LOOK_EVERY), -1, &revision, NULL);
	}
}

/* Whoever waits for the others without an end has to see when they die, and they, when we do. */
static enum status watch_the_rest(const struct between *between, const struct attempt *attempt,
	struct pulse **pulse, struct error *err)
{
	enum status status = agent_start_pulse(between->options, pulse, err);
	if (status != STATUS_OK || !*pulse)
		return status;
	pulse_begin(*pulse, attempt);
	pulse_watch(*pulse);
	return STATUS_OK;
}

/* The exit code of one that goes although it would be run again. */
static int leave_for_good(const struct between *between, int code)
{
	if (between->ended_by)
		return 128 + between->ended_by;
	if (between->noticed) {
		message_info("preempted between two attempts: nothing to save, run me again (%d)",
			between->options->exit_code);
		return between->options->exit_code;
	}
	return code;
}

/* After an attempt; false: *code is the exit code. */
static bool runs_again(struct between *between, const struct attempt *attempt,
	const struct budget_limits *limits, int *code)
{
	const struct agent_options *options = between->options;
	struct budget_decision decision;
	struct store *store = NULL;
	struct pulse *pulse = NULL;
	struct view view = {0};
	struct error err;
	bool again = false, finished = *code == STATUS_OK;
	char path[4096];
	uint64_t resume = 0;
	enum status status = open_between(between, &err);
	if (status == STATUS_OK)
		status = store_open(&store, options->store, 0, clock_after(OPEN_PATIENCE), &err);
	if (status == STATUS_OK)
		status = view_init(&view, attempt, &err);
	if (status == STATUS_OK && finished)
		status = watch_the_rest(between, attempt, &pulse, &err);
	if (status == STATUS_OK)
		status = wait_closed(between, store, &view, finished, &err);
	if (status == STATUS_NO) {
		*code = finished ? STATUS_OK : leave_for_good(between, *code);
		goto out;
	}
	if (status == STATUS_OK && view.agreement.claimed)
		goto out; /* whoever started us runs us again, or not */
	if (status == STATUS_OK) {
		bool has_resume = options->find_checkpoint &&
				  options->find_checkpoint(path, &resume, NULL) == STATUS_OK;
		status = history_decide_next(
			store, attempt, limits, has_resume, resume, &decision, &err);
	}
	if (status != STATUS_OK) {
		message_error("%s; whoever started this has to run it again", err.text);
		*code = finished ? STATUS_OK : STATUS_BROKEN;
	} else if (decision.again) {
		message_info(
			"%s; running again in %.1f s", decision.why, (double)decision.pause / 1000);
		again = wait_between(between, clock_after(decision.pause)) && end_between(between);
		if (!again)
			*code = leave_for_good(between, STATUS_BROKEN);
	} else if (decision.decided) {
		message_error("not run again (%d): %s", STATUS_DECIDED, decision.why);
		*code = STATUS_DECIDED;
	}
out:
	pulse_stop(pulse, 1000);
	view_release(&view);
	store_close(store);
	return again;
}

int restart_run(const struct agent_options *options, const struct budget_limits *limits)
{
	struct agent_options next = *options;
	sigset_t mask;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	next.restarts = limits != NULL;
	next.began = clock_now();
	int64_t superseded_until = clock_after(options->join_timeout);
	for (bool first = true;;) {
		struct agent_end end;
		struct between between = {.options = &next, .signals = -1};
		int code = agent_run(&next, &end);
		if (end.superseded && !end.passed_on && clock_now() < superseded_until) {
			message_info("joining the next attempt");
			sigprocmask(SIG_SETMASK, &mask, NULL);
			continue;
		}
		bool unstarted_late = !end.started && code == STATUS_TIMEOUT;
		if (!limits || end.attempt.number == 0 || end.passed_on ||
			(first && unstarted_late))
			return code;
		if (unstarted_late) {
			message_error("not all have come back: whoever started this has to run it "
				      "again (%d)",
				STATUS_BROKEN);
			return STATUS_BROKEN;
		}
		/* This machine goes away; what the attempt ended by is counted by the next. */
		if (end.noticed)
			return code == STATUS_OK || code == options->exit_code ||
					       code == STATUS_PREEMPTED || code == STATUS_DECIDED
				       ? code
				       : STATUS_BROKEN;
		bool again = runs_again(&between, &end.attempt, limits, &code);
		watch_release(&between.watch);
		if (between.signals >= 0)
			close(between.signals);
		if (!again)
			return code;
		first = false;
		next.attempt = 0;
		sigprocmask(SIG_SETMASK, &mask, NULL);
	}
}
