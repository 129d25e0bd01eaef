/* SPDX-License-Identifier: MIT */
/* preempt-claim: be the first to announce a notice. See preempt-claim(1). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/last_notice.h"
#include "agent/served.h"
#include "agent/task/board.h"
#include "base/args.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/message.h"
#include "base/process/descriptor.h"
#include "live/outage.h"
#include "proto/agreement/tally.h"
#include "proto/claim.h"
#include "run/attempt.h"
#include "run/options.h"

#define TRY 5000 /* ms for one try to reach the store, while further events may come */

static const char *reason = "", *from, *then_word = "exit";
static int64_t grace = -1;
static bool outside, wait_saved;

static const struct args_option options[] = {
	{"then", "WHAT", "exit (default), stop (93), or continue: a checkpoint on demand",
		ARGS_TEXT, .target = &then_word},
	{"reason", "TEXT", "why, for messages", ARGS_TEXT, .target = &reason},
	{"grace", "D", "time until the machine goes away", ARGS_DURATION, .target = &grace,
		.environment = "PREEMPT_GRACE"},
	{"from", "FILE", "claim for each event that preempt-watch writes to FILE; - is stdin",
		ARGS_TEXT, .target = &from},
	{"wait", NULL, "with --then continue: until all tasks have saved (--timeout)", ARGS_FLAG,
		.target = &wait_saved},
	{"outside", NULL, "claim from outside, even if the environment says this is a task",
		ARGS_FLAG, .target = &outside},
	{0},
};

/* What the claims of this program share. */
struct session {
	struct group_run own;
	enum agreement_then then;
	struct loop loop; /* the input, and the process that we serve */
	int agent;	  /* a pidfd of that process; -1: none */
	bool printed;	  /* the claim was printed */
	/* Events not announced yet: the first one, and the later one with the earliest deadline. */
	struct notice waiting[2];
	size_t waiting_count;
	int code; /* of the first event; -1: not known yet */
};

static void print_claim(const struct view *view)
{
	const struct view_claim *claim = &view->claim;
	char host[4 * sizeof(claim->host)];
	text_escape(host, sizeof(host), claim->host, strlen(claim->host));
	if (group_options.json) {
		struct json_object *json = json_object_new_object();
		json_put_text(json, "run", view->attempt.run);
		json_put_unsigned(json, "attempt", view->attempt.number);
		json_put_bool(json, "claimed", view->agreement.claimed);
		if (view->agreement.claimed) {
			if (!claim->outside)
				json_put_unsigned(json, "task", claim->task);
			json_put_text(json, "host", claim->host);
			json_put_text(json, "source", claim->source);
			json_put_text(json, "reason", claim->reason);
			json_put_signed(json, "utc", claim->utc);
		}
		json_put_unsigned(json, "round", view->agreement.round);
		struct text line = {0};
		json_add_line(json, &line);
		puts(text_string(&line));
		text_release(&line);
		json_object_put(json);
	} else if (!view->agreement.claimed) {
		printf("round %llu\n", (unsigned long long)view->agreement.round);
	} else if (claim->outside) {
		printf("outside %s\n", host);
	} else {
		printf("task %llu %s\n", (unsigned long long)claim->task, host);
	}
}

static enum status open_run(struct session *session, int64_t deadline, struct error *err)
{
	enum status status = STATUS_OK;
	/* A served task has joined, so its store did exist: if it is missing, try again later. */
	if (!session->own.store && session->agent >= 0)
		status = outage_open(&session->own.store, session->own.url, deadline, err);
	else if (!session->own.store)
		status = store_open(&session->own.store, session->own.url, 0, deadline, err);
	view_release(&session->own.view);
	if (status == STATUS_OK) {
		store_set_deadline(session->own.store, deadline);
		status = attempt_view(session->own.store, session->own.identity.run,
			group_options.attempt, &session->own.view, err);
	}
	return status;
}

/* STATUS_NO: do not announce this event: preempt-watch has seen a claim of this same run. */
static enum status check_origin(
	const struct session *session, const struct notice *notice, struct error *err)
{
	bool elsewhere =
		*notice->claim.run && strcmp(notice->claim.run, session->own.identity.run) != 0;
	if (strcmp(notice->source, "group") != 0 || elsewhere)
		return STATUS_OK;
	return error_set(err, STATUS_NO,
		"run %s: this event is the claim of a group, not a notice of this machine; to pass "
		"on the claim of another run, let preempt-watch write it with --json",
		session->own.identity.run);
}

static void say_deadline(const struct view *view)
{
	char utc[32];
	clock_format_utc(clock_utc() + view->agreement.deadline - clock_now(), utc);
	message_info("run %s: the deadline is earlier now: %s", view->attempt.run, utc);
}

/* Try once, within --timeout. STATUS_NO: another task has claimed, or there is nothing to claim. */
static enum status announce(struct session *session, const struct notice *notice, struct error *err)
{
	int64_t deadline = clock_after(group_timeout(session->agent >= 0 ? TRY : 30000));
	enum status status = open_run(session, deadline, err);
	if (status != STATUS_OK)
		return status;
	const struct identity *identity = &session->own.identity;
	struct claim claim = {.outside = outside || !identity->is_task ||
					 identity->task >= session->own.view.attempt.tasks,
		.task = identity->task,
		.pid = from ? 0 : (uint64_t)getpid(),
		.then = session->then,
		.notice = *notice};
	const struct agreement_view *known = &session->own.view.agreement;
	const bool claimed = known->claimed;
	const int64_t before = known->deadline, ours = notice_deadline(notice);
	status = claim_make(session->own.store, &session->own.view, &claim, deadline, err);
	if (claimed && ours != before && known->deadline == ours)
		say_deadline(&session->own.view);
	if (!session->printed &&
		(status == STATUS_OK ||
			(status == STATUS_NO && session->own.view.agreement.claimed))) {
		print_claim(&session->own.view);
		fflush(stdout);
		session->printed = true;
	}
	return status;
}

/* 1: all tasks have saved in this round, or a later one; -1: they have, but at different steps. */
static int all_have_saved(const struct agreement_view *a, uint64_t round)
{
	const struct agreement_saves saves = agreement_count_saves(a);
	bool saved = a->round >= round && a->decided && a->decision.kind != KIND_NONE &&
		     saves.saved == saves.members;
	return saved && saves.low != saves.high
		       ? -1
		       : saved || (a->all_saved >= round && a->all_saved_complete);
}

/* Wait until all tasks have saved in this round, or a later one. STATUS_NO: they will not. */
static enum status wait_for_save(struct session *session, struct error *err)
{
	struct view *view = &session->own.view;
	struct store *store = session->own.store;
	const struct agreement_view *a = &view->agreement;
	const int64_t deadline = clock_after(group_timeout(-1));
	const uint64_t round = a->round, number = view->attempt.number;
	const char *run = session->own.identity.run;
	for (;;) {
		store_set_deadline(store, clock_earlier(deadline, clock_after(TRY)));
		view_release(view); /* it shows our round, but not what belongs to that */
		enum status status = attempt_view(store, run, number, view, err);
		bool nothing = a->decided && a->decision.kind == KIND_NONE;
		if (status == STATUS_NO || status == STATUS_DAMAGED || status == STATUS_PERMISSION)
			return status;
		int all = status == STATUS_OK ? all_have_saved(a, round) : 0;
		if (all > 0)
			return STATUS_OK;
		if (status == STATUS_OK && (all || a->closed || a->broken || nothing))
			return error_set(err, STATUS_NO, "run %s: round %llu: %s", run,
				(unsigned long long)round,
				all	  ? "not all have saved at one step"
				: nothing ? "no task has begun to train, there is nothing to save"
					  : "the attempt ends without a save of all tasks");
		if (clock_now() >= deadline)
			return error_set(err, STATUS_TIMEOUT,
				"run %s: round %llu: not all tasks have saved in time", run,
				(unsigned long long)round);
		if (status == STATUS_OK)
			status = view_wait(
				view, store, clock_earlier(deadline, clock_after(TRY)), -1, err);
		if (status != STATUS_OK && status != STATUS_TIMEOUT)
			clock_sleep_until(clock_after(clock_jitter(1000)));
	}
}

static int say(enum status status, const struct error *err)
{
	if (status == STATUS_NO)
		message_info("%s", err->text);
	else if (status != STATUS_OK)
		message_fail(err);
	return status;
}

/* Read the event on this line, and put its notice on the board before the store is asked. */
static void take_line(struct session *session, char *line)
{
	struct notice notice;
	struct error err;
	line[strcspn(line, "\n")] = '\0';
	enum status status = notice_read(line, &notice, &err);
	if (status == STATUS_OK)
		status = check_origin(session, &notice, &err);
	if (status != STATUS_OK) {
		say(status, &err);
		if (session->code < 0 && !session->waiting_count)
			session->code = status;
		return;
	}
	const char *board = getenv("PREEMPT_DIR");
	if (session->agent >= 0 && board && *board && session->then == THEN_EXIT && !outside &&
		strcmp(notice.source, "group") != 0 &&
		board_put_notice(board, &notice, &err) != STATUS_OK)
		message_error("%s", err.text);
	if (session->waiting_count < 2)
		session->waiting[session->waiting_count++] = notice;
	else if (notice_deadline(&notice) < notice_deadline(&session->waiting[1]))
		session->waiting[1] = notice;
}

/*
 * Announce the first of the waiting events. If an agent is served and the store does not answer,
 * the event stays, and the function returns after a pause, or when the loop has an event.
 */
static void announce_waiting(struct session *session, struct outage *outage)
{
	struct error err;
	enum status status = announce(session, &session->waiting[0], &err);
	if (status == STATUS_TIMEOUT && session->agent >= 0)
		status = STATUS_TEMPORARY;
	bool away = status == STATUS_TEMPORARY && session->agent >= 0;
	(void)outage_retry(outage, &status, &err);
	if (away)
		return;
	say(status, &err);
	if (session->code < 0)
		session->code = status;
	session->waiting[0] = session->waiting[1];
	session->waiting_count--;
}

/*
 * Announce every event until the end of the input or of the agent. Also read the input while the
 * store does not answer: a later event may have an earlier deadline. Returns the code of the first
 * event.
 */
static int take_events(struct session *session)
{
	FILE *stream = strcmp(from, "-") ? fopen(from, "re") : stdin;
	char *line = NULL;
	size_t size = 0;
	struct error err;
	if (!stream) {
		error_set(&err, error_status_of_errno(errno), "cannot open %s: %s", from,
			strerror(errno));
		return message_fail(&err);
	}
	/* Unbuffered: the loop does not see what stdio has already read. */
	setvbuf(stream, NULL, _IONBF, 0);
	int input = fileno(stream); /* -1: it has ended */
	struct outage outage = {.deadline = session->agent < 0 ? 0 : CLOCK_NEVER,
		.cancel = session->loop.descriptor};
	loop_watch(&session->loop, session->agent);
	while ((input >= 0 || session->waiting_count) &&
		(session->code <= CODE_NO || session->agent >= 0)) {
		loop_watch(&session->loop, input);
		if (session->waiting_count)
			loop_wake_at(&session->loop, 0);
		loop_wait(&session->loop);
		if (served_is_gone(session->agent))
			break;
		bool has_come = descriptor_is_ready(input);
		if (has_come && getline(&line, &size, stream) < 0) {
			loop_forget(&session->loop, input);
			input = -1;
		} else if (has_come) {
			take_line(session, line);
		}
		/* Before announcing, read all that has come: see above. */
		if (session->waiting_count == 2 || (session->waiting_count && !has_come))
			announce_waiting(session, &outage);
	}
	if (session->code < 0 && session->waiting_count)
		session->code = STATUS_TEMPORARY; /* the agent ended before the store answered */
	if (session->code < 0 && session->agent < 0)
		message_info("%s: no notice came", from);
	free(line);
	if (stream != stdin)
		fclose(stream);
	return session->code < 0 ? STATUS_NO : session->code;
}

static int run(const struct args_rest *rest)
{
	struct error err;
	struct session session = {.loop = LOOP_CLOSED, .agent = -1, .code = -1};
	struct notice notice;
	int code;
	(void)rest;
	if (!keys_then_parse(then_word, &session.then)) {
		message_error(
			"--then: \"%s\" is not exit, stop or continue; see preempt-claim --help",
			then_word);
		return STATUS_USAGE;
	}
	if (wait_saved && (session.then != THEN_CONTINUE || from)) {
		message_error("--wait: only with --then continue, and without --from");
		return STATUS_USAGE;
	}
	last_notice_find(&notice, reason, grace);
	enum status status = group_find(IDENTITY_RUN, false, &session.own, &err);
	if (status == STATUS_OK && from)
		status = served_open_agent(&session.agent, &err);
	if (status == STATUS_OK && from)
		status = loop_open(&session.loop, &err);
	if (from)
		served_ignore_notices(); /* the whole pipe gets them; it ends with its input */
	message_patience(1000);		 /* a log that stalls must not delay a notice */
	if (status != STATUS_OK)
		code = say(status, &err);
	else if (from)
		code = take_events(&session);
	else {
		status = announce(&session, &notice, &err);
		if (status == STATUS_OK && wait_saved)
			status = wait_for_save(&session, &err);
		code = say(status, &err);
	}
	loop_close(&session.loop);
	group_close(&session.own);
	return code;
}

static const struct args_command commands[] = {
	{NULL, "[OPTION...]", NULL, options, group_option_table, 0, 0, false, false, run},
	{0},
};

int main(int argc, char **argv)
{
	return args_main(
		&(struct args_program){"preempt-claim",
			"Announce to all tasks of a run that one of them goes away.", commands,
			"exit codes: 0 claimed (also if the claim was already ours), 1 another "
			"task has claimed,\nor the run is over, 75 could not ask\n"},
		argc, argv);
}
