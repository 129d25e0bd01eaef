/* SPDX-License-Identifier: MIT */
/* ckpt-rotate COMMAND: options, answers and exit codes. See ckpt/ckpt.h for checkpoints, and
 * ckpt/keep.h for which are kept. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
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

static const struct args_option write_options[] = {
	{"attempt", "K", "the writer's attempt number; 0: attempts are not counted", ARGS_UNSIGNED,
		.target = &target.attempt, .environment = "PREEMPT_ATTEMPT", .max = CKPT_NUMBER_MAX,
		.given = &attempt_given},
	{"sharded", NULL, "each task has a shard of its own", ARGS_FLAG, .target = &target.sharded},
	{"chief-only", NULL, "all tasks write the same; only task 0's copy is kept", ARGS_FLAG,
		.target = &target.chief_only},
	{"task", "I", "this task, from 0 (default: $PREEMPT_TASK, or the rank)", ARGS_UNSIGNED,
		.target = &target.task, .max = CKPT_NUMBER_MAX, .given = &task_given},
	{"life", "WORD", "which start of the job writes: one word for all its tasks", ARGS_TEXT,
		.target = &life, .environment = "PREEMPT_LIFE"},
	{"tasks", "N", "how many tasks there are", ARGS_UNSIGNED, .target = &target.tasks,
		.environment = "PREEMPT_TASKS", .min = 1, .max = 1000000, .given = &tasks_given},
	{0},
};
static const struct args_option commit_options[] = {
	{"metric", "VALUE", "loss=0.25: what was measured; may be repeated", ARGS_LIST,
		.target = &metrics},
	{"time", "INSTANT", "@SECONDS after 1970: when it was made, if not now", ARGS_TEXT,
		.target = &when},
	{"timeout", "D", "time to wait for the other tasks", ARGS_DURATION, .target = &timeout,
		.given = &timeout_given},
	{"keep-last", "N", "then prune DIR: keep the N newest complete ones", ARGS_UNSIGNED,
		.target = &request.policy.last, .min = 1, .max = 1000000000},
	{0},
};
/* Of commands on DIRs of any layout. */
static const struct args_option layout_options[] = {
	{"layout", "NAME",
		"auto (default), native, hf, accelerate, lightning, nemo, verl, deepspeed, megatron, "
		"tensorflow, keras, orbax, composer or dcp",
		ARGS_TEXT, .target = &words.layout},
	{"pattern", "PATTERN", "names such as 'model-{step}.pt' are checkpoints", ARGS_TEXT,
		.target = &words.pattern},
	{"done", "FILE", "with --pattern: complete only with this file", ARGS_TEXT,
		.target = &words.done},
	{"undone", "FILE", "with --pattern: incomplete while this file exists", ARGS_TEXT,
		.target = &words.undone},
	{"tracker", "FILE", "with --pattern: the file in DIR that names the newest one", ARGS_TEXT,
		.target = &words.tracker},
	{0},
};
static const struct args_option latest_options[] = {
	{"step", NULL, "print the step, not the path", ARGS_FLAG, .target = &only_step},
	{"or", "WORD", "if there is none: print WORD, exit 0", ARGS_ANY_TEXT, .target = &otherwise},
	{"verify", NULL, "compare the checksums, too", ARGS_FLAG, .target = &contents},
	{"json", NULL, "print JSON, not text", ARGS_FLAG, .target = &rows_json},
	{0},
};
static const struct args_option list_options[] = {
	{"json", NULL, "print JSON, not text", ARGS_FLAG, .target = &rows_json},
	{0},
};
static const struct args_option verify_options[] = {
	{"all", NULL, "all checkpoints, not only the newest", ARGS_FLAG, .target = &every},
	{"quick", NULL, "check only that all files exist, with their sizes", ARGS_FLAG,
		.target = &quick},
	{0},
};
static const struct args_option mark_options[] = {
	{"reason", "TEXT", "why it is bad, for messages", ARGS_TEXT, .target = &reason},
	{0},
};
static const struct args_option prune_options[] = {
	{"keep-last", "N", "keep the N newest complete ones", ARGS_UNSIGNED,
		.target = &request.policy.last, .min = 1, .max = 1000000000},
	{"keep-every-steps", "K", "keep each whose step is divisible by K", ARGS_UNSIGNED,
		.target = &request.policy.every_steps, .min = 1, .max = CKPT_NUMBER_MAX},
	{"keep-every", "D", "keep one per interval D, starting with the oldest", ARGS_DURATION,
		.target = &request.policy.every, .given = &every_given},
	{"keep-within", "D", "keep each that is not older than D", ARGS_DURATION,
		.target = &request.policy.within, .given = &within_given},
	{"keep-best", "N", "keep the N best by --metric", ARGS_UNSIGNED,
		.target = &request.policy.best, .min = 1, .max = 1000000000},
	{"metric", "NAME", "the metric to compare, from commit --metric", ARGS_TEXT,
		.target = &request.policy.metric},
	{"mode", "WHICH", "min or max: which values are better", ARGS_TEXT, .target = &mode},
	{"keep-step", "STEPS", "keep these: 100,200; may be repeated", ARGS_LIST,
		.target = &keep_steps},
	{"max-bytes", "SIZE", "remove the oldest while the sum is larger (500G)", ARGS_TEXT,
		.target = &max_bytes},
	{"dry-run", NULL, "only print what would be removed", ARGS_FLAG, .target = &request.dry_run,
		.letter = 'n'},
	{"now", "INSTANT", "@SECONDS after 1970: decide as if it were this time", ARGS_TEXT,
		.target = &now_is},
	{"timeout", "D", "time to wait for another prune (1m)", ARGS_DURATION,
		.target = &request.wait},
	{"settled", "D", "framework layouts: no longer written if unchanged for D (15m)",
		ARGS_DURATION, .target = &request.settled},
	{"json", NULL, "print JSON, not text", ARGS_FLAG, .target = &rows_json},
	{0},
};

static enum status read_target(const struct args_rest *rest, struct error *err)
{
	target.directory = directory_at(rest, 0);
	enum status status =
		parse_unsigned(rest->words[1], 0, CKPT_NUMBER_MAX, &target.step, "STEP", err);
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

static int run_begin(const struct args_rest *rest)
{
	struct error err;
	struct text path = {0}, replaced = {0};
	enum status status = read_target(rest, &err);
	if (status == STATUS_OK)
		status = checkpoint_begin(&target, &path, &replaced, &err);
	if (status == STATUS_OK)
		printf("%s\n", text_string(&path));
	if (status == STATUS_OK && replaced.length)
		message_detail("what %s wrote was removed", text_string(&replaced));
	text_release(&path);
	text_release(&replaced);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

/* The checkpoint is complete and durable: what fails from now on is only reported. */
static void finish_commit(bool published)
{
	struct prune_report report = {0};
	struct error err;
	printf("complete\n");
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
	message_warnings(answer.warning.data);
	if (status == STATUS_OK && answer.complete) {
		finish_commit(answer.published);
	} else if (status == STATUS_OK) {
		printf("waiting for %" PRIu64 " of %" PRIu64 "\n", answer.missing, target.tasks);
		message_detail("task %s: not committed yet", text_string(&answer.absent));
	}
	text_release(&answer.absent);
	text_release(&answer.warning);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
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

/* A complete checkpoint is better than a doubtful one; then the higher step is better. */
static bool is_better(const struct checkpoint *a, const struct checkpoint *b)
{
	return a->state == b->state ? a->step > b->step : a->state == CHECKPOINT_COMPLETE;
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
	for (size_t i = 0; i < rest->count; i++)
		text_addf(&places, "%s%s", i ? ", " : "", directory_at(rest, i));
	for (size_t i = 0; i < rest->count && !status_is_error(status); i++) {
		status = find_latest(rest, rest->words[i], &found, &err);
		if (status == STATUS_NO)
			text_addf(&none, "%s%s", none.length ? "; " : "", err.text);
		if (status == STATUS_OK && (!where || is_better(&found, &best))) {
			best = found;
			where = rest->words[i];
		}
	}
	if (where && !status_is_error(status) && is_later_task()) {
		status = STATUS_OK;
	} else if (!status_is_error(status)) {
		/* Inside a run: whether the answer, found or none, fits what it has saved. */
		const struct saved_search search = {
			where ? STATUS_OK : STATUS_NO, best.step, text_string(&places), best.name};
		status = saved_ask(&run, &saved, &err);
		if (status == STATUS_OK || where)
			status = saved_judge(&saved, run, &search, &err);
	}
	int code = STATUS_OK;
	if (status == STATUS_OK)
		print_latest(where, &best);
	else
		code = status == STATUS_NO ? print_none(text_string(&none)) : message_fail(&err);
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
		rows_add(directory, &layout, clock_utc(), &list.items[i].checkpoint, NULL, NULL);
	list_release(&list);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

/* Do it for each DIR, whether others fail or not. Returns the worst code. */
static int for_each(const struct args_rest *rest, int (*one)(const struct args_rest *, size_t))
{
	int code = STATUS_OK;
	for (size_t i = 0; i < rest->count; i++)
		code = worse(code, one(rest, i));
	rows_end(code);
	return code;
}

static int run_list(const struct args_rest *rest)
{
	return for_each(rest, list_directory);
}

/* Print the state of one checkpoint. False: it is gone by now. */
static bool verify_one(const char *directory, bool native, const struct checkpoint *item, int *code)
{
	struct error err;
	struct checkpoint found = *item;
	struct text size = {0};
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
	text_add_size(&size, found.bytes);
	if (status == STATUS_OK && !bad && found.state != CHECKPOINT_COMPLETE)
		status = error_set(&err, checkpoint_status(&found), "%s/%s is %s: %s", directory,
			found.name, checkpoint_state_name(found.state), found.why);
	if (status == STATUS_DAMAGED && !message_is_quiet())
		printf("%s damaged: %s\n", found.name, found.why);
	if (status == STATUS_OK && !message_is_quiet())
		printf("%s %s: %" PRIu64 " files, %s%s%s%s\n", found.name,
			!native ? "complete"
			: quick ? "all there"
				: "verified",
			found.files, text_string(&size), bad ? "; marked as bad: " : "", found.why,
			native ? "" : " (no checksums: names, sizes and structure)");
	*code = worse(*code, status == STATUS_OK ? STATUS_OK : message_fail(&err));
	text_release(&size);
	return true;
}

static const uint64_t *only; /* the step to verify; NULL: the newest, or all */

static int verify_directory(const struct args_rest *rest, size_t index)
{
	const char *directory = directory_at(rest, index);
	struct error err;
	struct layout layout;
	struct list list = {.descriptor = -1};
	size_t count = 0;
	int code = STATUS_OK;
	enum status status = read_directory(directory, &layout, &list, &err);
	if (status != STATUS_OK)
		code = message_fail(&err);
	for (size_t i = list.count; i-- > 0 && (only || every || !count);) {
		const struct checkpoint *item = &list.items[i].checkpoint;
		if (only ? item->step == *only && !item->unfinished
			 : item->state != CHECKPOINT_INCOMPLETE &&
					item->state != CHECKPOINT_UNKNOWN_FORM)
			count += verify_one(directory, layout_is_native(&layout), item, &code);
	}
	list_release(&list);
	if (count || status != STATUS_OK)
		return code;
	(every ? message_info : message_error)(
		"there is no %scheckpoint in %s", only ? "such " : "", directory);
	return every ? STATUS_OK : STATUS_NO;
}

static int run_verify(const struct args_rest *rest)
{
	static uint64_t step;
	struct error err;
	struct args_rest directories = *rest;
	enum status status = STATUS_OK;
	/* Arguments: several DIRs, or one DIR and a STEP. A directory "500" is given as ./500. */
	if (rest->count == 2 && !rest->words[1][strspn(rest->words[1], "0123456789")]) {
		status = every ? error_set(&err, STATUS_USAGE, "give either STEP or --all")
			       : parse_unsigned(
					 rest->words[1], 0, CKPT_NUMBER_MAX, &step, "STEP", &err);
		directories.count = 1;
		only = &step;
	}
	if (status != STATUS_OK)
		return message_fail(&err);
	checkpoint_on_progress(progress_add);
	return for_each(&directories, verify_directory);
}

static int set_mark(const struct args_rest *rest, enum checkpoint_mark mark)
{
	struct error err;
	struct layout layout;
	uint64_t step;
	const char *directory = directory_at(rest, 0);
	enum status status =
		parse_unsigned(rest->words[1], 0, CKPT_NUMBER_MAX, &step, "STEP", &err);
	if (status == STATUS_OK)
		status = layout_choose(directory, &words, &layout, &err);
	if (status == STATUS_OK)
		status = checkpoint_mark(directory, &layout, step, mark, reason, &err);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
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
	struct prune_report report = {0};
	struct layout layout;
	const char *directory = directory_at(rest, index);
	enum status status = layout_choose(directory, &words, &layout, &err);
	if (status == STATUS_OK)
		status = checkpoint_prune(directory, &layout, &request, &report, &err);
	bool printed = rows_json || !message_is_quiet();
	if (printed)
		rows_begin(rest, index, report.count, "WHAT");
	for (size_t i = 0; i < report.count && printed; i++) {
		const struct prune_item *item = &report.items[i];
		rows_add(directory, &layout, request.now, &item->checkpoint, &item->decision,
			prune_action(item, request.dry_run));
	}
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
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
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
