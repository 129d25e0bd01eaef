/* SPDX-License-Identifier: MIT */
#include "member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/listen.h"
#include "agent/task/board.h"
#include "base/clock.h"
#include "base/message.h"
#include "compose/membership.h"
#include "live/outage.h"
#include "run/attempt.h"
#include "run/options.h"

#define LEAVE_PATIENCE 30000 /* ms to try to reach the store */
#define LEAVE_ONCE     1000  /* ms for each try, at least, even after the deadline of a notice */

static uint64_t pid, code;
static bool pid_given, no_board, no_heartbeat, force;
static const char *board_parent, *leave_reason;

const struct args_option member_join_options[] = {
	{"pid", "PID",
		"the process of this task (default: the ancestor that reads our output, or the parent)",
		ARGS_UNSIGNED, .target = &pid, .min = 1, .max = INT32_MAX, .given = &pid_given},
	{"board", "DIR", "make the board below DIR", ARGS_TEXT, .target = &board_parent},
	{"no-board", NULL, "make no board", ARGS_FLAG, .target = &no_board},
	{"no-heartbeat", NULL, "tell the others that nothing beats for this task", ARGS_FLAG,
		.target = &no_heartbeat},
	{0},
};
const struct args_option member_leave_options[] = {
	{"code", "N", "the exit code of the training process (default 0)", ARGS_UNSIGNED,
		.target = &code, .max = 255},
	{"reason", "TEXT", "why it failed, for the others (default: its last line of stderr)",
		ARGS_TEXT, .target = &leave_reason},
	{0},
};
const struct args_option member_close_options[] = {
	{"force", NULL, "close it although tasks run; they then end with 44", ARGS_FLAG,
		.target = &force},
	{0},
};

int member_join(const struct args_rest *rest)
{
	struct error err;
	struct group_run own;
	const struct identity *identity = &own.identity;
	struct text exports = {0};
	char signals[LISTEN_SIGNALS_SIZE];
	pid_t agent = 0;
	bool preempted = false;
	(void)rest;
	enum status status = group_find_agent(&agent, &err);
	if (status == STATUS_NO) {
		message_detail("%s", err.text);
		return STATUS_OK;
	}
	status = group_find(IDENTITY_START, true, &own, &err);
	if (status == STATUS_OK)
		status = listen_signals(signals, &err);
	struct membership_request request = {.identity = identity,
		.store = own.url,
		.attempt = group_asked_attempt(),
		.beatless = no_heartbeat,
		.agent = pid_given ? (pid_t)pid : agent,
		.timeout = group_timeout(300000),
		.signals = signals,
		.board_parent = board_parent,
		.board = !no_board};
	if (status == STATUS_OK && *identity->warning)
		message_error("warning: %s", identity->warning);
	if (status == STATUS_OK)
		status = membership_join(&request, &exports, &preempted, &err);
	if (status == STATUS_OK)
		fputs(text_string(&exports), stdout);
	if (status == STATUS_OK && no_board && getenv("PREEMPT_DIR"))
		puts("unset PREEMPT_DIR");
	text_release(&exports);
	if (status == STATUS_OK)
		return CODE_OK;
	int failed = message_fail(&err);
	return preempted ? CODE_SAVED : failed;
}

/* How long a question to the store may take. Not less than 1: a negative time would be no limit. */
static int64_t left_until(int64_t until)
{
	return clock_later(until - clock_now(), 1);
}

/* As group_open, but the store is asked for the attempt until `until` at most. */
static enum status open_until(int64_t until, struct group_run *own, struct error *err)
{
	struct attempt attempt;
	enum status status = group_find(IDENTITY_TASK, false, own, err);
	if (status == STATUS_OK)
		status = outage_open_joined(&own->store, own->url, until, err);
	if (status == STATUS_OK) {
		store_set_patience(own->store, left_until(until));
		status = attempt_find(
			own->store, own->identity.run, group_options.attempt, &attempt, err);
	}
	if (status == STATUS_OK)
		status = attempt_check_task(&attempt, own->identity.task, err);
	if (status == STATUS_OK)
		view_init(&own->view, &attempt);
	return status;
}

static enum status leave_once(int64_t until, int *leave_with, struct error *err)
{
	struct group_run own;
	int64_t once = clock_after(LEAVE_ONCE);
	if (until < once)
		until = once;
	enum status status = open_until(until, &own, err);
	if (status == STATUS_OK) {
		const struct membership_goodbye goodbye = {.task = own.identity.task,
			.code = (int)code,
			.reason = leave_reason,
			.board = getenv("PREEMPT_DIR")};
		store_set_patience(own.store, left_until(until));
		status = membership_leave(own.store, &own.view, &goodbye, leave_with, err);
	}
	group_close(&own);
	return status;
}

/* Until when to try to reach the store. The deadline of a notice may be earlier. */
static int64_t goodbye_until(const struct notice *notice)
{
	return clock_earlier(clock_after(LEAVE_PATIENCE), notice_deadline(notice) - LEAVE_EARLY);
}

int member_leave(const struct args_rest *rest)
{
	struct error err;
	struct notice notice = {.deadline = CLOCK_NEVER};
	const char *board = getenv("PREEMPT_DIR");
	bool noticed = board && board_read_notice(board, &notice, &err) == STATUS_OK;
	int leave_with = noticed ? membership_preempted_code((int)code) : (int)code;
	struct outage outage = {.deadline = goodbye_until(&notice)};
	enum status status;
	(void)rest;
	do
		status = leave_once(outage.deadline, &leave_with, &err);
	while (outage_retry(&outage, &status, &err));
	if (board)
		board_remove_joined(board);
	/* The script exits with this code even if the store did not answer. */
	if (status != STATUS_USAGE)
		printf("%d\n", leave_with);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

int member_close(const struct args_rest *rest)
{
	struct error err;
	struct group_run own;
	(void)rest;
	enum status status = group_open(IDENTITY_RUN, true, clock_after(30000), &own, &err);
	if (status == STATUS_OK)
		status = membership_close(own.store, &own.view, force, &err);
	group_close(&own);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}
