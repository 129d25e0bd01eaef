/* SPDX-License-Identifier: MIT */
/* Checkpoints: ckpt/ckpt.h says what they are, ckpt/keep.h which are kept; here are only options,
 * answers and exit codes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
#include "ckpt/ckpt.h"
#include "ckpt/prune.h"
#include "ckpt/show.h"

static uint64_t attempt, task, tasks, keep_last;
static bool attempt_given, task_given, tasks_given, keep_last_given;
static bool sharded, only_step, json, contents, every, dry_run;
static const char *otherwise;

static const struct args_option write_options[] = {
	{0, "attempt", "K", "the attempt that writes; 0 where nobody counts", ARGS_UNSIGNED,
		&attempt, "PREEMPT_ATTEMPT", 0, CKPT_NUMBER_MAX, &attempt_given},
	{0, "sharded", NULL, "each task has a shard of its own", ARGS_FLAG, &sharded, NULL, 0, 0,
		NULL},
	{0, "task", "I", "this task, from 0", ARGS_UNSIGNED, &task, "PREEMPT_TASK", 0,
		CKPT_NUMBER_MAX, &task_given},
	{0, "tasks", "N", "how many tasks there are", ARGS_UNSIGNED, &tasks, "PREEMPT_TASKS", 1,
		1000000, &tasks_given},
	{0},
};
static const struct args_option latest_options[] = {
	{0, "step", NULL, "print the step, not the path", ARGS_FLAG, &only_step, NULL, 0, 0, NULL},
	{0, "or", "WORD", "if there is none: print WORD, exit 0", ARGS_TEXT, &otherwise, NULL, 0, 0,
		NULL},
	{0, "verify", NULL, "compare the checksums, too", ARGS_FLAG, &contents, NULL, 0, 0, NULL},
	{0},
};
static const struct args_option verify_options[] = {
	{0, "all", NULL, "all of them, not only the newest", ARGS_FLAG, &every, NULL, 0, 0, NULL},
	{0},
};
static const struct args_option prune_options[] = {
	{0, "keep-last", "N", "keep the N newest complete ones, at least 1", ARGS_UNSIGNED,
		&keep_last, NULL, 1, 1000000000, &keep_last_given},
	{'n', "dry-run", NULL, "only say what would go", ARGS_FLAG, &dry_run, NULL, 0, 0, NULL},
	{0},
};
static const struct args_option json_option[] = {
	{0, "json", NULL, "print JSON, not text", ARGS_FLAG, &json, NULL, 0, 0, NULL},
	{0},
};

/* DIR, without slashes at its end: what we print is made of it. */
static const char *directory_of(const struct args_rest *rest)
{
	char *directory = rest->words[0];
	for (size_t n = strlen(directory); n > 1 && directory[n - 1] == '/'; n--)
		directory[n - 1] = '\0';
	return directory;
}

static enum status read_target(
	const struct args_rest *rest, struct checkpoint_target *target, struct error *err)
{
	*target = (struct checkpoint_target){.directory = directory_of(rest),
		.attempt = attempt,
		.sharded = sharded,
		.task = task,
		.tasks = tasks_given ? tasks : 1};
	enum status status =
		parse_unsigned(rest->words[1], 0, CKPT_NUMBER_MAX, &target->step, "STEP", err);
	if (status != STATUS_OK || !sharded)
		return status;
	if (!task_given || !tasks_given)
		return error_set(err, STATUS_USAGE,
			"--sharded needs --task and --tasks (PREEMPT_TASK, PREEMPT_TASKS)");
	if (task >= tasks)
		return error_set(err, STATUS_USAGE,
			"task %" PRIu64 " of %" PRIu64 ": tasks count from 0", task, tasks);
	/* Else shards written before and after a restart would make one checkpoint. */
	if (!attempt_given)
		return error_set(err, STATUS_USAGE,
			"--sharded needs --attempt (PREEMPT_ATTEMPT), another one for each start");
	return STATUS_OK;
}

static int run_begin(const struct args_rest *rest)
{
	struct error err = {0};
	struct text path = {0};
	struct checkpoint_target target;
	enum status status = read_target(rest, &target, &err);
	if (status == STATUS_OK)
		status = checkpoint_begin(&target, &path, &err);
	if (status == STATUS_OK)
		printf("%s\n", text_string(&path));
	text_release(&path);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

static int run_commit(const struct args_rest *rest)
{
	struct error err = {0};
	struct checkpoint_target target;
	struct checkpoint_commit answer = {0};
	enum status status = read_target(rest, &target, &err);
	if (status == STATUS_OK)
		status = checkpoint_commit(&target, &answer, &err);
	if (*answer.warning)
		message_error("%s", answer.warning);
	if (status == STATUS_OK && answer.complete) {
		printf("complete\n");
	} else if (status == STATUS_OK) {
		printf("waiting for %" PRIu64 " of %" PRIu64 "\n", answer.missing, target.tasks);
		message_detail("task %s: not committed yet", text_string(&answer.absent));
	}
	text_release(&answer.absent);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

static void print(struct text *text)
{
	fputs(text_string(text), stdout);
	text_release(text);
}

static int run_latest(const struct args_rest *rest)
{
	struct error err = {0};
	struct text skipped = {0}, line = {0};
	struct checkpoint found;
	const char *directory = directory_of(rest);
	enum status status = checkpoint_latest(directory, contents, &found, &skipped, &err);
	for (char *at = skipped.data, *end; at && (end = strchr(at, '\n')); at = end + 1)
		message_error("%.*s", (int)(end - at), at);
	text_release(&skipped);
	if (status == STATUS_NO) {
		message_info("%s", err.text);
		if (otherwise)
			printf("%s\n", otherwise);
		return otherwise ? STATUS_OK : STATUS_NO;
	}
	if (status != STATUS_OK)
		return message_fail(&err);
	if (json)
		show_json(&line, directory, &found, NULL);
	else if (only_step)
		text_addf(&line, "%" PRIu64, found.step);
	else
		text_addf(&line, "%s/%s", directory, found.name);
	text_add(&line, "\n");
	print(&line);
	return STATUS_OK;
}

static int run_list(const struct args_rest *rest)
{
	struct error err = {0};
	struct text line = {0};
	struct checkpoint_list list = {0};
	const char *directory = directory_of(rest);
	enum status status = checkpoint_list(directory, &list, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	show_begin(&line, json, list.count, "STATE");
	for (size_t i = 0; i < list.count; i++) {
		const struct checkpoint *item = &list.items[i];
		if (json)
			show_element(&line, i, directory, item, NULL);
		else
			show_line(&line, item, clock_utc(), checkpoint_state_name(item->state),
				item->why);
		print(&line);
	}
	show_end(&line, json);
	print(&line);
	checkpoint_list_release(&list);
	return STATUS_OK;
}

/* Say what one is. The code it gives. */
static int verify_one(const char *directory, uint64_t step)
{
	struct error err = {0};
	struct checkpoint found;
	struct text size = {0};
	enum status status = checkpoint_look(directory, step, true, &found, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	if (found.state == CHECKPOINT_COMPLETE) {
		show_size(&size, found.bytes);
		printf("%s verified: %" PRIu64 " files, %s\n", found.name, found.files,
			text_string(&size));
		text_release(&size);
		return STATUS_OK;
	}
	message_error("%s/%s is %s: %s", directory, found.name, checkpoint_state_name(found.state),
		found.why);
	if (found.state == CHECKPOINT_DAMAGED)
		printf("%s damaged: %s\n", found.name, found.why);
	return checkpoint_status(&found);
}

static int run_verify(const struct args_rest *rest)
{
	struct error err = {0};
	struct checkpoint_list list = {0};
	const char *directory = directory_of(rest);
	uint64_t step;
	int code = STATUS_NO;
	enum status status;
	if (rest->count == 2 && every)
		status = error_set(&err, STATUS_USAGE, "give either STEP or --all");
	else if (rest->count == 2)
		status = parse_unsigned(rest->words[1], 0, CKPT_NUMBER_MAX, &step, "STEP", &err);
	else
		status = checkpoint_list(directory, &list, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	if (rest->count == 2)
		return verify_one(directory, step);
	for (size_t i = list.count; i-- > 0 && (every || code == STATUS_NO);) {
		const struct checkpoint *item = &list.items[i];
		if (item->state == CHECKPOINT_INCOMPLETE || item->state == CHECKPOINT_FOREIGN)
			continue;
		int one = verify_one(directory, item->step);
		/* "Could not be asked" outweighs "damaged", and that "verified". */
		if (one != STATUS_NO && (code == STATUS_NO || one > code))
			code = one;
	}
	if (code == STATUS_NO)
		message_info("there is no checkpoint in %s", directory);
	checkpoint_list_release(&list);
	return code;
}

static int run_prune(const struct args_rest *rest)
{
	struct error err = {0};
	struct text line = {0};
	struct prune_report report = {0};
	const char *directory = directory_of(rest);
	const struct keep_policy policy = {.last = keep_last};
	enum status status = keep_last_given
				     ? checkpoint_prune(directory, &policy, dry_run, &report, &err)
				     : error_set(&err, STATUS_USAGE,
					       "no rule says what to keep; give --keep-last N");
	bool wanted = status != STATUS_USAGE && (json || !message_is_quiet());
	if (wanted)
		show_begin(&line, json, report.count, "WHAT");
	for (size_t i = 0; i < report.count && wanted; i++) {
		const struct prune_item *item = &report.items[i];
		if (json)
			show_element(&line, i, directory, &item->checkpoint, &item->verdict);
		else
			show_line(&line, &item->checkpoint, clock_utc(), prune_deed(item, dry_run),
				item->verdict.why);
		print(&line);
	}
	if (wanted)
		show_end(&line, json);
	print(&line);
	if (report.leftovers)
		message_info("%s %zu left by an earlier prune",
			dry_run ? "would delete" : "deleted", report.leftovers);
	prune_report_release(&report);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

static const struct args_command commands[] = {
	{"begin", "DIR STEP [--attempt K] [--sharded --task I --tasks N]",
		"make the directory to write into", write_options, NULL, 2, 2, false, false,
		run_begin},
	{"commit", "DIR STEP [--attempt K] [--sharded --task I --tasks N]",
		"sync it, take checksums, publish it", write_options, NULL, 2, 2, false, false,
		run_commit},
	{"latest", "DIR [--step | --json] [--or WORD] [--verify]", "print the newest complete",
		latest_options, json_option, 1, 1, false, false, run_latest},
	{"list", "DIR [--json]", "show all", NULL, json_option, 1, 1, false, false, run_list},
	{"verify", "DIR [STEP | --all]", "compare the checksums of one or all", verify_options,
		NULL, 1, 2, false, false, run_verify},
	{"prune", "DIR --keep-last N [--dry-run] [--json]", "remove what need not be kept",
		prune_options, json_option, 1, 1, false, false, run_prune},
	{0},
};

static const struct args_program program = {
	"ckpt-rotate",
	"commit, find and prune checkpoints; a half-written one is never offered",
	commands,
	"save:    d=$(ckpt-rotate begin ck $step) && cp model \"$d\" && ckpt-rotate commit ck $step\n"
	"resume:  start=$(ckpt-rotate latest --step --or 0 ck) || exit\n"
	"cron:    ckpt-rotate prune -q --keep-last 3 ck\n",
};

int main(int argc, char **argv)
{
	return args_main(&program, argc, argv);
}
