/* SPDX-License-Identifier: MIT */
/*
 * ckpt-rotate: begin, commit, find, list, verify and prune checkpoints. ckpt/ckpt.h says what they
 * are, ckpt/keep.h which are kept; here are only the options, the answers and the exit codes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
#include "ckpt/ckpt.h"
#include "ckpt/prune.h"

#define KEEP_MAX 1000000000 /* more is a mistake, not a wish */

static uint64_t attempt, task, tasks, keep_last;
static bool attempt_given, task_given, tasks_given, keep_last_given;
static bool sharded, only_step, json, contents, every, dry_run;
static const char *otherwise;

static const struct args_option write_options[] = {
	{0, "attempt", "K", "the attempt that writes; 0 where nobody counts", ARGS_UNSIGNED,
		&attempt, "PREEMPT_ATTEMPT", 0, CKPT_NUMBER_MAX, &attempt_given},
	{0, "sharded", NULL, "each task has a shard; complete when all are committed", ARGS_FLAG,
		&sharded, NULL, 0, 0, NULL},
	{0, "task", "I", "this task, from 0 (with --sharded)", ARGS_UNSIGNED, &task, "PREEMPT_TASK",
		0, CKPT_NUMBER_MAX, &task_given},
	{0, "tasks", "N", "how many tasks there are", ARGS_UNSIGNED, &tasks, "PREEMPT_TASKS", 1,
		1000000, &tasks_given},
	{0},
};
static const struct args_option latest_options[] = {
	{0, "step", NULL, "print the step, not the path", ARGS_FLAG, &only_step, NULL, 0, 0, NULL},
	{0, "or", "WORD", "where there is definitely none: print WORD, exit 0", ARGS_TEXT,
		&otherwise, NULL, 0, 0, NULL},
	{0, "verify", NULL, "compare the checksums, too", ARGS_FLAG, &contents, NULL, 0, 0, NULL},
	{0, "json", NULL, "print a JSON object", ARGS_FLAG, &json, NULL, 0, 0, NULL},
	{0},
};
static const struct args_option list_options[] = {
	{0, "json", NULL, "print a JSON array", ARGS_FLAG, &json, NULL, 0, 0, NULL},
	{0},
};
static const struct args_option verify_options[] = {
	{0, "all", NULL, "all of them, not only the newest", ARGS_FLAG, &every, NULL, 0, 0, NULL},
	{0},
};
static const struct args_option prune_options[] = {
	{0, "keep-last", "N", "keep the N newest complete ones, at least 1", ARGS_UNSIGNED,
		&keep_last, NULL, 1, KEEP_MAX, &keep_last_given},
	{'n', "dry-run", NULL, "only say what would be done", ARGS_FLAG, &dry_run, NULL, 0, 0,
		NULL},
	{0, "json", NULL, "print a JSON array", ARGS_FLAG, &json, NULL, 0, 0, NULL},
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

static enum status read_step(const char *word, uint64_t *step, struct error *err)
{
	return parse_unsigned(word, 0, CKPT_NUMBER_MAX, step, "STEP", err);
}

static enum status read_target(
	const struct args_rest *rest, struct checkpoint_target *target, struct error *err)
{
	*target = (struct checkpoint_target){.directory = directory_of(rest),
		.attempt = attempt,
		.sharded = sharded,
		.task = task,
		.tasks = tasks_given ? tasks : 1};
	enum status status = read_step(rest->words[1], &target->step, err);
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

static void put_json(const char *directory, const struct checkpoint *found,
	const struct keep_verdict *verdict, struct text *line)
{
	char utc[32];
	text_addf(line, "{\"step\": %" PRIu64 ", \"attempt\": %" PRIu64 ", \"state\": \"%s\"",
		found->step, found->attempt, checkpoint_state_name(found->state));
	if (verdict) {
		text_addf(line, ", \"keep\": %s, \"reason\": ", verdict->keep ? "true" : "false");
		text_add_json_string(line, verdict->why);
	}
	if (found->tasks)
		text_addf(line, ", \"tasks\": %" PRIu64, found->tasks);
	if (found->utc) {
		clock_format_utc(found->utc, utc);
		text_addf(line, ", \"files\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"utc\": \"%s\"",
			found->files, found->bytes, utc);
	}
	if (*found->why) {
		text_add(line, ", \"why\": ");
		text_add_json_string(line, found->why);
	}
	text_add(line, ", \"path\": ");
	struct text path = {0};
	text_addf(&path, "%s/%s", directory, found->name);
	text_add_json_string(line, text_string(&path));
	text_add(line, "}");
	text_release(&path);
}

static void print_json(const char *directory, const struct checkpoint *found,
	const struct keep_verdict *verdict, const char *before)
{
	struct text line = {0};
	put_json(directory, found, verdict, &line);
	printf("%s%s", before, text_string(&line));
	text_release(&line);
}

static int run_latest(const struct args_rest *rest)
{
	struct error err = {0};
	struct text skipped = {0};
	struct checkpoint found;
	const char *directory = directory_of(rest);
	enum status status = checkpoint_latest(directory, contents, &found, &skipped, &err);
	for (char *line = skipped.data, *end; line && (end = strchr(line, '\n')); line = end + 1)
		message_error("%.*s", (int)(end - line), line);
	text_release(&skipped);
	if (status == STATUS_NO && otherwise) {
		message_info("%s", err.text);
		printf("%s\n", otherwise);
		return STATUS_OK;
	}
	if (status == STATUS_NO) {
		message_info("%s", err.text);
		return STATUS_NO;
	}
	if (status != STATUS_OK)
		return message_fail(&err);
	if (json) {
		print_json(directory, &found, NULL, "");
		printf("\n");
	} else if (only_step) {
		printf("%" PRIu64 "\n", found.step);
	} else {
		printf("%s/%s\n", directory, found.name);
	}
	return STATUS_OK;
}

static void format_size(uint64_t bytes, char text[24])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double size = (double)bytes;
	size_t unit = 0;
	for (; size >= 1023.95; unit++)
		size /= 1024;
	snprintf(text, 24, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

/* Since it was committed, in the two largest units. A clock that went backwards: 0s. */
static void format_age(int64_t utc, char text[24])
{
	int64_t seconds = (clock_utc() - utc) / 1000;
	if (seconds < 0)
		seconds = 0;
	if (seconds >= 86400)
		snprintf(
			text, 24, "%" PRId64 "d%02dh", seconds / 86400, (int)(seconds / 3600 % 24));
	else if (seconds >= 3600)
		snprintf(text, 24, "%dh%02dm", (int)(seconds / 3600), (int)(seconds / 60 % 60));
	else if (seconds >= 60)
		snprintf(text, 24, "%dm%02ds", (int)(seconds / 60), (int)(seconds % 60));
	else
		snprintf(text, 24, "%ds", (int)seconds);
}

/* STEP ATTEMPT TASKS SIZE AGE, in columns; "-" for what is not known. */
static void print_columns(const struct checkpoint *found)
{
	char count[24] = "-", size[24] = "-", age[24] = "-";
	if (found->tasks)
		snprintf(count, sizeof(count), "%" PRIu64, found->tasks);
	if (found->utc) {
		format_size(found->bytes, size);
		format_age(found->utc, age);
	}
	printf("%10" PRIu64 " %7" PRIu64 " %5s %10s %7s  ", found->step, found->attempt, count,
		size, age);
}
#define COLUMNS "      STEP ATTEMPT TASKS       SIZE     AGE  "

static int run_list(const struct args_rest *rest)
{
	struct error err = {0};
	struct checkpoint_list list = {0};
	const char *directory = directory_of(rest);
	enum status status = checkpoint_list(directory, &list, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	if (json)
		printf("[");
	else if (list.count)
		printf(COLUMNS "STATE\n");
	for (size_t i = 0; i < list.count; i++) {
		const struct checkpoint *item = &list.items[i];
		if (json) {
			print_json(directory, item, NULL, i ? ",\n " : "\n ");
			continue;
		}
		print_columns(item);
		printf("%s%s%s\n", checkpoint_state_name(item->state), *item->why ? ": " : "",
			item->why);
	}
	if (json)
		printf("\n]\n");
	checkpoint_list_release(&list);
	return STATUS_OK;
}

/* Say what one is. The code it gives. */
static int verify_one(const char *directory, uint64_t step)
{
	struct error err = {0};
	struct checkpoint found;
	char size[24];
	enum status status = checkpoint_look(directory, step, true, &found, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	format_size(found.bytes, size);
	switch (found.state) {
	case CHECKPOINT_COMPLETE:
		printf("%s verified: %" PRIu64 " files, %s\n", found.name, found.files, size);
		return STATUS_OK;
	case CHECKPOINT_UNKNOWN:
		message_error("%s/%s: %s", directory, found.name, found.why);
		return found.status;
	case CHECKPOINT_FOREIGN:
		message_error("%s/%s: %s", directory, found.name, found.why);
		return STATUS_NO;
	default:
		printf("%s damaged: %s\n", found.name, found.why);
		message_error("%s/%s is damaged: %s", directory, found.name, found.why);
		return STATUS_DAMAGED;
	}
}

static int run_verify(const struct args_rest *rest)
{
	struct error err = {0};
	struct checkpoint_list list = {0};
	const char *directory = directory_of(rest);
	uint64_t step;
	int code = STATUS_NO;
	if (rest->count == 2 && every) {
		message_error("give either STEP or --all");
		return STATUS_USAGE;
	}
	if (rest->count == 2)
		return read_step(rest->words[1], &step, &err) == STATUS_OK
			       ? verify_one(directory, step)
			       : message_fail(&err);
	enum status status = checkpoint_list(directory, &list, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	for (size_t i = list.count; i-- > 0 && (every || code == STATUS_NO);) {
		const struct checkpoint *item = &list.items[i];
		if (item->state == CHECKPOINT_INCOMPLETE || item->state == CHECKPOINT_FOREIGN)
			continue;
		int one = verify_one(directory, item->step);
		/* "Could not be asked" outweighs "damaged", and that "verified". */
		if (code == STATUS_NO || one > code)
			code = one;
	}
	if (code == STATUS_NO)
		message_info("there is no checkpoint in %s", directory);
	checkpoint_list_release(&list);
	return code;
}

static const char *deed(const struct prune_item *item)
{
	if (item->verdict.keep)
		return dry_run ? "keep" : "kept";
	return dry_run			   ? "remove"
	       : item->status == STATUS_OK ? "removed"
	       : item->status == STATUS_NO ? "gone"
					   : "FAILED";
}

static int run_prune(const struct args_rest *rest)
{
	struct error err = {0};
	struct prune_report report = {0};
	const char *directory = directory_of(rest);
	const struct keep_policy policy = {.last = keep_last};
	if (!keep_last_given) {
		message_error("no rule says what to keep; give --keep-last N");
		return STATUS_USAGE;
	}
	enum status status = checkpoint_prune(directory, &policy, dry_run, &report, &err);
	bool table = !json && !message_is_quiet();
	if (json)
		printf("[");
	else if (table && report.count)
		printf(COLUMNS "WHAT     WHY\n");
	for (size_t i = 0; i < report.count && (json || table); i++) {
		const struct prune_item *item = &report.items[i];
		if (json) {
			print_json(
				directory, &item->checkpoint, &item->verdict, i ? ",\n " : "\n ");
			continue;
		}
		print_columns(&item->checkpoint);
		printf("%-8s %s\n", deed(item), item->verdict.why);
	}
	if (json)
		printf("\n]\n");
	if (report.leftovers)
		message_info("%s %zu left by an earlier prune",
			dry_run ? "would delete" : "deleted", report.leftovers);
	prune_report_release(&report);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

static const struct args_command commands[] = {
	{"begin", "DIR STEP [--attempt K] [--sharded --task I --tasks N]",
		"make the directory to write into, empty, and print it", write_options, NULL, 2, 2,
		false, false, run_begin},
	{"commit", "DIR STEP [--attempt K] [--sharded --task I --tasks N]",
		"sync it, record checksums, publish it whole", write_options, NULL, 2, 2, false,
		false, run_commit},
	{"latest", "DIR [--step] [--or WORD] [--verify]", "print the newest complete checkpoint",
		latest_options, NULL, 1, 1, false, false, run_latest},
	{"list", "DIR [--json]", "show all of them", list_options, NULL, 1, 1, false, false,
		run_list},
	{"verify", "DIR [STEP | --all]", "compare the checksums of one or all", verify_options,
		NULL, 1, 2, false, false, run_verify},
	{"prune", "DIR --keep-last N [--dry-run]", "remove what need not be kept", prune_options,
		NULL, 1, 1, false, false, run_prune},
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
