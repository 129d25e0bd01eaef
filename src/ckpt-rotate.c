/* SPDX-License-Identifier: MIT */
/* ckpt-rotate COMMAND: options, answers and exit codes. See ckpt/ckpt.h for checkpoints, and
 * ckpt/keep.h for which are kept. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "ckpt-rotate/rows.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/list.h"
#include "ckpt/prune.h"
#include "run/history.h"
#include "run/options.h"

static bool attempt_given, task_given, tasks_given, timeout_given, every_given, within_given;
static bool only_step, contents, quick, every;
static const char *otherwise, *when, *now_is, *reason, *mode, *max_bytes, *life;
static struct args_list metrics, keep_steps;
static struct checkpoint_target target = {.tasks = 1};
static struct prune_request request = {.wait = 60000, .settled = PRUNE_SETTLED};
static int64_t timeout;
static struct layout_words words;

#define DIRECTORIES 1024 /* the most that a command takes */

/* What a kind of option has in common. */
#define FLAG(variable)	   ARGS_FLAG, .target = &(variable)
#define TEXT(variable)	   ARGS_TEXT, .target = &(variable)
#define LIST(variable)	   ARGS_LIST, .target = &(variable)
#define TIME(variable)	   ARGS_DURATION, .target = &(variable)
#define UP_TO(most, value) ARGS_UNSIGNED, .target = &(value), .max = most
#define COUNT(variable)	   UP_TO(1000000000, variable), .min = 1
#define JSON                                                                                       \
	{                                                                                          \
		"json", NULL, "print JSON, not text", FLAG(rows_json)                              \
	}

static const struct args_option write_options[] = {
	{"attempt", "K", "the writer's attempt number; 0: attempts are not counted",
		UP_TO(CKPT_NUMBER_MAX, target.attempt), .environment = "PREEMPT_ATTEMPT",
		.given = &attempt_given},
	{"sharded", NULL, "each task has a shard of its own", FLAG(target.sharded)},
	{"chief-only", NULL, "all tasks write the same; only task 0's copy is kept",
		FLAG(target.chief_only)},
	{"task", "I", "this task, from 0 (default: $PREEMPT_TASK, or the rank)",
		UP_TO(CKPT_NUMBER_MAX, target.task), .given = &task_given},
	{"life", "WORD", "which start of the job writes: one word for all its tasks", TEXT(life),
		.environment = "PREEMPT_LIFE"},
	{"tasks", "N", "how many tasks there are", UP_TO(CKPT_TASKS_MAX, target.tasks), .min = 1,
		.environment = "PREEMPT_TASKS", .given = &tasks_given},
	{0},
};
static const struct args_option commit_options[] = {
	{"metric", "VALUE", "loss=0.25: what was measured; may be repeated", LIST(metrics)},
	{"time", "INSTANT", "@SECONDS after 1970: when it was made, if not now", TEXT(when)},
	{"timeout", "D", "time to wait for the other tasks", TIME(timeout),
		.given = &timeout_given},
	{"keep-last", "N", "then prune DIR: keep the N newest complete ones",
		COUNT(request.policy.last)},
	{0},
};
/* Of commands on DIRs of any layout. */
static const struct args_option layout_options[] = {
	{"layout", "NAME",
		"auto (default), native, hf, accelerate, lightning, nemo, verl, deepspeed, megatron, "
		"tensorflow, keras, orbax, composer or dcp",
		TEXT(words.layout)},
	{"pattern", "PATTERN", "names such as 'model-{step}.pt' are checkpoints",
		TEXT(words.pattern)},
	{"done", "FILE", "with --pattern: complete only with this file", TEXT(words.done)},
	{"undone", "FILE", "with --pattern: incomplete while this file exists", TEXT(words.undone)},
	{"tracker", "FILE", "with --pattern: the file in DIR that names the newest one",
		TEXT(words.tracker)},
	{0},
};
static const struct args_option latest_options[] = {
	{"step", NULL, "print the step, not the path", FLAG(only_step)},
	{"or", "WORD", "if there is none: print WORD, exit 0", ARGS_ANY_TEXT, .target = &otherwise},
	{"verify", NULL, "compare the checksums, too", FLAG(contents)},
	JSON,
	{0},
};
static const struct args_option list_options[] = {JSON, {0}};
static const struct args_option verify_options[] = {
	{"all", NULL, "all checkpoints, not only the newest", FLAG(every)},
	{"quick", NULL, "check only that all files exist, with their sizes", FLAG(quick)},
	{0},
};
static const struct args_option mark_options[] = {
	{"reason", "TEXT", "why it is bad, for messages", TEXT(reason)},
	{0},
};
static const struct args_option prune_options[] = {
	{"keep-last", "N", "keep the N newest complete ones", COUNT(request.policy.last)},
	{"keep-every-steps", "K", "keep each whose step is divisible by K",
		UP_TO(CKPT_NUMBER_MAX, request.policy.every_steps), .min = 1},
	{"keep-every", "D", "keep one per interval D, starting with the oldest",
		TIME(request.policy.every), .given = &every_given},
	{"keep-within", "D", "keep each that is not older than D", TIME(request.policy.within),
		.given = &within_given},
	{"keep-best", "N", "keep the N best by --metric", COUNT(request.policy.best)},
	{"metric", "NAME", "the metric to compare, from commit --metric",
		TEXT(request.policy.metric)},
	{"mode", "WHICH", "min or max: which values are better", TEXT(mode)},
	{"keep-step", "STEPS", "keep these: 100,200; may be repeated", LIST(keep_steps)},
	{"max-bytes", "SIZE", "remove the oldest while the sum is larger (500G)", TEXT(max_bytes)},
	{"dry-run", NULL, "only print what would be removed", FLAG(request.dry_run), .letter = 'n'},
	{"now", "INSTANT", "@SECONDS after 1970: decide as if it were this time", TEXT(now_is)},
	{"timeout", "D", "time to wait for another prune (1m)", TIME(request.wait)},
	{"settled", "D", "framework layouts: no longer written if unchanged for D (15m)",
		TIME(request.settled)},
	JSON,
	{0},
};

static enum status read_step(const char *word, uint64_t *step, struct error *err)
{
	return parse_unsigned(word, 0, CKPT_NUMBER_MAX, step, "STEP", err);
}

static enum status read_target(const struct args_rest *rest, struct error *err)
{
	target.directory = directory_at(rest, 0);
	enum status status = read_step(rest->words[1], &target.step, err);
	if (life && *life)
		life_of_word(life, target.life);
	if (status != STATUS_OK || (!target.sharded && !target.chief_only))
		return status;
	if (target.sharded && target.chief_only)
		return error_set(
			err, STATUS_USAGE, "--sharded and --chief-only exclude each other");
	status = task_given ? STATUS_OK : group_own_task(&target.task, err);
	if (status_is_error(status))
		return status;
	/* Without an attempt, shards from before and after a restart could form one checkpoint. */
	const char *needs =
		status == STATUS_NO || !tasks_given
			? "--task and --tasks (PREEMPT_TASK, PREEMPT_TASKS)"
		: target.task >= target.tasks ? "a --task below --tasks: tasks count from 0"
		: !target.sharded	      ? NULL
		: !attempt_given ? "--attempt (PREEMPT_ATTEMPT), another one for each start"
		: !*target.life	 ? "a word that names this start of the job, because shards of "
				   "two starts must not be mixed: use preempt-run, or `export "
				   "PREEMPT_LIFE=$(uuidgen)` before each start of all tasks"
				 : NULL;
	return needs ? error_set(err, STATUS_USAGE, "%s needs %s",
			       target.sharded ? "--sharded" : "--chief-only", needs)
		     : STATUS_OK;
}

/* The exit code of a command. */
static int code_of(enum status status, const struct error *err)
{
	return status == STATUS_OK ? STATUS_OK : message_fail(err);
}

static int run_begin(const struct args_rest *rest)
{
	struct error err;
	struct text path = {0};
	enum status status = read_target(rest, &err);
	if (status == STATUS_OK)
		status = checkpoint_begin(&target, &path, &err);
	if (status == STATUS_OK)
		printf("%s\n", text_string(&path));
	text_release(&path);
	return code_of(status, &err);
}

/* Say that the link is the user's own, if it is: "latest" in DIR. */
static void check_link(const char *directory)
{
	char link[CKPT_NAME_SIZE] = "";
	char *path = xprintf("%s/%s", directory, CKPT_LATEST);
	if ((readlink(path, link, sizeof(link) - 1) < 0) ? errno == EINVAL
							 : !ckpt_name_read(link).kind)
		message_error(
			"warning: %s was not made by ckpt-rotate and was left unchanged", path);
	free(path);
}

/* The checkpoint is complete and durable: what fails from now on is only reported. */
static void finish_commit(bool published)
{
	struct prune_report report = {.list = {.descriptor = -1}};
	struct error err;
	printf("complete\n");
	check_link(target.directory);
	if (saved_note(target.step, target.directory, &err) != STATUS_OK)
		message_info("the run's store does not know it: %s", err.text);
	(void)fflush(stdout);
	request.now = clock_utc();
	/* Of several tasks, the one that has published the checkpoint prunes. */
	if (request.policy.last && (published || !(target.sharded || target.chief_only)) &&
		checkpoint_prune(target.directory, layout_ours(), &request, &report, &err) !=
			STATUS_OK)
		message_error("warning: not all older checkpoints were removed: %s", err.text);
	prune_report_release(&report);
}

static int run_commit(const struct args_rest *rest)
{
	struct error err;
	struct checkpoint_commit answer = {0};
	struct metrics read = {0};
	int64_t deadline = clock_after(timeout);
	enum status status = read_target(rest, &err);
	for (size_t i = 0; i < metrics.count && status == STATUS_OK; i++)
		status = metrics_read(metrics.items[i], &read, &err);
	if (status == STATUS_OK && when)
		status = parse_instant(when, &target.utc, "--time", &err);
	target.metrics = &read;
	if (status == STATUS_OK)
		status = checkpoint_commit(&target, &answer, &err);
	if (status == STATUS_OK && !answer.complete && timeout_given)
		status = checkpoint_await(&target, deadline, &answer, &err);
	if (status == STATUS_OK && answer.complete) {
		finish_commit(answer.published);
	} else if (status == STATUS_OK) {
		printf("waiting for %" PRIu64 " of %" PRIu64 "\n", answer.missing, target.tasks);
		message_detail("task %s: not committed yet", text_string(&answer.absent));
	}
	text_release(&answer.absent);
	return code_of(status, &err);
}

/* What the run of this process has saved, by its store. */
static const char *run;
static struct saved saved;

/* Find the newest checkpoint of one DIR. */
static enum status find_latest(const struct args_rest *rest, const char *directory,
	struct checkpoint *found, struct error *err)
{
	struct layout layout;
	struct text skipped = {0};
	bool doubted = false;
	struct checkpoint_search search = {.directory = directory,
		.layout = &layout,
		.places = rest->words,
		.place_count = rest->count,
		.contents = contents,
		.doubted = &doubted};
	enum status status = layout_choose(directory, &words, &layout, err);
	if (status == STATUS_OK)
		status = checkpoint_latest(&search, found, &skipped, err);
	/* The store may say that what looks doubtful was saved complete. All tasks must find the
	 * same, so none goes on without its answer. */
	if (doubted && !status_is_error(status)) {
		enum status asked = saved_ask(&run, &saved, err);
		if (asked != STATUS_OK) {
			status = asked;
		} else if (saved.kind == SAVED_STEP) {
			search.saved = &saved.step;
			text_release(&skipped);
			status = checkpoint_latest(&search, found, &skipped, err);
		}
	}
	message_warnings(skipped.data);
	text_release(&skipped);
	return status;
}

/* Whether this is a task of a job, but not task 0, which alone prints what is not an error. */
static bool is_later_task(void)
{
	struct identity identity;
	struct error unused;
	uint64_t number;
	if (group_own_task(&number, &unused) == STATUS_OK)
		return number > 0;
	return group_identify(IDENTITY_RUN, 0, &identity, &unused) == STATUS_OK &&
	       identity.is_task && identity.task > 0;
}

static void print_latest(const char *where, const struct checkpoint *best)
{
	struct text line = {0};
	if (best->state == CHECKPOINT_DOUBTFUL)
		message_error("%s/%s is offered because no checkpoint is known to be complete: %s; "
			      "\"ckpt-rotate mark %s %" PRIu64 " good\" says that it is",
			where, best->name, best->why, where, best->step);
	if (rows_json)
		rows_json_add(&line, where, best, NULL, NULL);
	else if (only_step)
		text_addf(&line, "%" PRIu64, best->step);
	else
		text_addf(&line, "%s/%s", where, best->name);
	printf("%s\n", text_string(&line));
	text_release(&line);
}

/* There is none. With --or, of a job only task 0 says so, others with -v. */
static int print_none(const char *none)
{
	if (!otherwise) {
		message_info("%s", none);
		return STATUS_NO;
	}
	(is_later_task() ? message_detail : message_info)(
		"%s; the answer is \"%s\" (--or)", none, otherwise);
	printf("%s\n", otherwise);
	return STATUS_OK;
}

static int run_latest(const struct args_rest *rest)
{
	struct error err;
	struct text none = {0}, places = {0};
	struct checkpoint found, best = {0};
	const char *where = NULL;
	enum status status = STATUS_OK;
	for (size_t i = 0; i < rest->count && !status_is_error(status); i++) {
		text_addf(&places, "%s%s", i ? ", " : "", directory_at(rest, i));
		status = find_latest(rest, rest->words[i], &found, &err);
		if (status == STATUS_NO)
			text_addf(&none, "%s%s", none.length ? "; " : "", err.text);
		/* A complete one is better than a doubtful one; then the higher step is. */
		if (status == STATUS_OK &&
			(!where ||
				(found.state == best.state ? found.step > best.step
							   : found.state == CHECKPOINT_COMPLETE))) {
			best = found;
			where = rest->words[i];
		}
	}
	/* Inside a run: whether the answer, found or none, fits what it has saved. */
	if (!status_is_error(status) && !(where && is_later_task())) {
		const struct saved_search search = {
			where ? STATUS_OK : STATUS_NO, best.step, text_string(&places), best.name};
		status = saved_ask(&run, &saved, &err);
		if (status == STATUS_OK || where)
			status = saved_judge(&saved, run, &search, &err);
	}
	int code = STATUS_OK;
	if (status_is_error(status))
		code = message_fail(&err);
	else if (where)
		print_latest(where, &best);
	else
		code = print_none(text_string(&none));
	text_release(&none);
	text_release(&places);
	return code;
}

/* List the checkpoints of DIR, and say what a user should know of them. */
static enum status read_directory(
	const char *directory, struct layout *layout, struct list *list, struct error *err)
{
	struct text notes = {0};
	const struct list_request about = {.directory = directory, .layout = layout};
	enum status status = layout_choose(directory, &words, layout, err);
	if (status == STATUS_OK)
		status = list_read(&about, list, err);
	if (status == STATUS_OK)
		list_note(list, &notes);
	message_warnings(notes.data);
	text_release(&notes);
	return status;
}

static int list_directory(const struct args_rest *rest, size_t index)
{
	struct error err;
	struct layout layout;
	struct list list = {.descriptor = -1};
	const char *directory = directory_at(rest, index);
	enum status status = read_directory(directory, &layout, &list, &err);
	if (status == STATUS_OK && list.count == 0) {
		status = list_confirm_none(&list, &err);
		if (status == STATUS_NO) {
			message_info("%s", err.text);
			status = ckpt_directory_confirm(directory, list.descriptor, &err);
		}
	}
	if (status == STATUS_OK)
		rows_begin(rest, index, list.count, "STATE");
	for (size_t i = 0; i < list.count && status == STATUS_OK; i++)
		rows_add(directory, !layout_is_native(&layout), clock_utc(),
			&list.items[i].checkpoint, NULL, NULL);
	list_release(&list);
	return code_of(status, &err);
}

/*
 * Do it for each DIR, whether others fail or not. Returns the worst code, which is the largest:
 * "could not ask" (75) outweighs "damaged" (65).
 */
static int for_each(const struct args_rest *rest, int (*one)(const struct args_rest *, size_t))
{
	int code = STATUS_OK;
	for (size_t i = 0; i < rest->count; i++) {
		int answer = one(rest, i);
		code = answer > code ? answer : code;
	}
	rows_end(code);
	return code;
}

static int run_list(const struct args_rest *rest)
{
	return for_each(rest, list_directory);
}

/* Print the state of one checkpoint. *code: the worst one. False: it is gone by now. */
static bool verify_one(const char *directory, bool native, const struct checkpoint *item, int *code)
{
	struct error err;
	struct checkpoint found = *item;
	struct text line = {0};
	enum status status = STATUS_OK;
	progress_begin(item->bytes);
	if (native)
		status = checkpoint_inspect(directory, item->step, !quick, &found, &err);
	progress_end();
	if (status == STATUS_NO) {
		message_detail("%s", err.text);
		return false;
	}
	bool bad = found.state == CHECKPOINT_BAD; /* it may still be whole */
	if (status == STATUS_OK && !bad && found.state != CHECKPOINT_COMPLETE)
		status = error_set(&err, checkpoint_status(&found), "%s/%s is %s: %s", directory,
			found.name, checkpoint_state_name(found.state), found.why);
	if (status == STATUS_DAMAGED)
		text_addf(&line, "damaged: %s", found.why);
	else if (status == STATUS_OK)
		text_addf(&line, "%s: %" PRIu64 " files, ",
			!native ? "complete"
			: quick ? "all there"
				: "verified",
			found.files);
	if (status == STATUS_OK) {
		text_add_size(&line, found.bytes);
		text_addf(&line, "%s%s%s", bad ? "; marked as bad: " : "", found.why,
			native ? "" : " (no checksums: names, sizes and structure)");
	}
	if (line.length && !message_is_quiet())
		printf("%s %s\n", found.name, text_string(&line));
	text_release(&line);
	int answer = code_of(status, &err);
	*code = answer > *code ? answer : *code;
	return true;
}

static const uint64_t *only; /* the step to verify; NULL: the newest, or all */

static int verify_directory(const struct args_rest *rest, size_t index)
{
	const char *directory = directory_at(rest, index);
	struct error err;
	struct layout layout;
	struct list list = {.descriptor = -1};
	bool any = false;
	enum status status = read_directory(directory, &layout, &list, &err);
	int code = code_of(status, &err);
	for (size_t i = list.count; i-- > 0 && status == STATUS_OK && (only || every || !any);) {
		const struct checkpoint *item = &list.items[i].checkpoint;
		if (only ? item->step == *only && !item->unfinished
			 : item->state != CHECKPOINT_INCOMPLETE &&
					item->state != CHECKPOINT_UNKNOWN_FORM)
			any |= verify_one(directory, layout_is_native(&layout), item, &code);
	}
	list_release(&list);
	if (any || status != STATUS_OK)
		return code;
	(every ? message_info : message_error)(
		"there is no %scheckpoint in %s", only ? "such " : "", directory);
	return every ? STATUS_OK : STATUS_NO;
}

/* Arguments: several DIRs, or one DIR and a STEP. A directory "500" is given as ./500. */
static int run_verify(const struct args_rest *rest)
{
	static uint64_t step;
	struct error err;
	struct args_rest directories = *rest;
	enum status status = STATUS_OK;
	if (rest->count == 2 && !rest->words[1][strspn(rest->words[1], "0123456789")]) {
		status = every ? error_set(&err, STATUS_USAGE, "give either STEP or --all")
			       : read_step(rest->words[1], &step, &err);
		directories.count = 1;
		only = &step;
	}
	checkpoint_on_progress(progress_add);
	return status == STATUS_OK ? for_each(&directories, verify_directory) : message_fail(&err);
}

static int set_mark(const struct args_rest *rest, enum checkpoint_mark mark)
{
	struct error err;
	struct layout layout;
	uint64_t step;
	const char *directory = directory_at(rest, 0);
	enum status status = read_step(rest->words[1], &step, &err);
	if (status == STATUS_OK)
		status = layout_choose(directory, &words, &layout, &err);
	if (status == STATUS_OK)
		status = checkpoint_mark(directory, &layout, step, mark, reason, &err);
	return code_of(status, &err);
}

static int run_mark(const struct args_rest *rest)
{
	bool bad = strcmp(rest->words[2], "bad") == 0;
	if (bad || (strcmp(rest->words[2], "good") == 0 && !reason))
		return set_mark(rest, bad ? CKPT_MARK_BAD : CKPT_MARK_GOOD);
	message_error(
		reason ? "--reason is only for bad" : "%s is neither bad nor good", rest->words[2]);
	return STATUS_USAGE;
}

static int run_pin(const struct args_rest *rest)
{
	return set_mark(rest, CKPT_MARK_PINNED);
}

static int run_unpin(const struct args_rest *rest)
{
	return set_mark(rest, CKPT_MARK_UNPINNED);
}

/* Turn the options of prune into a request. */
static enum status read_prune_request(struct error *err)
{
	static uint64_t steps[4096];
	struct keep_policy *policy = &request.policy;
	enum status status = STATUS_OK;
	request.now = clock_utc();
	policy->steps = steps;
	policy->highest = mode && strcmp(mode, "max") == 0;
	const char *wrong =
		(every_given && !policy->every) || (within_given && !policy->within)
			? "--keep-every and --keep-within need a duration greater than 0"
		: mode && !policy->highest && strcmp(mode, "min") != 0
			? "--mode is neither min nor max"
		: !policy->best != !mode
			? "--keep-best needs --mode min or max (which values are better?), and conversely"
			: NULL;
	if (wrong)
		return error_set(err, STATUS_USAGE, "%s", wrong);
	for (size_t i = 0; i < keep_steps.count && status == STATUS_OK; i++)
		status = keep_read_steps(keep_steps.items[i], steps,
			sizeof(steps) / sizeof(steps[0]), &policy->step_count, err);
	if (status == STATUS_OK && max_bytes)
		status = parse_bytes(max_bytes, &policy->max_bytes, "--max-bytes", err);
	if (status == STATUS_OK && now_is)
		status = parse_instant(now_is, &request.now, "--now", err);
	return status == STATUS_OK ? keep_check(policy, err) : status;
}

static int prune_directory(const struct args_rest *rest, size_t index)
{
	struct error err;
	struct prune_report report = {.list = {.descriptor = -1}};
	struct layout layout;
	const char *directory = directory_at(rest, index);
	enum status status = layout_choose(directory, &words, &layout, &err);
	if (status == STATUS_OK)
		status = checkpoint_prune(directory, &layout, &request, &report, &err);
	bool printed = rows_json || !message_is_quiet();
	if (printed)
		rows_begin(rest, index, report.count, "WHAT");
	for (size_t i = 0; i < report.count && printed; i++)
		rows_add(directory, !layout_is_native(&layout), request.now,
			&report.list.items[i].checkpoint, &report.decisions[i],
			prune_action(&report, i, request.dry_run));
	if (report.absent)
		message_info("there is no directory %s, so nothing to prune", directory);
	if (report.leftovers)
		message_info("%s: %zu entries that a killed prune had renamed away %s", directory,
			report.leftovers,
			request.dry_run ? "will get their names back"
					: "got their names back, or are gone");
	if (request.dry_run && report.count)
		message_info("a dry run: nothing was removed");
	prune_report_release(&report);
	return code_of(status, &err);
}

static int run_prune(const struct args_rest *rest)
{
	struct error err;
	return read_prune_request(&err) == STATUS_OK ? for_each(rest, prune_directory)
						     : message_fail(&err);
}

static const struct args_command commands[] = {
	{"begin",
		"DIR STEP [--attempt K] [--life WORD] [--sharded | --chief-only] [--task I --tasks N]",
		"make the directory to write a checkpoint into", write_options, NULL, 2, 2,
		.run = run_begin},
	{"commit",
		"DIR STEP [--attempt K] [--life WORD] [--sharded | --chief-only] [--task I --tasks N]\n"
		"       [--timeout D] [--metric NAME=NUMBER]... [--time @SECONDS] [--keep-last N]",
		"sync the checkpoint, take checksums, publish it", commit_options, write_options, 2,
		2, .run = run_commit},
	{"latest", "DIR... [--step | --json] [--or WORD] [--verify]",
		"print the newest complete checkpoint", latest_options, layout_options, 1,
		DIRECTORIES, .run = run_latest},
	{"list", "DIR... [--json]", "show all checkpoints", list_options, layout_options, 1,
		DIRECTORIES, .run = run_list},
	{"verify", "DIR... [STEP | --all] [--quick]",
		"compare the checksums of one checkpoint or all", verify_options, layout_options, 1,
		DIRECTORIES, .run = run_verify},
	{"mark", "DIR STEP bad|good [--reason TEXT]", "mark as bad: it is never offered again",
		mark_options, layout_options, 3, 3, .run = run_mark},
	{"pin", "DIR STEP", "protect from prune", layout_options, NULL, 2, 2, .run = run_pin},
	{"unpin", "DIR STEP", "undo pin", layout_options, NULL, 2, 2, .run = run_unpin},
	{"copy", "DIR DEST [STEP... | --last N | --all] [--move]",
		"copy complete checkpoints to another directory, verified", copy_options, NULL, 2,
		DIRECTORIES, .run = run_copy},
	{"prune", "DIR... --keep-... [--max-bytes SIZE] [--dry-run] [--json]",
		"remove checkpoints that need not be kept", prune_options, layout_options, 1,
		DIRECTORIES, .run = run_prune},
	{0},
};

static const struct args_program program = {
	"ckpt-rotate",
	"commit, find and prune checkpoints; a half-written one is never offered",
	commands,
	"save:    d=$(ckpt-rotate begin ck $step) && cp model \"$d\" && ckpt-rotate commit ck $step\n"
	"resume:  start=$(ckpt-rotate latest --step --or 0 ck) || exit\n"
	"cron:    ckpt-rotate prune -q --keep-last 3 --keep-every 6h ck\n",
};

int main(int argc, char **argv)
{
	return args_main(&program, argc, argv);
}
