/* SPDX-License-Identifier: MIT */
/* preempt-ack: the agent's side of one board, one stage at a time. See preempt-ack(1). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ack.h"
#include "agent/served.h"
#include "base/args.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/message.h"
#include "run/attempt.h"
#include "run/options.h"

static bool serve, saved, wait_all, agent_given;
static uint64_t agent_pid;
static const char *board;

static const struct args_option options[] = {
	{"serve", NULL, "handle every round, until the agent is gone or the task has left",
		ARGS_FLAG, .target = &serve},
	{"saved", NULL, "wait for the save on the board and report it", ARGS_FLAG,
		.target = &saved},
	{"wait", NULL, "then wait for all tasks, and let the training process leave", ARGS_FLAG,
		.target = &wait_all},
	{"board", "DIR", "the board", ARGS_TEXT, .target = &board, .environment = "PREEMPT_DIR"},
	{"agent", "PID", "process that owns the board (default: $PREEMPT_AGENT, else the parent)",
		ARGS_UNSIGNED, .target = &agent_pid, .min = 1, .max = INT32_MAX,
		.given = &agent_given},
	AGREEMENT_ROWS,
	{0},
};

/* Find the process that owns the board: --agent, or $PREEMPT_AGENT, or our parent. */
static enum status find_agent(pid_t *agent, struct error *err)
{
	enum status status = STATUS_OK;
	*agent = (pid_t)agent_pid;
	if (!agent_given)
		status = served_agent(agent, err);
	if (!*agent)
		*agent = getppid();
	return status;
}

/* Show "3 of 4 saved" to a user at a terminal, in one line that is rewritten. */
static bool line_open;
static void show_progress(const struct view *view)
{
	static uint64_t shown_saved = UINT64_MAX;
	const struct agreement_view *a = &view->agreement;
	uint64_t done = 0, members = 0;
	if (!wait_all || !isatty(STDERR_FILENO))
		return;
	for (uint64_t i = 0; i < a->tasks; i++) {
		members += a->peers[i].member;
		done += a->peers[i].member && (a->peers[i].saved || agreement_all_saved(a));
	}
	if (done == shown_saved || members == 0)
		return;
	shown_saved = done;
	line_open = done < members;
	fprintf(stderr, "\r%llu of %llu saved%s", (unsigned long long)done,
		(unsigned long long)members, line_open ? "" : "\n");
	fflush(stderr);
}

static void print_decision(const struct agreement_decision *decision, uint64_t step)
{
	if (group_options.json) {
		struct json_object *json = json_object_new_object();
		json_put_text(json, "kind", decision->kind == KIND_SAVE ? "save" : "exit");
		json_put_unsigned(json, "step", step);
		printf("%s\n", json_line(json));
		json_object_put(json);
	} else {
		printf("%llu %s\n", (unsigned long long)step,
			decision->kind == KIND_SAVE ? "save" : "exit");
	}
}

static int run_stage(
	const struct agent_options *how, struct group_run *own, int64_t deadline, struct error *err)
{
	enum ack_goal goal = wait_all ? ACK_ALL : saved ? ACK_SAVED : ACK_AGREED;
	struct ack_request request = {.options = how,
		.attempt = &own->view.attempt,
		.board = board,
		.goal = goal,
		.deadline = deadline,
		.progress = show_progress};
	struct ack_answer answer;
	enum status status = find_agent(&request.agent, err);
	if (status != STATUS_OK)
		return status;
	status = ack_run(&request, own->store, &answer, err);
	own->store = NULL; /* ack_run has closed it */
	if (line_open)
		fputc('\n', stderr);
	bool each = answer.decision.kind == KIND_EACH && answer.told.order == ORDER_EXIT;
	if (status == STATUS_OK && goal == ACK_AGREED)
		print_decision(&answer.decision, each ? answer.told.step : answer.decision.step);
	if (status == STATUS_OK && answer.told.order == ORDER_LEAVE && goal == ACK_ALL) {
		if (answer.told.code == CODE_SAVED || answer.told.code == CODE_DECIDED)
			message_info("all tasks have saved: the checkpoint is complete");
		else
			status = error_set(
				err, STATUS_NO, "not all tasks have saved: no complete checkpoint");
	}
	return answer.leave ? answer.leave : (int)status;
}

static struct agent_options options_of(const struct identity *identity, const char *url)
{
	agreement_options.task = identity->task;
	agreement_options.report_jitter = clock_jitter(1000);
	return (struct agent_options){.identity = identity,
		.store = url,
		.grace = -1,
		.kill_after = 5000,
		.agreement = agreement_options};
}

/* For --serve. Takes the attempt from the environment: the store need not answer at the start. */
static int run_serve(void)
{
	struct error err = {0};
	struct group_run own;
	struct attempt attempt;
	int served;
	pid_t agent;
	if (!group_options.attempt_given || !group_options.tasks_given) {
		message_error("--serve: PREEMPT_ATTEMPT and PREEMPT_TASKS are not set: "
			      "preempt-store join prints them for eval");
		return STATUS_USAGE;
	}
	enum status status = find_agent(&agent, &err);
	if (status == STATUS_OK)
		status = group_find(IDENTITY_TASK, false, &own, &err);
	if (status == STATUS_OK)
		status = served_open(agent, &served, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	served_ignore_notices();
	message_patience(1000); /* a log that stalls must not keep the task from agreeing */
	attempt_name(&attempt, own.identity.run, group_options.attempt, own.identity.tasks);
	struct agent_options how = options_of(&own.identity, own.url);
	struct ack_request request = {
		.options = &how, .attempt = &attempt, .board = board, .agent = agent};
	return ack_serve(&request, served);
}

static enum status check_options(struct error *err)
{
	if (!board)
		return error_set(
			err, STATUS_USAGE, "no board: set PREEMPT_DIR (preempt-store join does)");
	if (serve && (saved || wait_all || group_options.timeout_given))
		return error_set(err, STATUS_USAGE,
			"--serve goes with none of --saved, --wait and --timeout; see "
			"preempt-ack --help");
	return STATUS_OK;
}

static int run(const struct args_rest *rest)
{
	struct error err = {0};
	struct group_run own;
	int64_t deadline = clock_after(group_timeout(-1));
	(void)rest;
	if (check_options(&err) != STATUS_OK)
		return message_fail(&err);
	if (serve)
		return run_serve();
	enum status status = group_open(IDENTITY_TASK, false, deadline, &own, &err);
	struct agent_options how = options_of(&own.identity, own.url);
	int code = status;
	if (status == STATUS_OK)
		code = run_stage(&how, &own, deadline, &err);
	group_close(&own);
	if (code == CODE_NO)
		message_info("%s", err.text);
	else if (code != CODE_OK)
		message_fail(&err);
	return code;
}

static const struct args_command commands[] = {
	{NULL, "[OPTION...]", NULL, options, group_option_table, 0, 0, false, false, run},
	{0},
};

int main(int argc, char **argv)
{
	return args_main(
		&(struct args_program){"preempt-ack",
			"Agree with the other tasks at which step to save, and report the save.",
			commands,
			"Prints \"STEP save\" or \"STEP exit\". exit codes: 0 yes, 1 nothing to agree on "
			"or no\ncomplete checkpoint, 42, 43, 93 end the training process and leave "
			"with this code,\n44 the group is broken, 75 could not ask, 124 timeout\n"},
		argc, argv);
}
