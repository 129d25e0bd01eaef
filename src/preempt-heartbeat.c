/* SPDX-License-Identifier: MIT */
/*
 * preempt-heartbeat: beat, watch the others, end the guarded process when the group is broken. See
 * preempt-heartbeat(1).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/listen.h"
#include "agent/served.h"
#include "base/args.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "compose/keeper.h"
#include "compose/membership.h"
#include "live/outage.h"
#include "run/options.h"

#define JOIN_LIMIT 300000 /* ms for all tasks to join */

static struct args_list with_words;
static pid_t with[KEEPER_WITH];
static size_t with_count;
static uint64_t guarded;
static bool guarded_given, leaves;
static const char *on_failure, *board;
static int64_t kill_after = 5000;
static char **arguments;

static const struct args_option options[] = {
	{"pid", "PID", "guard this process instead of a COMMAND", ARGS_UNSIGNED, .target = &guarded,
		.min = 1, .max = INT32_MAX, .given = &guarded_given},
	HEARTBEAT_ROWS,
	GROUP_TIMEOUT_ROW("a beat or a reading that takes longer does not count (period - 10s)"),
	{"join-timeout", "D", "a task that has not begun to beat D after it joined is dead (5m)",
		ARGS_DURATION, .target = &heartbeat_options.rules.first},
	{"on-failure", "COMMAND", "run before the guarded process is ended", ARGS_TEXT,
		.target = &on_failure},
	{"with", "PIDS",
		"end COMMAND when one of these processes ends; they get the notice signals",
		ARGS_LIST, .target = &with_words},
	{"leave", NULL, "leave the run with COMMAND's exit code; join it first if nothing has",
		ARGS_FLAG, .target = &leaves},
	{"kill-after", "D", "time between TERM and KILL (5s)", ARGS_DURATION,
		.target = &kill_after},
	{"board", "DIR", "the board from which the step is read", ARGS_TEXT, .target = &board,
		.environment = "PREEMPT_DIR"},
	{0},
};

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
	/* Static: a job that hangs in the store is left alone, and may still read them. */
	static struct group_run own;
	static struct keeper_options keeper;
	struct error err = {0};
	int served = -1;
	enum status status = served_open_agent(&served, &err);
	if (status == STATUS_OK)
		status = group_find(IDENTITY_TASK, false, &own, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	keeper = (struct keeper_options){.store = own.url,
		.run = own.identity.run,
		.attempt = group_options.attempt,
		.task = own.identity.task,
		.rules = heartbeat_options.rules,
		.progress_timeout = heartbeat_options.progress_timeout,
		.board = board && *board ? board : NULL,
		.served = served,
		.with = with,
		.with_count = with_count,
		.command = command,
		.pid = (pid_t)guarded,
		.on_failure = on_failure,
		.kill_after = kill_after};
	return keeper_run(&keeper);
}

/* joins: the board is made later. */
static enum status check_options(bool command, bool joins, struct error *err)
{
	if (command && guarded_given)
		return error_set(err, STATUS_USAGE,
			"give either a COMMAND or --pid; see preempt-heartbeat --help");
	if ((with_words.count || leaves) && !command)
		return error_set(err, STATUS_USAGE, "%s needs a COMMAND",
			with_words.count ? "--with" : "--leave");
	if (group_options.timeout_given && group_options.timeout == 0)
		return error_set(err, STATUS_USAGE, "--timeout: must be greater than 0");
	enum status status = heartbeat_options_complete(true, err);
	if (status == STATUS_OK && heartbeat_options.progress_timeout && !(board && *board) &&
		!joins)
		return error_set(err, STATUS_USAGE,
			"progress cannot be seen without a board: set PREEMPT_DIR (preempt-store "
			"join does), or give --board");
	return status == STATUS_OK ? read_with(err) : status;
}

/* Join for this process, and begin again, with the variables of a member. Returns if that fails. */
static int join(void)
{
	struct error err;
	struct group_run own;
	char signals[LISTEN_SIGNALS_SIZE];
	bool preempted = false;
	enum status status = group_find(IDENTITY_START, true, &own, &err);
	if (status == STATUS_OK)
		status = listen_signals(signals, &err);
	if (status == STATUS_OK && *own.identity.warning)
		message_error("warning: %s", own.identity.warning);
	if (status == STATUS_OK)
		status = membership_join(&(struct membership_request){.identity = &own.identity,
						 .store = own.url,
						 .attempt = group_asked_attempt(),
						 .agent = getpid(),
						 .timeout = JOIN_LIMIT,
						 .signals = signals,
						 .board = true},
			&preempted, &err);
	if (status == STATUS_OK) {
		execv("/proc/self/exe", arguments);
		status = error_set(&err, STATUS_TEMPORARY, "cannot begin again after the join: %s",
			strerror(errno));
	}
	int code = message_fail(&err);
	return preempted ? CODE_SAVED : code;
}

static int leave(int code)
{
	struct error err;
	const struct membership_goodbye goodbye = {.code = code};
	const int ending[] = {SIGINT, SIGHUP, SIGQUIT};
	sigset_t set;
	/* keeper_run has blocked these; a notice stays blocked. What came before the goodbye was
	 * for COMMAND. */
	sigemptyset(&set);
	for (size_t i = 0; i < 3; i++)
		if (!served_is_notice(ending[i]))
			sigaddset(&set, ending[i]);
	while (sigtimedwait(&set, NULL, &(struct timespec){0}) > 0)
		;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	if (membership_leave_own(&goodbye, &code, &err) != STATUS_OK)
		(void)message_fail(&err);
	return code;
}

static int run(const struct args_rest *rest)
{
	struct error err = {0};
	message_patience(1000); /* a log that stalls must not keep us from ending the command */
	/* A notice signal must not end this program before keeper_run handles it. */
	bool joins = leaves && !outage_is_joined();
	if (with_words.count || (leaves && !joins))
		served_block_notices(true);
	enum status status = check_options(rest->command != NULL, joins, &err);
	if (joins)
		return status == STATUS_OK ? join() : message_fail(&err);
	int code = status == STATUS_OK ? guard(rest->command) : message_fail(&err);
	return leaves ? leave(code) : code;
}

static const struct args_command commands[] = {
	{NULL, "[OPTION...] [-- COMMAND [ARG...]]", NULL, options, group_identity_table, 0, 0, true,
		false, run},
	{0},
};

int main(int argc, char **argv)
{
	arguments = argv;
	return args_main(
		&(struct args_program){"preempt-heartbeat",
			"Beat, watch the other tasks, end the guarded process when one is lost.",
			commands,
			"exit codes: that of COMMAND; 0 stopped, or the process of --pid has ended; 44 "
			"the\ngroup is broken: run me again; see preempt(7)\n"},
		argc, argv);
}
