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
#include "ckpt/adopted.h"
#include "ckpt/ckpt.h"
#include "ckpt/prune.h"
#include "ckpt/show.h"

static uint64_t attempt, task, tasks, keep_last;
static bool attempt_given, task_given, tasks_given, keep_last_given;
static bool sharded, only_step, json, contents, every, dry_run;
static const char *otherwise, *layout, *pattern;
static int64_t settled = ADOPTED_SETTLED;

/* As many as a shell can name. */
#define DIRECTORIES 1024
/* Of all that read DIRs. */
#define LAYOUT_OPTIONS                                                                             \
	{0, "layout", "NAME",                                                                      \
		"auto, native, hf, lightning, deepspeed, megatron, tensorflow or orbax",           \
		ARGS_TEXT, &layout, NULL, 0, 0, NULL},                                             \
	{                                                                                          \
		0, "pattern", "PATTERN", "names such as 'model-{step}.pt' are checkpoints",        \
			ARGS_TEXT, &pattern, NULL, 0, 0, NULL                                      \
	}

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
	LAYOUT_OPTIONS,
	{0},
};
static const struct args_option verify_options[] = {
	{0, "all", NULL, "all of them, not only the newest", ARGS_FLAG, &every, NULL, 0, 0, NULL},
	LAYOUT_OPTIONS,
	{0},
};
static const struct args_option prune_options[] = {
	{0, "keep-last", "N", "keep the N newest complete ones, at least 1", ARGS_UNSIGNED,
		&keep_last, NULL, 1, 1000000000, &keep_last_given},
	{'n', "dry-run", NULL, "only say what would go", ARGS_FLAG, &dry_run, NULL, 0, 0, NULL},
	{0, "settled", "D", "not native: unchanged for so long, nobody writes it (15m)",
		ARGS_DURATION, &settled, NULL, 0, 0, NULL},
	LAYOUT_OPTIONS,
	{0},
};
static const struct args_option list_options[] = {
	LAYOUT_OPTIONS,
	{0},
};
static const struct args_option json_option[] = {
	{0, "json", NULL, "print JSON, not text", ARGS_FLAG, &json, NULL, 0, 0, NULL},
	{0},
};

/* A DIR, without slashes at its end: what we print is made of it. */
static const char *directory_at(const struct args_rest *rest, size_t index)
{
	char *directory = rest->words[index];
	for (size_t n = strlen(directory); n > 1 && directory[n - 1] == '/'; n--)
		directory[n - 1] = '\0';
	return directory;
}

static enum status read_target(
	const struct args_rest *rest, struct checkpoint_target *target, struct error *err)
{
	*target = (struct checkpoint_target){.directory = directory_at(rest, 0),
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

/* What a list or search found noteworthy, one line each. */
static void warn(struct text *lines)
{
	for (char *at = lines->data, *end; at && (end = strchr(at, '\n')); at = end + 1)
		message_error("%.*s", (int)(end - at), at);
	text_release(lines);
}

/* The worse of two codes: "could not be asked" outweighs "damaged", and that any other. */
static int worse(int a, int b)
{
	return a > b ? a : b;
}

/* The newest of one DIR. */
static enum status find_latest(const char *directory, struct checkpoint *found, struct error *err)
{
	struct layout_choice choice;
	struct text skipped = {0};
	enum status status = adopted_choose(directory, layout, pattern, &choice, err);
	if (status == STATUS_OK)
		status = adopted_latest(directory, &choice, contents, found, &skipped, err);
	if (status == STATUS_OK && contents && choice.layout)
		message_info("%s: there are no checksums in the layout %s; names, sizes and "
			     "structure were checked",
			directory, layout_name(&choice));
	warn(&skipped);
	return status;
}

static int run_latest(const struct args_rest *rest)
{
	struct error err = {0};
	struct text line = {0}, none = {0};
	struct checkpoint best = {0}, found;
	const char *where = NULL;
	for (size_t i = 0; i < rest->count; i++) {
		const char *directory = directory_at(rest, i);
		enum status status = find_latest(directory, &found, &err);
		if (status == STATUS_NO) {
			text_addf(&none, "%s%s", none.length ? "; " : "", err.text);
		} else if (status != STATUS_OK) {
			text_release(&none);
			return message_fail(&err);
		} else if (!where || found.step > best.step) {
			best = found;
			where = directory;
		}
	}
	if (!where) {
		message_info("%s", text_string(&none));
		if (otherwise)
			printf("%s\n", otherwise);
	} else if (json) {
		show_json(&line, where, &best, NULL);
	} else if (only_step) {
		text_addf(&line, "%" PRIu64, best.step);
	} else {
		text_addf(&line, "%s/%s", where, best.name);
	}
	text_release(&none);
	if (where)
		text_add(&line, "\n");
	print(&line);
	return where || otherwise ? STATUS_OK : STATUS_NO;
}

/* Of a table of several DIRs. */
static void show_heading(const struct args_rest *rest, size_t index)
{
	if (rest->count > 1 && !json)
		printf("%s%s:\n", index ? "\n" : "", directory_at(rest, index));
}

/* A row; what the names do not show is shown by our own steps. */
static void show_row(struct text *line, size_t index, const char *directory, bool native,
	const struct checkpoint *item, const struct keep_verdict *verdict, const char *what)
{
	char name[sizeof(item->name) * 4];
	struct text both = {0};
	text_escape(name, sizeof(name), item->name, strlen(item->name));
	text_addf(&both, native ? "%s" : "%s %s", what, name);
	if (json)
		show_element(line, index, directory, item, verdict);
	else
		show_line(line, item, clock_utc(), text_string(&both),
			verdict ? verdict->why : item->why);
	text_release(&both);
}

static int run_list(const struct args_rest *rest)
{
	struct text line = {0};
	size_t shown = 0;
	int code = STATUS_OK;
	if (json)
		show_begin(&line, true, 0, "");
	for (size_t d = 0; d < rest->count; d++) {
		struct error err = {0};
		struct text notes = {0};
		struct layout_choice choice;
		struct checkpoint_list list = {0};
		const char *directory = directory_at(rest, d);
		enum status status = adopted_choose(directory, layout, pattern, &choice, &err);
		if (status == STATUS_OK)
			status = adopted_list(directory, &choice, &list, &notes, &err);
		warn(&notes);
		if (status != STATUS_OK) {
			code = worse(code, message_fail(&err));
			continue;
		}
		show_heading(rest, d);
		if (!json)
			show_begin(&line, false, list.count, "STATE");
		for (size_t i = 0; i < list.count; i++) {
			show_row(&line, shown++, directory, !choice.layout, &list.items[i], NULL,
				checkpoint_state_name(list.items[i].state));
			print(&line);
		}
		checkpoint_list_release(&list);
	}
	if (rest->count > 1 || code == STATUS_OK)
		show_end(&line, json);
	else
		text_release(&line);
	print(&line);
	return code;
}

/* Say what one is. The code it gives. */
static int verify_one(
	const char *directory, const struct layout_choice *choice, const struct checkpoint *item)
{
	struct error err = {0};
	struct checkpoint found = *item;
	struct text size = {0};
	enum status status = STATUS_OK;
	if (!choice->layout)
		status = checkpoint_look(directory, item->step, true, &found, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	if (found.state == CHECKPOINT_COMPLETE) {
		show_size(&size, found.bytes);
		printf("%s %s: %" PRIu64 " files, %s%s\n", found.name,
			choice->layout ? "complete" : "verified", found.files, text_string(&size),
			choice->layout ? " (no checksums: names, sizes and structure)" : "");
		text_release(&size);
		return STATUS_OK;
	}
	message_error("%s/%s is %s: %s", directory, found.name, checkpoint_state_name(found.state),
		found.why);
	if (found.state == CHECKPOINT_DAMAGED)
		printf("%s damaged: %s\n", found.name, found.why);
	return checkpoint_status(&found);
}

/* All of one DIR, its newest, or (one) those of a step. */
static int verify_directory(const char *directory, bool one, uint64_t step)
{
	struct error err = {0};
	struct text notes = {0};
	struct layout_choice choice;
	struct checkpoint_list list = {0};
	int code = STATUS_NO;
	bool any = false;
	enum status status = adopted_choose(directory, layout, pattern, &choice, &err);
	if (status == STATUS_OK && one && !choice.layout)
		return verify_one(directory, &choice, &(struct checkpoint){.step = step});
	if (status == STATUS_OK)
		status = adopted_list(directory, &choice, &list, &notes, &err);
	warn(&notes);
	if (status != STATUS_OK)
		return message_fail(&err);
	for (size_t i = list.count; i-- > 0 && (one || every || code == STATUS_NO);) {
		const struct checkpoint *item = &list.items[i];
		if (one ? item->step != step
			: item->state == CHECKPOINT_INCOMPLETE || item->state == CHECKPOINT_FOREIGN)
			continue;
		any = true;
		int answer = verify_one(directory, &choice, item);
		if (answer != STATUS_NO && (code == STATUS_NO || answer > code))
			code = answer;
	}
	if (!any && one)
		message_error("there is no checkpoint of step %" PRIu64 " in %s", step, directory);
	else if (!any)
		message_info("there is no checkpoint in %s", directory);
	checkpoint_list_release(&list);
	return code;
}

static int run_verify(const struct args_rest *rest)
{
	struct error err = {0};
	uint64_t step = 0;
	int code = STATUS_OK;
	/* Several DIRs, or one and a STEP: a DIR of digits only is written ./500. */
	bool one =
		rest->count == 2 && strspn(rest->words[1], "0123456789") == strlen(rest->words[1]);
	enum status status = STATUS_OK;
	if (one && every)
		status = error_set(&err, STATUS_USAGE, "give either STEP or --all");
	else if (one)
		status = parse_unsigned(rest->words[1], 0, CKPT_NUMBER_MAX, &step, "STEP", &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	for (size_t i = 0; i < (one ? 1 : rest->count); i++)
		code = worse(code, verify_directory(directory_at(rest, i), one, step));
	return code;
}

/* One DIR; *shown: rows of all so far. */
static int prune_directory(
	const char *directory, const struct keep_policy *policy, bool wanted, size_t *shown)
{
	struct error err = {0};
	struct text line = {0};
	struct prune_report report = {0};
	struct layout_choice choice;
	enum status status = adopted_choose(directory, layout, pattern, &choice, &err);
	if (status == STATUS_OK)
		status = adopted_prune(directory, &choice, policy, settled, dry_run, &report, &err);
	if (wanted && !json)
		show_begin(&line, false, report.count, "WHAT");
	for (size_t i = 0; i < report.count && wanted; i++) {
		const struct prune_item *item = &report.items[i];
		show_row(&line, (*shown)++, directory, !choice.layout, &item->checkpoint,
			&item->verdict, prune_deed(item, dry_run));
		print(&line);
	}
	text_release(&line);
	if (report.leftovers)
		message_info("%s %zu left by an earlier prune",
			dry_run ? "would delete" : "deleted", report.leftovers);
	prune_report_release(&report);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

static int run_prune(const struct args_rest *rest)
{
	struct error err = {0};
	struct text line = {0};
	const struct keep_policy policy = {.last = keep_last};
	size_t shown = 0;
	int code = STATUS_OK;
	if (!keep_last_given) {
		error_set(&err, STATUS_USAGE, "no rule says what to keep; give --keep-last N");
		return message_fail(&err);
	}
	bool wanted = json || !message_is_quiet();
	if (json)
		show_begin(&line, true, 0, "");
	print(&line);
	for (size_t i = 0; i < rest->count; i++) {
		if (wanted)
			show_heading(rest, i);
		code = worse(code, prune_directory(directory_at(rest, i), &policy, wanted, &shown));
	}
	show_end(&line, json);
	print(&line);
	return code;
}

static const struct args_command commands[] = {
	{"begin", "DIR STEP [--attempt K] [--sharded --task I --tasks N]",
		"make the directory to write into", write_options, NULL, 2, 2, false, false,
		run_begin},
	{"commit", "DIR STEP [--attempt K] [--sharded --task I --tasks N]",
		"sync it, take checksums, publish it", write_options, NULL, 2, 2, false, false,
		run_commit},
	{"latest", "DIR... [--step | --json] [--or WORD] [--verify]", "print the newest complete",
		latest_options, json_option, 1, DIRECTORIES, false, false, run_latest},
	{"list", "DIR... [--json]", "show all", list_options, json_option, 1, DIRECTORIES, false,
		false, run_list},
	{"verify", "DIR... [STEP | --all]", "compare the checksums of one or all", verify_options,
		NULL, 1, DIRECTORIES, false, false, run_verify},
	{"prune", "DIR... --keep-last N [--dry-run] [--json]", "remove what need not be kept",
		prune_options, json_option, 1, DIRECTORIES, false, false, run_prune},
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
