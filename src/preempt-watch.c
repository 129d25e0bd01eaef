/* SPDX-License-Identifier: MIT */
/*
 * preempt-watch: wait for a notice, of this machine or of the group; print it as one line, or run a
 * command for it. One event and exit 0, or --follow. --once looks at each source once.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/process.h"
#include "group/options.h"
#include "group/source_group.h"
#include "notice/watch.h"

static struct args_list sources;
static int64_t grace = -1, period, look_timeout;
static bool period_given, look_timeout_given;
static bool follow, once, until_exit;
static const char *command;
static struct source *group; /* the one among the sources, or NULL */

/* clang-format off */
static const struct args_option options[] = {
	{0, "source", "SPEC", "signal:TERM,USR1, file:PATH, command:TEXT or group; repeatable",
		ARGS_LIST, &sources, NULL, 0, 0, NULL},
	{'f', "follow", NULL, "go on after the first notice", ARGS_FLAG, &follow, NULL, 0, 0, NULL},
	{0, "once", NULL, "look at each source once: 0 a notice, 1 none, 75 could not ask", ARGS_FLAG,
		&once, NULL, 0, 0, NULL},
	{0, "exec", "COMMAND", "run COMMAND by sh for each notice, print nothing", ARGS_TEXT, &command,
		NULL, 0, 0, NULL},
	{0, "grace", "D", "how long after a notice the machine goes away", ARGS_DURATION, &grace,
		"PREEMPT_GRACE", 0, 0, NULL},
	{0, "period", "D", "time between two looks at a file or by a command (1s)", ARGS_DURATION,
		&period, NULL, 0, 0, &period_given},
	{0, "look-timeout", "D", "time that a source's command may take (10s)", ARGS_DURATION,
		&look_timeout, NULL, 0, 0, &look_timeout_given},
	{0, "until-exit", NULL, "the group's claim: then wait until whoever claimed is gone", ARGS_FLAG,
		&until_exit, NULL, 0, 0, NULL},
	{0},
};
/* clang-format on */

/* Signals that end us. Blocked, except while we wait: no wake-up can be missed. */
static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static volatile sig_atomic_t ended_by;
static sigset_t waiting_mask;
/* Somebody reads our stdout, and we are to end when he goes away. */
static bool has_reader;

static void end(int number)
{
	ended_by = number;
}

/* Handlers, not SIG_IGN: what is ignored would be ignored by the commands we start, too. */
static void catch_endings(void)
{
	struct sigaction old, action = {.sa_handler = end};
	struct stat st;
	sigset_t block;
	sigemptyset(&block);
	sigprocmask(SIG_SETMASK, NULL, &waiting_mask);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		/* Ignored by whoever started us, or a source of notices: not ours. */
		if (sigaction(endings[i], NULL, &old) < 0 || old.sa_handler != SIG_DFL)
			continue;
		sigaction(endings[i], &action, NULL);
		sigaddset(&block, endings[i]);
		sigdelset(&waiting_mask, endings[i]);
	}
	sigprocmask(SIG_BLOCK, &block, NULL);
	/* A reader that went away is seen as EPIPE, so that commands are ended first. */
	if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		has_reader = sigaction(SIGPIPE, &action, NULL) == 0 && !command &&
			     fstat(STDOUT_FILENO, &st) == 0 &&
			     (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* End as this signal ends a program, so that a shell sees it; its exit code where it cannot. */
static int die_of(int number)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t only;
	sigemptyset(&only);
	sigaddset(&only, number);
	sigaction(number, &action, NULL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	return 128 + number;
}

/* Wait until one is ready, deadline, or a signal. */
static void wait_for(struct pollfd *polls, size_t count, int64_t deadline)
{
	int64_t left = deadline == CLOCK_NEVER ? 0 : deadline - clock_now();
	struct timespec limit = {.tv_sec = left > 0 ? (time_t)(left / 1000) : 0,
		.tv_nsec = left > 0 ? (long)(left % 1000) * 1000000 : 0};
	for (size_t i = 0; i < count; i++)
		polls[i].revents = 0;
	if (ended_by)
		return;
	if (ppoll(polls, count, deadline == CLOCK_NEVER ? NULL : &limit, &waiting_mask) < 0)
		for (size_t i = 0; i < count; i++)
			polls[i].revents = 0;
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
	/* In one write, at once: the reader of a pipe waits for it. */
	if (line.failed) {
		message_error("out of memory");
		code = STATUS_TEMPORARY;
	} else if (file_write_all(STDOUT_FILENO, line.data, line.length) < 0) {
		code = STATUS_TEMPORARY;
		if (errno != EPIPE || ended_by != SIGPIPE)
			message_error("cannot write the notice to stdout: %s", strerror(errno));
	}
	text_release(&line);
	return code;
}

/* The notice as standard input of a command: it fits into a pipe. */
static int notice_pipe(const struct notice *notice)
{
	struct text line = {0};
	int ends[2];
	notice_write_json(notice, &line);
	text_add(&line, "\n");
	if (pipe2(ends, O_CLOEXEC) < 0) {
		text_release(&line);
		return -1;
	}
	(void)file_write_all(ends[1], line.data, line.length);
	close(ends[1]);
	text_release(&line);
	return ends[0];
}

static bool describe_notice(const struct notice *notice)
{
	char utc[32], left[32] = "";
	clock_format_utc(notice->received_utc, utc);
	if (notice->deadline != CLOCK_NEVER) {
		int64_t now = clock_now();
		snprintf(left, sizeof(left), "%lld",
			(long long)(notice->deadline > now ? notice->deadline - now : 0));
	}
	return setenv("PREEMPT_NOTICE_SOURCE", notice->source, 1) == 0 &&
	       setenv("PREEMPT_NOTICE_REASON", notice->reason, 1) == 0 &&
	       setenv("PREEMPT_NOTICE_UTC", utc, 1) == 0 &&
	       setenv("PREEMPT_NOTICE_LEFT_MS", left, 1) == 0;
}

/* Wait for a child; signals that end us are passed on to its group, and end us after it. */
static int wait_for_command(pid_t pid)
{
	int wait_status = 0, asked = 0;
	struct pollfd ended = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	while (waitpid(pid, &wait_status, WNOHANG) == 0) {
		wait_for(&ended, 1, ended.fd < 0 ? clock_after(50) : CLOCK_NEVER);
		if (ended_by) {
			asked = ended_by;
			ended_by = 0;
			kill(-pid, asked);
		}
	}
	if (ended.fd >= 0)
		close(ended.fd);
	if (asked)
		ended_by = asked;
	return process_exit_code(wait_status);
}

/* --exec: the text is its user's own; what the notice says goes only into variables and stdin. */
static int run_command(const struct notice *notice)
{
	char shell[] = "/bin/sh", option[] = "-c";
	char *text = strdup(command);
	char *argv[] = {shell, option, text, NULL};
	int input = notice_pipe(notice);
	struct process_command child = {
		.argv = argv, .own_group = true, .die_with_parent = true, .standard_input = input};
	struct error err;
	enum status status;
	pid_t pid;

	sigemptyset(&child.ignored);
	if (!text || input < 0 || !describe_notice(notice))
		status = error_set(&err, STATUS_TEMPORARY, "cannot run the command of --exec: %s",
			strerror(errno));
	else
		status = process_start(&child, &pid, &err);
	free(text);
	if (input >= 0)
		close(input);
	return status == STATUS_OK ? wait_for_command(pid) : message_fail(&err);
}

static int handle(const struct notice *notice)
{
	return command ? run_command(notice) : print_notice(notice);
}

/* The last one: our stdout, where its reader may go away while we wait for a notice. */
static struct pollfd polls[WATCH_SOURCES + 1];

static void wait_for_sources(const struct watch *watch, int64_t deadline)
{
	size_t count = watch_poll(watch, polls);
	int64_t due = watch_due(watch);
	polls[count] = (struct pollfd){.fd = has_reader ? STDOUT_FILENO : -1};
	wait_for(polls, count + 1, due < deadline ? due : deadline);
	if (polls[count].revents & POLLERR && !ended_by)
		ended_by = SIGPIPE;
}

/* A store that refuses us will do so for ever; one that cannot be asked at the moment will not. */
static bool is_refusal(const struct error *err)
{
	return err->status == STATUS_USAGE || err->status == STATUS_DAMAGED ||
	       err->status == STATUS_PERMISSION;
}

static void say_doubt(enum watch_event event, const char *name, const struct error *err)
{
	if (event == WATCH_DOUBT)
		message_detail("cannot ask %s: %s", name, err->text);
	else if (event == WATCH_LOST)
		message_error(
			"cannot ask %s, three times in a row: %s; asking goes on", name, err->text);
	else if (event == WATCH_BACK)
		message_info("%s answers again", name);
}

static bool group_has_answered(const struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->sources[i].source == group)
			return watch->sources[i].answer == SOURCE_NONE ||
			       watch->sources[i].answer == SOURCE_NOTICE;
	return false;
}

/*
 * Until the first notice (and until the claimer is gone), or --follow. code: STATUS_TIMEOUT until a
 * notice came.
 */
static int watch_on(struct watch *watch, int64_t deadline, int code)
{
	struct notice notice;
	struct error err;
	enum watch_event event;
	bool asked = false; /* the group has answered once */
	size_t which;

	for (;;) {
		wait_for_sources(watch, deadline);
		if (ended_by)
			return code;
		watch_begin(watch, polls);
		while ((event = watch_next(watch, &which, &notice, &err)) != WATCH_END) {
			const struct source *source = watch->sources[which].source;
			if (source == group && event == WATCH_DOUBT && !asked && is_refusal(&err))
				return message_fail(&err);
			say_doubt(event, source_name(source), &err);
			if (event != WATCH_NOTICE)
				continue;
			int answer = handle(&notice);
			if (code == STATUS_TIMEOUT || code == STATUS_OK)
				code = answer;
			if (ended_by || (answer && !command) || (!follow && !until_exit))
				return code;
			if (answer)
				message_info("the command of --exec ended with %d", answer);
		}
		asked |= group_has_answered(watch);
		if (until_exit && source_group_gone(group))
			return code;
		if (group && code == STATUS_TIMEOUT && source_group_over(group, &err) != STATUS_OK)
			return message_fail(&err);
		if (clock_now() < deadline)
			continue;
		if (code == STATUS_TIMEOUT)
			message_info("no notice came within --timeout");
		else if (until_exit)
			message_info("whoever claimed is not gone within --timeout");
		return until_exit ? STATUS_TIMEOUT : code;
	}
}

/* One look at each. A "no" is definite only where all could be asked. */
static int look_once(struct watch *watch, int64_t deadline)
{
	struct notice notice;
	struct error err;
	enum watch_event event;
	bool done[WATCH_SOURCES] = {false}, found = false, doubt = false;
	size_t which, left = watch->count;
	int code = STATUS_OK, refused = STATUS_TEMPORARY;

	watch_poll(watch, polls);
	for (size_t i = 0; i < watch->count; i++)
		polls[i].revents = POLLIN; /* ask also those that would wait */
	for (;;) {
		watch_begin(watch, polls);
		while ((event = watch_next(watch, &which, &notice, &err)) != WATCH_END) {
			if (done[which])
				continue;
			if (event == WATCH_DOUBT) {
				const struct source *source = watch->sources[which].source;
				message_error("cannot ask %s: %s", source_name(source), err.text);
				if (source == group && is_refusal(&err))
					refused = (int)err.status;
			} else if (event == WATCH_NOTICE && code == STATUS_OK)
				code = handle(&notice);
			doubt |= event == WATCH_DOUBT;
			found |= event == WATCH_NOTICE;
		}
		left = 0;
		for (size_t i = 0; i < watch->count; i++) {
			done[i] = watch->sources[i].answer != SOURCE_PENDING;
			left += !done[i];
		}
		if (left == 0 || ended_by || code != STATUS_OK)
			break;
		if (clock_now() >= deadline)
			return found ? code : STATUS_TIMEOUT;
		wait_for_sources(watch, deadline);
	}
	return found ? code : doubt ? refused : STATUS_NO;
}

static enum status add(
	struct watch *watch, enum status status, struct source *source, struct error *err)
{
	return status == STATUS_OK ? watch_add(watch, source, err) : status;
}

/* round 0: the claim. */
static enum status open_group(struct watch *watch, uint64_t round, struct error *err)
{
	struct identity identity;
	struct source *source = NULL;
	char url[4096];
	struct group_source_options how = {.store = url,
		.run = identity.run,
		.attempt = group_options.attempt_given ? group_options.attempt : 0,
		.round = round,
		.until_exit = until_exit};
	if (group)
		return error_set(err, STATUS_USAGE, "--source group: given twice");
	enum status status = group_identify(IDENTITY_RUN, 0, &identity, err);
	if (status == STATUS_OK)
		status = group_store_url(identity.run, false, url, sizeof(url), err);
	if (status == STATUS_OK)
		status = source_group_open(&source, &how, err);
	status = add(watch, status, source, err);
	if (status == STATUS_OK)
		group = source;
	return status;
}

/* "group" or "group:ROUND": anything else is a source by its specification. */
static enum status open_one(struct watch *watch, const char *specification, struct error *err)
{
	struct source_options how = {.grace = grace, .period = period, .timeout = look_timeout};
	struct source *source = NULL;
	uint64_t round = 0;
	bool claim = !strcmp(specification, "group");
	enum status status = STATUS_OK;
	if (!strncmp(specification, "group:", 6))
		status = parse_unsigned(
			specification + 6, 1, INT64_MAX, &round, "--source group:ROUND", err);
	if (status == STATUS_OK && (claim || round))
		return open_group(watch, round, err);
	if (status == STATUS_OK)
		status = source_open(&source, specification, &how, err);
	return add(watch, status, source, err);
}

/* Without --source: our own notice, and the claim of the group where one is named. */
static enum status open_sources(struct watch *watch, struct error *err)
{
	enum status status = STATUS_OK;
	if (sources.count == 0) {
		if (!until_exit)
			sources.items[sources.count++] = "signal:TERM";
		if (group_options.run || until_exit)
			sources.items[sources.count++] = "group";
		else if (group_options.store)
			message_info("no run is named, so only signal:TERM is watched; give --run "
				     "NAME or --source group");
	}
	for (size_t i = 0; i < sources.count && status == STATUS_OK; i++)
		status = open_one(watch, sources.items[i], err);
	return status;
}

static enum status check_options(struct error *err)
{
	if (once && follow)
		return error_set(err, STATUS_USAGE, "--once and --follow exclude each other");
	if (until_exit && (follow || sources.count > 1 ||
				  (sources.count && strcmp(sources.items[0], "group"))))
		return error_set(err, STATUS_USAGE,
			"--until-exit is about the group's claim: no other source, and no --follow");
	if ((period_given && period < 10) || (look_timeout_given && look_timeout < 10))
		return error_set(err, STATUS_USAGE, "%s: 10ms is the least",
			period_given && period < 10 ? "--period" : "--look-timeout");
	if (command && !*command)
		return error_set(err, STATUS_USAGE, "--exec: the command is empty");
	return STATUS_OK;
}

static int run(const struct args_rest *rest)
{
	struct watch watch = {0};
	struct error err;
	sigset_t all;
	int code;
	(void)rest;

	int64_t deadline =
		group_options.timeout_given ? clock_after(group_options.timeout) : CLOCK_NEVER;
	if (check_options(&err) != STATUS_OK || open_sources(&watch, &err) != STATUS_OK) {
		code = message_fail(&err);
	} else {
		catch_endings();
		code = once ? look_once(&watch, deadline) : STATUS_TIMEOUT;
		if (!once || (until_exit && code == STATUS_OK))
			code = watch_on(&watch, deadline, code);
	}
	/* A second TERM while we leave must not turn our answer into a death. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	watch_release(&watch);
	return ended_by ? die_of(ended_by) : code;
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
