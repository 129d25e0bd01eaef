/* SPDX-License-Identifier: MIT */
/*
 * preempt-watch: wait for a notice of this machine, or for the claim of the group; print it as one
 * line, or run a command for it. With --follow, go on after the first one. --once: check each
 * source once. See preempt-watch(1).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/last_notice.h"
#include "agent/listen.h"
#include "agent/served.h"
#include "agent/source_group.h"
#include "base/args.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "base/process/ending.h"
#include "base/process/subprocess.h"
#include "notice/source_set.h"
#include "platform/platform.h"
#include "run/options.h"

#define BOARD_EVERY 1000 /* ms between two checks that the board exists */

static struct args_list sources;
static int64_t grace = -1, period, look_timeout;
static bool period_given, look_timeout_given;
static bool follow, once, until_exit, show_platform;
static const char *command, *platform;
static struct source *group; /* the source `group`; NULL: not given */
static int agent = -1;	     /* a pidfd of the process that we serve; -1: none */
static const char *board;    /* of the task that we serve: we end when it is gone; NULL: none */

static const struct args_option options[] = {
	{"source", "SPEC",
		"signal:TERM, file:PATH, command:TEXT, deadline:+2h, slurm, gce, group ...",
		ARGS_LIST, .target = &sources},
	{"platform", "NAMES", "auto, or slurm,aws and the like: their sources", ARGS_TEXT,
		.target = &platform, .environment = "PREEMPT_PLATFORM"},
	{"show-platform", NULL, "print which platform was found, and why", ARGS_FLAG,
		.target = &show_platform},
	{"follow", NULL, "go on after the first notice", ARGS_FLAG, .target = &follow,
		.letter = 'f'},
	{"once", NULL, "check each source once: 0 a notice, 1 none, 75 could not ask", ARGS_FLAG,
		.target = &once},
	{"exec", "COMMAND", "run COMMAND by sh for each notice, print nothing", ARGS_TEXT,
		.target = &command},
	{"grace", "D", "how long after a notice the machine goes away", ARGS_DURATION,
		.target = &grace, .environment = "PREEMPT_GRACE"},
	{"period", "D", "time between two checks (1s; of a cloud 1s to 15s)", ARGS_DURATION,
		.target = &period, .given = &period_given},
	{"look-timeout", "D", "time that a source's command may take (10s)", ARGS_DURATION,
		.target = &look_timeout, .given = &look_timeout_given},
	{"until-exit", NULL, "wait for the group's claim, then until the claiming task has exited",
		ARGS_FLAG, .target = &until_exit},
	{0},
};

static bool has_reader; /* stdout is a pipe: end when its reader is gone */

static bool stdout_has_reader(void)
{
	struct stat st;
	struct sigaction pipe;
	return !command && sigaction(SIGPIPE, NULL, &pipe) == 0 && pipe.sa_handler != SIG_IGN &&
	       fstat(STDOUT_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

static int print_notice(const struct notice *notice)
{
	struct text line = {0};
	int code = STATUS_OK;
	if (group_options.json)
		notice_write_json(notice, &line);
	else
		notice_write_text(notice, &line);
	text_add(&line, "\n");
	/* Not by stdio, which would keep the line back: the reader of a pipe waits for it. */
	if (file_write_all(STDOUT_FILENO, line.data, line.length) < 0) {
		code = STATUS_TEMPORARY;
		if (errno != EPIPE || ending_signal() != SIGPIPE)
			message_error("cannot write the notice to stdout: %s", strerror(errno));
	}
	text_release(&line);
	if (!follow)
		last_notice_keep(notice);
	return code;
}

/* For --exec. The command gets the notice in its environment, too: sh interprets its text. */
static void describe_notice(const struct notice *notice, const char *line)
{
	char utc[32], left[32] = "";
	int64_t now = clock_now();
	clock_format_utc(notice->received_utc, utc);
	if (notice->deadline != CLOCK_NEVER)
		snprintf(left, sizeof(left), "%lld",
			(long long)(notice->deadline > now ? notice->deadline - now : 0));
	setenv("PREEMPT_NOTICE_SOURCE", notice->source, 1);
	setenv("PREEMPT_NOTICE_REASON", notice->reason, 1);
	setenv("PREEMPT_NOTICE_UTC", utc, 1);
	setenv("PREEMPT_NOTICE_LEFT_MS", left, 1);
	setenv("PREEMPT_NOTICE", line, 1);
}

/* Run it, and wait for its end. A signal that ends us is passed on to it first. */
static int run_command(const struct notice *notice)
{
	struct text line = {0};
	struct subprocess child;
	struct error err;
	int asked = 0;
	notice_write_json(notice, &line);
	describe_notice(notice, text_string(&line));
	text_add(&line, "\n");
	struct subprocess_options how = {.shell = command, .input = text_string(&line)};
	enum status status = subprocess_start(&child, &how, &err);
	text_release(&line);
	if (status != STATUS_OK)
		return message_fail(&err);
	while (subprocess_check(&child, clock_now()) == SUBPROCESS_RUNS) {
		struct pollfd ended = {.fd = child.end.descriptor, .events = POLLIN};
		ending_wait(&ended, 1, child.end.due);
		if (!ending_signal())
			continue;
		asked = ending_signal();
		ending_set(0);
		subprocess_signal(&child, asked);
	}
	/* Do not kill the processes that it left in the background: they live until we end. */
	subprocess_reap(&child, true);
	if (asked)
		ending_set(asked);
	return child.code;
}

static int handle(const struct notice *notice)
{
	return command ? run_command(notice) : print_notice(notice);
}

/* The sources, and the agent. */
static struct loop loop = LOOP_CLOSED;

static void wait_for_sources(const struct source_set *watch, int64_t deadline)
{
	source_set_watch(watch, &loop);
	loop_wake_at(&loop, deadline);
	if (board)
		loop_wake_at(&loop, clock_after(BOARD_EVERY));
	/* Our stdout, whose reader may end while we wait. */
	struct pollfd polls[] = {
		{.fd = loop.descriptor, .events = POLLIN}, {.fd = has_reader ? STDOUT_FILENO : -1}};
	ending_wait(polls, 2, loop_take_due(&loop));
	if (polls[1].revents & POLLERR && !ending_signal())
		ending_set(SIGPIPE);
}

/* A refusal by the store is permanent; a store that does not answer may answer later. */
static bool is_refusal(const struct error *err)
{
	return err->status == STATUS_USAGE || err->status == STATUS_DAMAGED ||
	       err->status == STATUS_PERMISSION;
}

static bool group_has_answered(const struct source_set *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->sources[i].source == group)
			return watch->sources[i].answer == SOURCE_NONE ||
			       watch->sources[i].answer == SOURCE_NOTICE;
	return false;
}

/*
 * Wait for the first notice, or with --follow for all; with --until-exit, then for the end of the
 * claiming task. End when the agent or the board is gone. code: the exit code so far;
 * STATUS_TIMEOUT: no notice has come yet.
 */
static int watch_on(struct source_set *watch, int64_t deadline, int code)
{
	struct notice notice;
	struct error err, unasked; /* unasked: why the group has not answered, if asked is false */
	enum source_set_event event;
	bool asked = false; /* the group has answered once */
	size_t which;
	error_set(&unasked, STATUS_TEMPORARY, "its store did not answer in that time");

	for (;;) {
		wait_for_sources(watch, deadline);
		if (ending_signal())
			return code;
		while ((event = source_set_next(watch, &which, &notice, &err)) != SOURCE_SET_END) {
			const struct source *source = watch->sources[which].source;
			if (source == group && event == SOURCE_SET_DOUBT && !asked &&
				is_refusal(&err))
				return message_fail(&err);
			if (source == group &&
				(event == SOURCE_SET_DOUBT || event == SOURCE_SET_LOST))
				unasked = err;
			source_set_say(event, source_name(source), &err);
			if (event != SOURCE_SET_NOTICE)
				continue;
			int answer = handle(&notice);
			if (code == STATUS_TIMEOUT || code == STATUS_OK)
				code = answer;
			if (ending_signal() || (answer && !command) || (!follow && !until_exit))
				return code;
			if (answer)
				message_info("the command of --exec ended with %d", answer);
		}
		asked |= group_has_answered(watch);
		if (until_exit && source_group_gone(group))
			return code;
		bool over = group && source_group_over(group, &err) != STATUS_OK;
		if (over || served_is_over(agent, board))
			return code != STATUS_TIMEOUT ? code
			       : over		      ? message_fail(&err)
						      : STATUS_NO;
		if (clock_now() < deadline)
			continue;
		if (code == STATUS_TIMEOUT && group && !asked) {
			message_error("no notice came within --timeout, but the group could not be "
				      "asked: %s",
				unasked.text);
			return STATUS_TEMPORARY;
		}
		if (code == STATUS_TIMEOUT)
			message_info("no notice came within --timeout");
		else if (until_exit)
			message_info("timed out waiting for the claiming task to exit");
		return until_exit ? STATUS_TIMEOUT : code;
	}
}

/* Report the sources that have not answered yet. True: the group is one of them. */
static bool say_unanswered(const struct source_set *watch)
{
	bool is_group = false;
	for (size_t i = 0; i < watch->count; i++) {
		const struct source *source = watch->sources[i].source;
		if (watch->sources[i].answer != SOURCE_PENDING)
			continue;
		message_error("%s did not answer within --timeout", source_name(source));
		is_group |= source == group;
	}
	return is_group;
}

/* For --once: check each source once. STATUS_NO only if all have answered that there is none. */
static int look_once(struct source_set *watch, int64_t deadline)
{
	struct notice notice;
	struct error err;
	enum source_set_event event;
	bool done[SOURCE_SET_SOURCES] = {false}, found = false, doubt = false;
	size_t which, left = watch->count;
	int code = STATUS_OK, refused = STATUS_TEMPORARY;

	watch->all = true;
	for (;;) {
		while ((event = source_set_next(watch, &which, &notice, &err)) != SOURCE_SET_END) {
			if (done[which])
				continue;
			if (event == SOURCE_SET_DOUBT) {
				const struct source *source = watch->sources[which].source;
				message_error("cannot ask %s: %s", source_name(source), err.text);
				if (source == group && is_refusal(&err))
					refused = (int)err.status;
			} else if (event == SOURCE_SET_WARNING)
				source_set_say(event, "", &err);
			else if (event == SOURCE_SET_NOTICE && code == STATUS_OK)
				code = handle(&notice);
			doubt |= event == SOURCE_SET_DOUBT;
			found |= event == SOURCE_SET_NOTICE;
		}
		left = 0;
		for (size_t i = 0; i < watch->count; i++) {
			done[i] = watch->sources[i].answer != SOURCE_PENDING;
			left += !done[i];
		}
		if (left == 0 || ending_signal() || code != STATUS_OK)
			break;
		if (clock_now() >= deadline)
			return found				? code
			       : say_unanswered(watch) || doubt ? refused
								: STATUS_TIMEOUT;
		wait_for_sources(watch, deadline);
	}
	return found ? code : doubt ? refused : STATUS_NO;
}

/* Without --source, watch for notices of this machine and, if a run is named, for its claim. */
static enum status open_sources(struct source_set *watch, struct error *err)
{
	struct listen_request request = {.specifications = sources.items,
		.platform = platform			  ? platform
			    : sources.count || until_exit ? NULL
							  : "auto",
		.how = {.grace = grace, .period = period, .timeout = look_timeout},
		.until_exit = until_exit,
		.past = once};
	struct text warnings = {0};
	if (sources.count == 0 && (group_options.run || until_exit))
		sources.items[sources.count++] = "group";
	else if (sources.count == 0 && group_options.store)
		message_info("no run is named, so only this machine's notices are watched; give "
			     "--run NAME or --source group");
	request.count = sources.count;
	enum status status = listen_open(watch, &request, &group, &warnings, err);
	message_warnings(warnings.data);
	text_release(&warnings);
	return status;
}

static enum status check_options(struct error *err)
{
	if (once && follow)
		return error_set(err, STATUS_USAGE, "--once and --follow exclude each other");
	if (until_exit && (follow || sources.count > 1 ||
				  (sources.count && strcmp(sources.items[0], "group"))))
		return error_set(err, STATUS_USAGE,
			"--until-exit waits for the group's claim: give no other source, and no --follow");
	if ((period_given && period < 10) || (look_timeout_given && look_timeout < 10))
		return error_set(err, STATUS_USAGE, "%s: must be at least 10ms",
			period_given && period < 10 ? "--period" : "--look-timeout");
	if (command && !*command)
		return error_set(err, STATUS_USAGE, "--exec: the command is empty");
	return STATUS_OK;
}

static int print_platform(void)
{
	struct signs signs;
	struct text text = {0};
	signs_inspect(&signs);
	platform_show(&signs, &text);
	text_add(&text, "sources: ");
	source_list(&text);
	text_add(&text, "\n");
	fputs(text_string(&text), stdout);
	text_release(&text);
	return STATUS_OK;
}

static int run(const struct args_rest *rest)
{
	struct source_set watch = {0};
	struct error err;
	sigset_t all;
	int code;
	(void)rest;

	if (show_platform)
		return print_platform();
	int64_t deadline =
		group_options.timeout_given ? clock_after(group_options.timeout) : CLOCK_NEVER;
	if (check_options(&err) != STATUS_OK || loop_open(&loop, &err) != STATUS_OK ||
		(!once && served_open_task(&agent, &board, &err) != STATUS_OK) ||
		open_sources(&watch, &err) != STATUS_OK) {
		code = message_fail(&err);
	} else {
		ending_catch();
		loop_watch(&loop, agent);
		message_patience(1000); /* a stalled reader of stderr must not delay a notice */
		has_reader = stdout_has_reader();
		code = once ? look_once(&watch, deadline) : STATUS_TIMEOUT;
		if (!once || (until_exit && code == STATUS_OK))
			code = watch_on(&watch, deadline, code);
	}
	/* A second TERM must not kill us before we have returned our exit code. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	source_set_release(&watch);
	return ending_signal() ? ending_die(ending_signal()) : code;
}

static const struct args_command commands[] = {
	{.synopsis = "[--source SPEC]... [--follow | --once] [--exec COMMAND] [OPTION...]",
		.options = options,
		.common = group_option_table,
		.run = run},
	{0},
};

int main(int argc, char **argv)
{
	static const struct args_program program = {"preempt-watch",
		"Wait for the notice that this machine goes away, or for the group's, and print it.",
		commands,
		"examples:\n"
		"  preempt-watch --source signal:TERM,USR1 --source file:/run/drain --json\n"
		"  preempt-watch --follow --source signal:TERM | preempt-claim --from -\n"
		"  preempt-watch --source group --run mymodel && preempt-ack\n"};
	return args_main(&program, argc, argv);
}
