/* SPDX-License-Identifier: MIT */
#include "member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/listen.h"
#include "base/message.h"
#include "compose/membership.h"
#include "run/attempt.h"
#include "run/options.h"

static uint64_t pid, code;
static bool pid_given, code_given, no_board, no_heartbeat, force;
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
	{"code", "N", "the exit code of the training process (default: not known)", ARGS_UNSIGNED,
		.target = &code, .max = 255, .given = &code_given},
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
	bool preempted = false, prolog, had_board = getenv("PREEMPT_DIR");
	(void)rest;
	enum status status = group_find_agent(&agent, &prolog, &err);
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
		status = membership_join(&request, &preempted, &err);
	if (status == STATUS_OK) {
		membership_exports(&exports);
		fputs(text_string(&exports), stdout);
	}
	if (status == STATUS_OK && had_board && no_board)
		puts("unset PREEMPT_DIR");
	text_release(&exports);
	if (status == STATUS_OK)
		return CODE_OK;
	/* Slurm writes the errors of a TaskProlog to a log of the node, and this to the job's
	 * output. */
	if (prolog)
		printf("print preempt-store: join: %s\n", err.text);
	int failed = message_fail(&err);
	return preempted ? CODE_SAVED : failed;
}

int member_leave(const struct args_rest *rest)
{
	struct error err;
	struct membership_goodbye goodbye = {
		.code = code_given ? (int)code : -1, .reason = leave_reason};
	int leave_with;
	(void)rest;
	if (group_is_shell(&err)) {
		message_detail("%s", err.text);
		return STATUS_OK;
	}
	enum status status = membership_leave_own(&goodbye, &leave_with, &err);
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
	enum status status = group_open(IDENTITY_RUN, true, CLOCK_NEVER, &own, &err);
	if (status == STATUS_OK)
		status = membership_close(own.store, &own.view, force, &err);
	group_close(&own);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}
