/* SPDX-License-Identifier: MIT */
/* ckpt-rotate COMMAND: options, answers and exit codes. See ckpt/ckpt.h for checkpoints, and
 * ckpt/keep.h for which are kept. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
#include "ckpt-rotate/rows.h"
#include "ckpt-rotate/tiers.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/list.h"
#include "ckpt/prune.h"
#include "ckpt/show.h"
#include "run/history.h"
#include "run/options.h"

static bool attempt_given, task_given, tasks_given, timeout_given, every_given, within_given;
static bool only_step, json, contents, quick, every;
static const char *otherwise, *when, *now_is, *reason, *mode, *max_bytes;
static struct args_list metrics, keep_steps;
static struct checkpoint_target target = {.tasks = 1};
static struct prune_request request = {.wait = 60000, .settled = PRUNE_SETTLED};
static int64_t timeout;
static struct layout_words words;
static const char *life;

#define DIRECTORIES 1024 /* the most that a command takes */

/* clang-format off */
#define WRITE_OPTIONS \
	{"attempt", "K", "the writer's attempt number; 0: attempts are not counted", ARGS_UNSIGNED, \
		.target = &target.attempt, .environment = "PREEMPT_ATTEMPT", .max = CKPT_NUMBER_MAX, \
		.given = &attempt_given}, \
	{"sharded", NULL, "each task has a shard of its own", ARGS_FLAG, .target = &target.sharded}, \
	{"chief-only", NULL, "all tasks write the same; only task 0's copy is kept", ARGS_FLAG, \
		.target = &target.chief_only}, \
	{"task", "I", "this task, from 0 (default: $PREEMPT_TASK, or the rank)", ARGS_UNSIGNED, \
		.target = &target.task, .max = CKPT_NUMBER_MAX, .given = &task_given}, \
	{"life", "WORD", "which start of the job writes: one word for all its tasks", ARGS_TEXT, \
		.target = &life, .environment = "PREEMPT_LIFE"}, \
	{"tasks", "N", "how many tasks there are", ARGS_UNSIGNED, .target = &target.tasks, \
		.environment = "PREEMPT_TASKS", .min = 1, .max = 1000000, .given = &tasks_given}
/* clang-format on */

static const struct args_option begin_options[] = {
	WRITE_OPTIONS,
	{0},
};
static const struct args_option commit_options[] = {
	WRITE_OPTIONS,
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
static const struct args_option latest_options[] = {
	{"step", NULL, "print the step, not the path", ARGS_FLAG, .target = &only_step},
	{"or", "WORD", "if there is none: print WORD, exit 0", ARGS_ANY_TEXT, .target = &otherwise},
	{"verify", NULL, "compare the checksums, too", ARGS_FLAG, .target = &contents},
	LAYOUT_OPTIONS(words),
	{0},
};
static const struct args_option list_options[] = {
	LAYOUT_OPTIONS(words),
	{0},
};
static const struct args_option verify_options[] = {
	{"all", NULL, "all checkpoints, not only the newest", ARGS_FLAG, .target = &every},
	{"quick", NULL, "check only that all files exist, with their sizes", ARGS_FLAG,
		.target = &quick},
	LAYOUT_OPTIONS(words),
	{0},
};
static const struct args_option mark_options[] = {
	{"reason", "TEXT", "why it is bad, for messages", ARGS_TEXT, .target = &reason},
	LAYOUT_OPTIONS(words),
	{0},
};
static const struct args_option pin_options[] = {
	LAYOUT_OPTIONS(words),
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
	LAYOUT_OPTIONS(words),
	{0},
};
static const struct args_option json_option[] = {
	{"json", NULL, "print JSON, not text", ARGS_FLAG, .target = &json},
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
	if (!task_given) {
		status = group_own_task(&target.task, err);
		if (status_is_error(status))
			return status;
		task_given = status == STATUS_OK;
	}
	if (!task_given || !tasks_given)
		return error_set(err, STATUS_USAGE,
			"%s needs --task and --tasks (PREEMPT_TASK, PREEMPT_TASKS)",
			target.sharded ? "--sharded" : "--chief-only");
	if (target.task >= target.tasks)
		return error_set(err, STATUS_USAGE,
			"task %" PRIu64 " of %" PRIu64 ": tasks count from 0", target.task,
			target.tasks);
	if (!target.sharded)
		return STATUS_OK;
	/* Without an attempt, shards from before and after a restart could form one checkpoint. */
	if (!attempt_given)
		return error_set(err, STATUS_USAGE,
			"--sharded needs --attempt (PREEMPT_ATTEMPT), another one for each start");
	if (!*target.life)
		return error_set(err, STATUS_USAGE,
			"--sharded needs a word that names this start of the job, because shards of "
			"two starts must not be mixed: use preempt-run, or `export "
			"PREEMPT_LIFE=$(uuidgen)` before each start of all tasks");
	return STATUS_OK;
}

static int run_begin(const struct args_rest *rest)
{
	struct error err = {0};
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

static enum status read_metrics(struct metrics *read, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < metrics.count && status == STATUS_OK; i++)
		status = metrics_read(metrics.items[i], read, err);
	return status;
}

/* After a commit: the task that has published it removes what --keep-last does not keep. */
static void prune_older(const struct checkpoint_commit *answer)
{
	struct prune_report report = {0};
	struct error err;
	request.now = clock_utc();
	if (!request.policy.last || !answer->published)
		return;
	if (checkpoint_prune(target.directory, layout_ours(), &request, &report, &err) != STATUS_OK)
		message_error("warning: not all older checkpoints were removed: %s", err.text);
	prune_report_release(&report);
}

static int run_commit(const struct args_rest *rest)
{
	struct error err = {0};
	struct checkpoint_commit answer = {0};
	struct metrics read = {0};
	int64_t deadline = clock_after(timeout);
	enum status status = read_target(rest, &err);
	if (status == STATUS_OK)
		status = read_metrics(&read, &err);
	if (status == STATUS_OK && when)
		status = parse_instant(when, &target.utc, "--time", &err);
	target.metrics = &read;
	if (status == STATUS_OK)
		status = checkpoint_commit(&target, &answer, &err);
	if (status == STATUS_OK && !answer.complete && timeout_given)
		status = checkpoint_await(&target, deadline, &answer, &err);
	message_warnings(answer.warning.data);
	if (status == STATUS_OK && answer.complete) {
		printf("complete\n");
		/* It is durable: a store that cannot be told is only reported. */
		if (saved_note(target.step, target.directory, &err) != STATUS_OK)
			message_info("the run's store does not know it: %s", err.text);
		(void)fflush(stdout);
		prune_older(&answer);
	} else if (status == STATUS_OK) {
		printf("waiting for %" PRIu64 " of %" PRIu64 "\n", answer.missing, target.tasks);
		message_detail("task %s: not committed yet", text_string(&answer.absent));
	}
	text_release(&answer.absent);
	text_release(&answer.warning);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}

/* What the run of this process has saved, by its store, which is asked once. */
static struct {
	bool asked;
	enum status status;
	struct error err; /* if not STATUS_OK */
	const char *run;
	struct saved saved;
} history;

static enum status ask_history(struct error *err)
{
	if (!history.asked)
		history.status = saved_ask(&history.run, &history.saved, &history.err);
	history.asked = true;
	return history.status == STATUS_OK ? STATUS_OK
					   : error_set(err, history.status, "%s", history.err.text);
}

/* Find the newest checkpoint of one DIR. */
static enum status find_latest(
	const char *directory, struct checkpoint *found, bool *native, struct error *err)
{
	struct layout layout;
	struct text skipped = {0};
	bool doubted = false;
	struct checkpoint_search search = {.directory = directory,
		.layout = &layout,
		.contents = contents,
		.doubted = &doubted};
	enum status status = layout_choose(directory, &words, &layout, err);
	*native = status == STATUS_OK && layout_is_native(&layout);
	if (status == STATUS_OK)
		status = checkpoint_latest(&search, found, &skipped, err);
	/* The store may say that what looks doubtful was saved complete. All tasks must find the
	 * same, so none goes on without its answer. */
	if (doubted && (status == STATUS_OK || status == STATUS_NO)) {
		struct error why;
		if (ask_history(&why) != STATUS_OK) {
			status = error_set(err, why.status, "%s", why.text);
		} else if (history.saved.kind == SAVED_STEP) {
			search.saved = &history.saved.step;
			text_release(&skipped);
			status = checkpoint_latest(&search, found, &skipped, err);
		}
	}
	if (status == STATUS_OK && contents && !*native)
		message_info("%s: there are no checksums in the layout %s; names, sizes and "
			     "structure were checked",
			directory, layout.name);
	warn(&skipped);
	return status;
}

/* The same, without those marked as bad in any DIR: a mark on one copy holds for all copies. */
static enum status find_latest_of(const struct args_rest *rest, const char *directory,
	struct checkpoint *found, struct error *err)
{
	bool native;
	enum status status = find_latest(directory, found, &native, err);
	bool bad = native && rest->count > 1; /* others are not copied by us */
	while (status == STATUS_OK && bad) {
		const char *others[DIRECTORIES];
		for (size_t i = 0; i < rest->count; i++)
			others[i] = directory_at(rest, i);
		status = checkpoint_is_bad_in(others, rest->count, found, &bad, err);
		const uint64_t below = found->step;
		const struct checkpoint_search search = {.directory = directory,
			.layout = layout_ours(),
			.below = &below,
			.contents = contents};
		if (status == STATUS_OK && bad)
			status = checkpoint_latest(&search, found, NULL, err);
	}
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

/* Report that there is no checkpoint. With --or, tasks other than task 0 do so only with -v. */
static void say_none(const char *none)
{
	if (!otherwise)
		message_info("%s", none);
	else if (is_later_task())
		message_detail("%s; the answer is \"%s\" (--or)", none, otherwise);
	else
		message_info("%s; the answer is \"%s\" (--or)", none, otherwise);
}

/* Inside a run: whether the answer of "latest" fits what the run has saved. */
static enum status judge_by_history(const struct args_rest *rest, const char *where,
	const struct checkpoint *best, struct error *err)
{
	struct text places = {0};
	if (where && is_later_task())
		return STATUS_OK;
	enum status status = ask_history(err);
	if (status != STATUS_OK && !where)
		return status; /* could not ask: not "none" */
	for (size_t i = 0; i < rest->count; i++)
		text_addf(&places, "%s%s", i ? ", " : "", directory_at(rest, i));
	status = saved_judge(&history.saved, history.run,
		&(struct saved_search){where ? STATUS_OK : STATUS_NO, best->step,
			text_string(&places), best->name},
		err);
	text_release(&places);
	return status;
}

/* Find the best of all DIRs. STATUS_NO: there surely is none; err says so for each DIR. */
static enum status find_best(const struct args_rest *rest, const char **where,
	struct checkpoint *best, struct error *err)
{
	struct text none = {0};
	struct checkpoint found;
	enum status status = STATUS_OK;
	for (size_t i = 0; i < rest->count && status == STATUS_OK; i++) {
		const char *directory = directory_at(rest, i);
		status = find_latest_of(rest, directory, &found, err);
		if (status == STATUS_NO)
			text_addf(&none, "%s%s", none.length ? "; " : "", err->text);
		if (status == STATUS_OK && (!*where || is_better(&found, best))) {
			*best = found;
			*where = directory;
		}
		status = status == STATUS_NO ? STATUS_OK : status;
	}
	if (status == STATUS_OK)
		status = judge_by_history(rest, *where, best, err);
	if (status == STATUS_NO)
		error_set(err, STATUS_NO, "%s", text_string(&none));
	text_release(&none);
	return status;
}

static int run_latest(const struct args_rest *rest)
{
	struct error err = {0};
	struct text line = {0};
	struct checkpoint best = {0};
	const char *where = NULL;
	enum status status = find_best(rest, &where, &best, &err);
	if (status == STATUS_NO) {
		say_none(err.text);
		if (otherwise)
			printf("%s\n", otherwise);
		return otherwise ? STATUS_OK : STATUS_NO;
	}
	if (status != STATUS_OK)
		return message_fail(&err);
	if (best.state == CHECKPOINT_DOUBTFUL)
		message_error("%s/%s is offered because no checkpoint is known to be complete: %s; "
			      "\"ckpt-rotate mark %s %" PRIu64 " good\" says that it is",
			where, best.name, best.why, where, best.step);
	if (json)
		show_json(&line, where, &best, NULL, NULL);
	else if (only_step)
		text_addf(&line, "%" PRIu64, best.step);
	else
		text_addf(&line, "%s/%s", where, best.name);
	text_add(&line, "\n");
	print(&line);
	return STATUS_OK;
}

static void show_listed(struct text *line, size_t index, const char *directory, bool native,
	const struct checkpoint *item)
{
	struct text state = {0}, measured = {0};
	show_state(&state, item);
	show_metrics(&measured, &item->metrics);
	if (json)
		show_element(line, index, directory, item, NULL, NULL);
	else
		show_row(line, native, clock_utc(), item, text_string(&state),
			*item->why ? item->why : text_string(&measured));
	text_release(&state);
	text_release(&measured);
}

/* List one DIR. *shown: the number of rows so far, updated. */
static enum status list_directory(
	const struct args_rest *rest, size_t d, size_t *shown, struct error *err)
{
	struct text line = {0}, notes = {0};
	struct layout layout;
	struct list list = {.descriptor = -1};
	const char *directory = directory_at(rest, d);
	const struct list_request about = {.directory = directory, .layout = &layout};
	enum status status = layout_choose(directory, &words, &layout, err);
	if (status == STATUS_OK)
		status = list_read(&about, &list, err);
	if (status == STATUS_OK) {
		list_note(&list, &notes);
		warn(&notes);
	}
	if (status == STATUS_OK && list.count == 0) {
		status = list_confirm_none(&list, err);
		if (status == STATUS_NO)
			message_info("%s", err->text);
		if (status == STATUS_NO)
			status = ckpt_directory_confirm(directory, list.descriptor, err);
	}
	if (status == STATUS_OK && !json) {
		show_heading(rest, d);
		show_head(&line, list.count, "STATE");
	}
	for (size_t i = 0; i < list.count && status == STATUS_OK; i++) {
		show_listed(&line, (*shown)++, directory, layout_is_native(&layout),
			&list.items[i].checkpoint);
		print(&line);
	}
	list_release(&list);
	return status;
}

static int run_list(const struct args_rest *rest)
{
	struct text line = {0};
	struct error err = {0};
	size_t shown = 0;
	int code = STATUS_OK;
	for (size_t d = 0; d < rest->count; d++)
		if (list_directory(rest, d, &shown, &err) != STATUS_OK)
			code = worse(code, message_fail(&err));
	if (json && (rest->count > 1 || code == STATUS_OK))
		show_end(&line, shown);
	print(&line);
	return code;
}

static void watch_progress(uint64_t total)
{
	if (progress_begin(total) && !quick)
		checkpoint_on_progress(progress_add);
}

/* Print the state of one checkpoint. Returns the exit code. */
/* listed: the item is from a list; if it is gone now, it was removed, which is no fault. */
static int verify_one(const char *directory, const struct layout *layout,
	const struct checkpoint *item, bool listed)
{
	struct error err = {0};
	struct checkpoint found = *item;
	struct text size = {0};
	enum status status = STATUS_OK;
	bool native = layout_is_native(layout);
	if (native)
		status = checkpoint_inspect(directory, item->step, !quick, &found, &err);
	progress_end();
	if (listed && status == STATUS_NO) {
		message_detail("%s", err.text);
		return STATUS_NO;
	}
	if (status != STATUS_OK)
		return message_fail(&err);
	/* A checkpoint that is marked as bad may still be whole. */
	if (found.state == CHECKPOINT_COMPLETE || found.state == CHECKPOINT_BAD) {
		show_size(&size, found.bytes);
		if (!message_is_quiet())
			printf("%s %s: %" PRIu64 " files, %s%s%s%s\n", found.name,
				!native ? "complete"
				: quick ? "all there"
					: "verified",
				found.files, text_string(&size),
				found.state == CHECKPOINT_BAD ? "; marked as bad: " : "", found.why,
				!native ? " (no checksums: names, sizes and structure)" : "");
		text_release(&size);
		return STATUS_OK;
	}
	message_error("%s/%s is %s: %s", directory, found.name, checkpoint_state_name(found.state),
		found.why);
	if (found.state == CHECKPOINT_DAMAGED && !message_is_quiet())
		printf("%s damaged: %s\n", found.name, found.why);
	return checkpoint_status(&found);
}

static int verify_step(const char *directory, const struct layout *layout, uint64_t step)
{
	struct checkpoint found = {.step = step};
	if (checkpoint_inspect(directory, step, false, &found, NULL) == STATUS_OK)
		watch_progress(found.bytes);
	return verify_one(directory, layout, &found, false);
}

static bool can_be_verified(const struct checkpoint *item)
{
	return item->state != CHECKPOINT_INCOMPLETE && item->state != CHECKPOINT_UNKNOWN_FORM;
}

/* Verify the newest checkpoint of one DIR; with --all, all of them; with `one`, those of step. */
static int verify_directory(const char *directory, bool one, uint64_t step)
{
	struct error err = {0};
	struct text notes = {0};
	struct layout layout;
	struct list list = {.descriptor = -1};
	const struct list_request about = {.directory = directory, .layout = &layout};
	uint64_t total = 0;
	int code = STATUS_NO;
	bool any = false;
	enum status status = layout_choose(directory, &words, &layout, &err);
	if (status == STATUS_OK && one && layout_is_native(&layout))
		return verify_step(directory, &layout, step);
	if (status == STATUS_OK)
		status = list_read(&about, &list, &err);
	if (status == STATUS_OK) {
		list_note(&list, &notes);
		warn(&notes);
	} else {
		list_release(&list);
		return message_fail(&err);
	}
	for (size_t i = list.count; i-- > 0 && (every || total == 0);)
		total += can_be_verified(&list.items[i].checkpoint) ? list.items[i].checkpoint.bytes
								    : 0;
	if (layout_is_native(&layout))
		watch_progress(total);
	for (size_t i = list.count; i-- > 0 && (one || every || code == STATUS_NO);) {
		const struct checkpoint *item = &list.items[i].checkpoint;
		if (one ? item->step != step : !can_be_verified(item))
			continue;
		int answer = verify_one(directory, &layout, item, true);
		any |= one || answer != STATUS_NO;
		/* "Could not ask" outweighs "damaged", which outweighs "verified". */
		if (answer != STATUS_NO && (code == STATUS_NO || answer > code))
			code = answer;
	}
	if (!any && one)
		message_error("there is no checkpoint of step %" PRIu64 " in %s", step, directory);
	else if (!any && !every)
		message_error("there is no checkpoint in %s", directory);
	else if (!any)
		message_info("there is no checkpoint in %s, so nothing to verify", directory);
	list_release(&list);
	return any || !every ? code : STATUS_OK;
}

static int run_verify(const struct args_rest *rest)
{
	struct error err = {0};
	uint64_t step = 0;
	int code = STATUS_OK;
	/* Arguments: several DIRs, or one DIR and a STEP. A directory "500" is given as ./500. */
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

static int set_mark(const struct args_rest *rest, enum checkpoint_mark mark)
{
	struct error err = {0};
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
	for (size_t i = 0; i < keep_steps.count && status == STATUS_OK; i++)
		status = keep_read_steps(keep_steps.items[i], steps,
			sizeof(steps) / sizeof(steps[0]), &policy->step_count, err);
	if (status == STATUS_OK && max_bytes)
		status = parse_bytes(max_bytes, &policy->max_bytes, "--max-bytes", err);
	if (status == STATUS_OK && now_is)
		status = parse_instant(now_is, &request.now, "--now", err);
	if (status == STATUS_OK &&
		((every_given && !policy->every) || (within_given && !policy->within)))
		status = error_set(err, STATUS_USAGE, "--keep-%s: duration must be greater than 0",
			within_given && !policy->within ? "within" : "every");
	policy->highest = mode && strcmp(mode, "max") == 0;
	if (status == STATUS_OK && mode && !policy->highest && strcmp(mode, "min") != 0)
		status =
			error_set(err, STATUS_USAGE, "--mode: \"%s\" is neither min nor max", mode);
	if (status == STATUS_OK && policy->best && !mode)
		status = error_set(err, STATUS_USAGE,
			"--keep-best needs --mode min or max: which values are better?");
	if (status == STATUS_OK && mode && !policy->best)
		status = error_set(err, STATUS_USAGE, "--mode has no effect without --keep-best");
	if (status == STATUS_OK)
		status = keep_check(policy, err);
	return status;
}

/* Prune one DIR. *shown: the number of rows so far, updated. */
static int prune_directory(const char *directory, bool wanted, size_t *shown)
{
	struct error err = {0};
	struct prune_report report = {0};
	struct layout layout = *layout_ours();
	enum status status = layout_choose(directory, &words, &layout, &err);
	if (status == STATUS_OK)
		status = checkpoint_prune(directory, &layout, &request, &report, &err);
	if (wanted)
		print_report(directory, layout_is_native(&layout), json, &request, &report, shown);
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
	struct error err = {0};
	struct text line = {0};
	size_t shown = 0;
	int code = STATUS_OK;
	if (read_prune_request(&err) != STATUS_OK)
		return message_fail(&err);
	bool wanted = json || !message_is_quiet();
	for (size_t i = 0; i < rest->count; i++) {
		if (wanted && !json)
			show_heading(rest, i);
		code = worse(code, prune_directory(directory_at(rest, i), wanted, &shown));
	}
	if (json)
		show_end(&line, shown);
	print(&line);
	return code;
}

static const struct args_command commands[] = {
	{"begin",
		"DIR STEP [--attempt K] [--life WORD] [--sharded | --chief-only] [--task I --tasks N]",
		"make the directory to write a checkpoint into", begin_options, NULL, 2, 2, false,
		false, run_begin},
	{"commit",
		"DIR STEP [--attempt K] [--life WORD] [--sharded | --chief-only] [--task I --tasks N]\n"
		"       [--timeout D] [--metric NAME=NUMBER]... [--time @SECONDS] [--keep-last N]",
		"sync the checkpoint, take checksums, publish it", commit_options, NULL, 2, 2,
		false, false, run_commit},
	{"latest", "DIR... [--step | --json] [--or WORD] [--verify]",
		"print the newest complete checkpoint", latest_options, json_option, 1, DIRECTORIES,
		false, false, run_latest},
	{"list", "DIR... [--json]", "show all checkpoints", list_options, json_option, 1,
		DIRECTORIES, false, false, run_list},
	{"verify", "DIR... [STEP | --all] [--quick]",
		"compare the checksums of one checkpoint or all", verify_options, NULL, 1,
		DIRECTORIES, false, false, run_verify},
	{"mark", "DIR STEP bad|good [--reason TEXT]", "mark as bad: it is never offered again",
		mark_options, NULL, 3, 3, false, false, run_mark},
	{"pin", "DIR STEP", "protect from prune", pin_options, NULL, 2, 2, false, false, run_pin},
	{"unpin", "DIR STEP", "undo pin", pin_options, NULL, 2, 2, false, false, run_unpin},
	{"copy", "DIR DEST [STEP... | --last N | --all] [--move]",
		"copy complete checkpoints to another directory, verified", copy_options, NULL, 2,
		DIRECTORIES, false, false, run_copy},
	{"prune", "DIR... --keep-... [--max-bytes SIZE] [--dry-run] [--json]",
		"remove checkpoints that need not be kept", prune_options, json_option, 1,
		DIRECTORIES, false, false, run_prune},
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
	if (argc > 1 && strcmp(argv[1], "drain") == 0) {
		message_program(program.name);
		message_error("there is no command \"drain\" any more: use \"copy --move\"");
		return STATUS_USAGE;
	}
	return args_main(&program, argc, argv);
}
