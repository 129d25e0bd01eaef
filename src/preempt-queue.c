/* SPDX-License-Identifier: MIT */
/*
 * preempt-queue COMMAND: a durable queue of commands, run by preemptible workers (lib/queue). All
 * commands and all options are here; what they do is in src/preempt-queue/.
 */
#include "preempt-queue/client.h"
#include "queue/rules.h"

struct options options = {.queue = "default",
	.limit = QUEUE_LIMIT,
	.recovery = 3600000,
	.item = {.max_transient = RULES_TRANSIENT_MAX}};

/* clang-format off */
#define TAG(what) {"tag", "T", what, ARGS_TEXT, .target = &options.tag}
#define FOLLOW(what) {"follow", NULL, what, ARGS_FLAG, .target = &options.follow, .letter = 'f'}
#define EXIT_STATUS(what) {"exit-status", NULL, what, ARGS_FLAG, .target = &options.exit_status}
#define PLACE \
	{"store", "URL", "where the queue is: PATH, on a filesystem", ARGS_TEXT, \
		.target = &options.store, .environment = "PREEMPT_STORE"}, \
	{"queue", "NAME", "which queue (\"default\")", ARGS_NAME, \
		.target = &options.queue, .environment = "PREEMPT_QUEUE"}, \
	{"files", "DIR", "for outputs (default: beside the store)", ARGS_TEXT, \
		.target = &options.files, .environment = "PREEMPT_QUEUE_FILES"}
#define TIMEOUT \
	{"timeout", "D", "how long to wait (default: for ever)", ARGS_DURATION, \
		.target = &options.timeout, .given = &options.timeout_given}
#define JSON \
	{"json", NULL, "answer in JSON, one object per line", ARGS_FLAG, .target = &options.json}
/* clang-format on */

static const struct args_option place[] = {PLACE, {0}};
static const struct args_option place_wait[] = {PLACE, TIMEOUT, {0}};
static const struct args_option place_json[] = {PLACE, JSON, {0}};

static const struct args_option schedule_options[] = {
	{"lines", NULL,
		"one for each line of stdin: {} is the line, {1} {2} its fields, {#} its number",
		ARGS_FLAG, .target = &options.lines},
	{"null", NULL, "the lines of --lines end with a NUL", ARGS_FLAG, .target = &options.null,
		.letter = '0'},
	{"shell", NULL, "the first word is text for sh -c, the others its $1 ...", ARGS_FLAG,
		.target = &options.item.shell},
	TAG("a word for the command in list, cancel and messages"),
	{"after", "ID", "run it after these have succeeded: 3-7,9; may be repeated", ARGS_LIST,
		.target = &options.after},
	{"once", "KEY", "do not schedule again what was scheduled under KEY", ARGS_NAME,
		.target = &options.once},
	{"halt", "WHEN",
		"now, soon (let running ones end) or never (default): stop all if it fails",
		ARGS_TEXT, .target = &options.halt},
	{"priority", "N", "-4999 to 4999; a higher one runs sooner (0)", ARGS_TEXT,
		.target = &options.priority},
	{"timeout", "D", "how long one start may run (for ever)", ARGS_DURATION,
		.target = &options.item.timeout},
	{"needs", "D", "start it only where this much time is left", ARGS_DURATION,
		.target = &options.item.needs},
	{"max-attempts", "N", "failures after which it has failed (1)", ARGS_UNSIGNED,
		.target = &options.item.max_attempts, .min = 1, .max = 1000000},
	{"max-transient", "N", "how many times in a row it may exit with 75 (3)", ARGS_UNSIGNED,
		.target = &options.item.max_transient, .max = 1000000},
	{"env", "ENTRY", "NAME=VALUE, or NAME with its present value; may be repeated", ARGS_LIST,
		.target = &options.environment},
	{"stdin", "FILE", "its stdin (empty)", ARGS_TEXT, .target = &options.input},
	{"stdout", "FILE", "write its stdout there, emptied at each start; {}, {id}, {worker}",
		ARGS_TEXT, .target = &options.output},
	{"directory", "DIR", "its directory (this one; '': that of its worker)", ARGS_ANY_TEXT,
		.target = &options.directory},
	{"resource", "NAME", "a resource that it needs; may be repeated", ARGS_LIST,
		.target = &options.resources},
	{"limit", "N", "wait while N commands are waiting (262144; 0: no limit)", ARGS_UNSIGNED,
		.target = &options.limit, .max = QUEUE_ID_MAX},
	{"wait", "D", "how long to wait for room, or for running commands (for ever)",
		ARGS_DURATION, .target = &options.timeout, .given = &options.timeout_given},
	{0},
};

static const struct args_option join_options[] = {
	TAG("wait for commands with this tag"),
	FOLLOW("print a line for each command that ends"),
	EXIT_STATUS("exit with the code of the first failed command, not 44"),
	{"recovery", "D", "exit 75 if no worker has been alive for D (1h)", ARGS_DURATION,
		.target = &options.recovery},
	{0},
};

static const struct args_option done_options[] = {TAG("only commands with this tag"), {0}};

static const struct args_option fetch_options[] = {
	{"wait", NULL, "wait until it is over", ARGS_FLAG, .target = &options.wait},
	FOLLOW("print it as it grows, until the command is over"),
	{"stderr", NULL, "its stderr, not its stdout", ARGS_FLAG, .target = &options.from_stderr},
	EXIT_STATUS("exit with the command's own code"),
	{0},
};

static const struct args_option list_options[] = {
	{"state", "S", "any (default), waiting, running, blocked, succeeded, failed or cancelled",
		ARGS_TEXT, .target = &options.states},
	TAG("only commands with this tag"),
	{"limit", "N", "print at most N", ARGS_UNSIGNED, .target = &options.most, .min = 1,
		.max = QUEUE_ID_MAX},
	{"joblog", NULL, "commands that have run, in the columns of GNU parallel", ARGS_FLAG,
		.target = &options.joblog},
	{0},
};

static const struct args_option cancel_options[] = {
	{"all", NULL, "cancel all that wait or run", ARGS_FLAG, .target = &options.all},
	TAG("cancel those with this tag"),
	{0},
};

static const struct args_option retry_options[] = {
	{"failed", NULL, "put back those that failed", ARGS_FLAG, .target = &options.failed},
	{"cancelled", NULL, "put back those that were cancelled", ARGS_FLAG,
		.target = &options.cancelled},
	TAG("only those with this tag; alone: that failed or were cancelled"),
	{0},
};

static const struct args_option forget_options[] = {
	{"finished", NULL, "forget all that are over", ARGS_FLAG, .target = &options.finished},
	{"older-than", "D", "with --finished: that ended longer ago than this", ARGS_DURATION,
		.target = &options.older_than},
	TAG("with --finished: only those with this tag"),
	{0},
};

static const struct args_command commands[] = {
	{"schedule", "[OPTION...] [-- COMMAND [ARG...]]",
		"put a command, or one for each line of stdin, into the queue; print the ids",
		schedule_options, place, 0, 0, true, false, run_schedule},
	{"work", "[OPTION...]", "take commands and run them; exit 0: none left, 42: preempted",
		work_options, place, 0, 0, false, false, run_work},
	{"join", "[ID... | --tag T] [OPTION...]",
		"wait until all commands, or these, are over; exit 44: one has failed",
		join_options, place_wait, 0, 4096, false, false, run_join},
	{"done", "[ID... | --tag T]",
		"are all, or these, over? exit 0: yes, 1: not yet, 44: yes, and one has failed",
		done_options, place, 0, 4096, false, false, run_done},
	{"fetch", "ID... [--wait | --follow] [--stderr] [--exit-status]",
		"print the output of commands that are over; exit 1: not yet", fetch_options,
		place_wait, 1, 4096, false, false, run_fetch},
	{"list", "[OPTION...]", "print the commands, one per line", list_options, place_json, 0, 0,
		false, false, run_list},
	{"show", "ID...", "print everything about commands", NULL, place_json, 1, 4096, false,
		false, run_show},
	{"cancel", "ID... | --all | --tag T", "cancel waiting commands, end running ones",
		cancel_options, place, 0, 4096, false, false, run_cancel},
	{"retry", "ID... | [--failed] [--cancelled] [--tag T]",
		"put finished commands back into the queue", retry_options, place, 0, 4096, false,
		false, run_retry},
	{"forget", "ID... | --finished [--older-than D] [--tag T]",
		"remove commands that are over, with their output", forget_options, place, 0, 4096,
		false, false, run_forget},
	{"workers", "", "print the registered workers", NULL, place_json, 0, 0, false, false,
		run_workers},
	{"resource", "NAME -- COMMAND [ARG...]", "define how each worker builds a resource, once",
		NULL, place, 1, 1, true, true, run_resource},
	{0},
};

static const struct args_program program = {
	.name = "preempt-queue",
	.summary = "A durable queue of commands, run by workers that may be preempted.",
	.commands = commands,
};

int main(int argc, char **argv)
{
	return args_main(&program, argc, argv);
}
