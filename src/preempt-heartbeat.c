/* SPDX-License-Identifier: MIT */
/*
 * preempt-heartbeat: beat, watch the others, end the guarded process when the group is broken. See
 * preempt-heartbeat(1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/pulse/pulse.h"
#include "agent/pulse/stream.h"
#include "agent/served.h"
#include "base/args.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "compose/keeper.h"
#include "compose/vitals.h"
#include "run/attempt.h"
#include "run/options.h"

static struct args_list with_words;
static pid_t with[KEEPER_WITH];
static size_t with_count;
static uint64_t guarded;
static bool guarded_given, list, once, stop;
static const char *on_failure, *board;
static int64_t kill_after = 5000;

static const struct args_option options[] = {
	{"pid", "PID", "guard this process instead of a COMMAND", ARGS_UNSIGNED, .target = &guarded,
		.min = 1, .max = INT32_MAX, .given = &guarded_given},
	HEARTBEAT_ROWS,
	{"join-timeout", "D", "a task that has not begun to beat D after it joined is dead (5m)",
		ARGS_DURATION, .target = &heartbeat_options.rules.first},
	{"on-failure", "COMMAND", "run before the guarded process is ended", ARGS_TEXT,
		.target = &on_failure},
	{"with", "PIDS",
		"end COMMAND when one of these processes ends; do not forward TERM, USR1, USR2",
		ARGS_LIST, .target = &with_words},
	{"kill-after", "D", "time between TERM and KILL (5s)", ARGS_DURATION,
		.target = &kill_after},
	{"board", "DIR", "the board from which the step is read", ARGS_TEXT, .target = &board,
		.environment = "PREEMPT_DIR"},
	{"list", NULL, "show the state of every task", ARGS_FLAG, .target = &list},
	{"once", NULL, "beat once for --pid or the parent process, and check the group", ARGS_FLAG,
		.target = &once},
	{"stop", NULL, "stop the heartbeat of this task on this machine", ARGS_FLAG,
		.target = &stop},
	{0},
};

/* ---- --list ---- */

static void print_json(const struct view *view, const struct vital *vitals)
{
	struct json_object *json = json_object_new_object();
	struct json_object *tasks = json_object_new_array();
	json_put_text(json, "run", view->attempt.run);
	json_put_unsigned(json, "attempt", view->attempt.number);
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		struct json_object *task = json_object_new_object();
		const struct process_identity *agent = &view->members[i].agent;
		json_put_unsigned(task, "task", i);
		json_put_text(task, "state", heartbeat_word(vitals[i].state));
		if (vitals[i].has_step)
			json_put_unsigned(task, "step", vitals[i].step);
		if (vitals[i].period)
			json_put_signed(task, "period_ms", vitals[i].period);
		if (view_has_joined(view, i)) {
			json_put_text(task, "host", agent->host);
			json_put_signed(task, "pid", agent->pid);
		}
		json_object_array_add(tasks, task);
	}
	json_object_object_add(json, "tasks", tasks);
	struct text line = {0};
	json_add_line(json, &line);
	puts(text_string(&line));
	text_release(&line);
	json_object_put(json);
}

static void print_table(const struct view *view, const struct vital *vitals)
{
	printf("%-6s %-10s %12s  %s\n", "TASK", "STATE", "STEP", "HOST");
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		char step[24] = "-", host[4 * 65] = "-";
		const char *name = view->members[i].agent.host;
		if (vitals[i].has_step)
			snprintf(step, sizeof(step), "%llu", (unsigned long long)vitals[i].step);
		if (*name)
			text_escape(host, sizeof(host), name, strlen(name));
		printf("%-6llu %-10s %12s  %s\n", (unsigned long long)i,
			heartbeat_word(vitals[i].state), step, host);
	}
}

/* Print the list. Returns CODE_NO if a task is lost, late or hangs; otherwise CODE_OK. */
static int show_list(struct group_run *own, int64_t deadline)
{
	const struct view *view = &own->view;
	struct vital *vitals = xcalloc(view->attempt.tasks, sizeof(*vitals));
	int code = CODE_OK;
	vitals_read(own->store, view, vitals, deadline);
	if (group_options.json)
		print_json(view, vitals);
	else
		print_table(view, vitals);
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		if (vitals[i].state != HEARTBEAT_ALIVE && vitals[i].state != HEARTBEAT_LEFT &&
			vitals[i].state != HEARTBEAT_UNKNOWN)
			code = CODE_NO;
	free(vitals);
	return code;
}

/* ---- --once, --stop, and the program ---- */

static enum status beat_once(struct group_run *own, struct error *err)
{
	struct process_identity who;
	struct store_beat beat = {0};
	char group[KEYS_GROUP];
	int stream = -1;
	const struct attempt *attempt = &own->view.attempt;
	const struct agreement_view *a = &own->view.agreement;
	uint64_t task = own->identity.task;
	enum status status = stream_claim(store_where(own->store), attempt, task, &stream, err);
	if (status == STATUS_OK)
		status = process_identify(guarded_given ? (pid_t)guarded : getppid(), &who, err);
	keys_group(attempt, group);
	if (status == STATUS_OK) {
		if (store_beat_read(own->store, group, task, &beat, NULL) != STATUS_OK)
			beat.step = HEARTBEAT_NO_STEP;
		beat.token = pulse_token(&who);
		beat.sequence = heartbeat_sequence(
			heartbeat_count(beat.sequence) + 1, heartbeat_options.rules.period);
		status = store_beat(own->store, group, task, &beat, err);
	} else if (status == STATUS_NO && stream < 0) {
		status = STATUS_OK; /* another process beats for this task */
	}
	if (stream >= 0)
		close(stream);
	if (status == STATUS_OK &&
		((a->broken && !a->claimed && a->peers[task].left == REASON_NONE) ||
			a->peers[task].dead))
		return error_set(err, STATUS_BROKEN, "run %s attempt %llu is broken: %s",
			attempt->run, (unsigned long long)attempt->number, view_why(&own->view));
	return status;
}

/* Read the processes of --with: numbers with blanks, commas or newlines between them. */
static enum status read_with(struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < with_words.count; i++) {
		char *words = xstrdup(with_words.items[i]), *rest = words;
		for (char *word; status == STATUS_OK && (word = strsep(&rest, ", \t\n"));) {
			uint64_t pid;
			if (!*word)
				continue;
			status = with_count == KEEPER_WITH
					 ? error_set(err, STATUS_USAGE,
						   "--with: more than %d processes", KEEPER_WITH)
					 : parse_unsigned(word, 1, INT32_MAX, &pid, "--with", err);
			if (status == STATUS_OK)
				with[with_count++] = (pid_t)pid;
		}
		free(words);
	}
	return status;
}

static int guard(char *const *command)
{
	struct error err = {0};
	struct group_run own;
	int served = -1;
	enum status status = served_open_agent(&served, &err);
	if (status == STATUS_OK)
		status = group_find(IDENTITY_TASK, false, &own, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	return keeper_run(&(struct keeper_options){.store = own.url,
		.run = own.identity.run,
		.attempt = group_options.attempt,
		.task = own.identity.task,
		.rules = heartbeat_options.rules,
		.progress = heartbeat_options.progress,
		.board = board && *board ? board : NULL,
		.served = served,
		.with = with,
		.with_count = with_count,
		.command = command,
		.pid = (pid_t)guarded,
		.on_failure = on_failure,
		.kill_after = kill_after});
}

static enum status check_options(bool command, struct error *err)
{
	if (list + once + stop > 1 || ((list || once || stop) && command) ||
		(command && guarded_given))
		return error_set(err, STATUS_USAGE,
			"only one of COMMAND, --list, --once, --stop, and no --pid with COMMAND; "
			"see preempt-heartbeat --help");
	if (with_words.count && !command)
		return error_set(err, STATUS_USAGE, "--with needs a COMMAND");
	if (group_options.timeout_given && group_options.timeout == 0 && !list && !stop)
		return error_set(err, STATUS_USAGE, "--timeout: must be greater than 0");
	enum status status = heartbeat_options_complete(true, err);
	if (status == STATUS_OK && progress_is_wanted(&heartbeat_options.progress) &&
		!(board && *board))
		return error_set(err, STATUS_USAGE,
			"progress cannot be seen without a board: set PREEMPT_DIR (preempt-store "
			"join does), or give --board");
	return status == STATUS_OK ? read_with(err) : status;
}

static int run(const struct args_rest *rest)
{
	struct error err = {0};
	struct group_run own = {0};
	int64_t deadline = once ? CLOCK_NEVER : clock_after(group_timeout(-1));
	int code = CODE_OK;
	message_patience(1000); /* a log that stalls must not keep us from ending the command */
	/* A notice signal must not end this program before keeper_run handles it. */
	if (with_words.count)
		served_block_notices(true);
	enum status status = check_options(rest->command != NULL, &err);
	if (status == STATUS_OK && !list && !once && !stop)
		return guard(rest->command);
	if (status == STATUS_OK)
		status = group_open(
			list ? IDENTITY_RUN : IDENTITY_TASK, false, deadline, &own, &err);
	if (status == STATUS_OK)
		status = view_refresh(&own.view, own.store, &err);
	if (status == STATUS_OK && list)
		code = show_list(&own, deadline);
	else if (status == STATUS_OK && once)
		status = beat_once(&own, &err);
	else if (status == STATUS_OK)
		status = stream_stop(store_where(own.store), &own.view.attempt, own.identity.task,
			clock_after(group_timeout(10000)), &err);
	group_close(&own);
	if (status == STATUS_OK)
		return code;
	if (status != STATUS_NO)
		return message_fail(&err);
	message_info("%s", err.text);
	return CODE_NO;
}

static const struct args_command commands[] = {
	{NULL, "[OPTION...] [-- COMMAND [ARG...]]", NULL, options, group_option_table, 0, 0, true,
		false, run},
	{0},
};

int main(int argc, char **argv)
{
	return args_main(
		&(struct args_program){"preempt-heartbeat",
			"Beat, watch the other tasks, end the guarded process when one is lost.",
			commands,
			"exit codes: that of COMMAND; 0 stopped, or the process of --pid has ended; 1 "
			"(--list)\na task is lost, late or hangs; 44 the group is broken: run me "
			"again; see preempt(7)\n"},
		argc, argv);
}
