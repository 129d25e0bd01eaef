/* SPDX-License-Identifier: MIT */
#include "tiers.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
#include "ckpt/copy.h"
#include "ckpt/layout/layout.h"
#include "rows.h"

static uint64_t last = 1;
static bool last_given, all, dry_run, json;
static const char *limit, *layout, *pattern;

const struct args_option copy_options[] = {
	{"last", "N", "the N newest complete ones (1)", ARGS_UNSIGNED, .target = &last, .min = 1,
		.max = 1000000000, .given = &last_given},
	{"all", NULL, "all complete ones", ARGS_FLAG, .target = &all},
	{"bwlimit", "SIZE", "maximum bytes per second (200M)", ARGS_TEXT, .target = &limit},
	LAYOUT_OPTIONS(layout, pattern),
	{0},
};
const struct args_option drain_options[] = {
	{"all", NULL, "also remove the newest", ARGS_FLAG, .target = &all},
	{"dry-run", NULL, "only print what would be removed", ARGS_FLAG, .target = &dry_run,
		.letter = 'n'},
	{"json", NULL, "print JSON, not text", ARGS_FLAG, .target = &json},
	{0},
};

/* If DIR has native checkpoints, use those, even if there are also some of a framework. */
static enum status choose_layout(
	const char *directory, struct layout_choice *choice, struct error *err)
{
	*choice = layout_ours;
	if (!layout && !pattern && layout_check_native(directory, NULL) == STATUS_OK)
		return STATUS_OK;
	return layout_choose(directory, layout, pattern, choice, err);
}

/* Copy one checkpoint of DIR. */
static enum status copy_one(const char *directory, const char *destination,
	const struct layout_choice *choice, const struct checkpoint *found, struct error *err)
{
	struct copy_options options = {.choice = choice};
	struct copy_answer answer = {0};
	struct text size = {0};
	enum status status = STATUS_OK;
	if (limit)
		status = parse_bytes(limit, &options.bytes_per_second, "--bwlimit", err);
	if (status == STATUS_OK && progress_begin(found->bytes))
		options.progress = progress_add;
	if (status == STATUS_OK)
		status = checkpoint_copy(directory, destination, found, &options, &answer, err);
	progress_end();
	if (*answer.warning)
		message_error("%s", answer.warning);
	if (status != STATUS_OK)
		return status;
	show_size(&size, answer.bytes);
	if (!message_is_quiet() && answer.copied)
		printf("%s copied and verified: %" PRIu64 " files, %s\n", found->name, answer.files,
			text_string(&size));
	else if (!message_is_quiet())
		printf("%s is there already\n", found->name);
	if (answer.found)
		message_detail(
			"%" PRIu64 " files had been brought by an earlier copy", answer.found);
	text_release(&size);
	return STATUS_OK;
}

/* The newest first: it is the most important one if there is no time for all. */
static int copy_newest(
	const char *directory, const char *destination, const struct layout_choice *choice)
{
	struct error err = {0};
	struct checkpoint_list list = {0};
	uint64_t copied = 0;
	int code = STATUS_OK;
	enum status status = checkpoint_list(directory, choice, &list, NULL, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	for (size_t i = list.count; i-- > 0 && (all || copied < last);) {
		const struct checkpoint *item = list.items[i];
		if (item->state == CHECKPOINT_UNKNOWN) {
			message_error("%s/%s: %s", directory, item->name, item->why);
			code = worse(code, (int)item->status);
			break;
		}
		if (item->state != CHECKPOINT_COMPLETE)
			continue;
		copied++;
		if (copy_one(directory, destination, choice, item, &err) != STATUS_OK)
			code = worse(code, message_fail(&err));
	}
	if (copied == 0 && code == STATUS_OK) {
		message_info("there is no complete checkpoint in %s", directory);
		code = STATUS_NO;
	}
	checkpoint_list_release(&list);
	return code;
}

/* Find the checkpoint of a step; if a framework has several versions, the last one. */
static enum status find_step(const char *directory, const struct layout_choice *choice,
	const char *word, struct checkpoint *found, struct error *err)
{
	struct checkpoint_list list = {0};
	uint64_t step;
	bool any = false;
	enum status status = parse_unsigned(word, 0, CKPT_NUMBER_MAX, &step, "STEP", err);
	if (status != STATUS_OK)
		return status;
	if (layout_is_native(choice))
		return checkpoint_inspect(directory, step, false, found, err);
	status = checkpoint_list(directory, choice, &list, NULL, err);
	for (size_t i = 0; i < list.count && status == STATUS_OK; i++)
		if (list.items[i]->step == step) {
			*found = *list.items[i];
			any = true;
		}
	checkpoint_list_release(&list);
	if (status == STATUS_OK && !any)
		return error_set(err, STATUS_NO, "there is no checkpoint of step %" PRIu64 " in %s",
			step, directory);
	return status;
}

int run_copy(const struct args_rest *rest)
{
	struct error err = {0};
	int code = STATUS_OK;
	struct layout_choice choice;
	const char *directory = directory_at(rest, 0), *destination = directory_at(rest, 1);
	enum status status = STATUS_OK;
	if ((rest->count > 2) + all + last_given > 1)
		status =
			error_set(&err, STATUS_USAGE, "give only one of STEP..., --last and --all");
	if (status == STATUS_OK)
		status = copy_check_places(directory, destination, &err);
	if (status == STATUS_OK)
		status = choose_layout(directory, &choice, &err);
	if (status == STATUS_OK && layout_is_native(&choice))
		status = layout_check_native(destination, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	if (rest->count == 2)
		return copy_newest(directory, destination, &choice);
	for (size_t i = 2; i < rest->count; i++) {
		struct checkpoint found;
		status = find_step(directory, &choice, rest->words[i], &found, &err);
		if (status == STATUS_OK)
			status = copy_one(directory, destination, &choice, &found, &err);
		if (status != STATUS_OK)
			code = worse(code, message_fail(&err));
	}
	return code;
}

int run_drain(const struct args_rest *rest)
{
	struct error err = {0};
	struct text line = {0};
	size_t shown = 0;
	struct prune_report report = {0};
	struct prune_request request = {.now = clock_utc(), .wait = 60000, .dry_run = dry_run};
	const char *directory = directory_at(rest, 0), *destination = directory_at(rest, 1);
	/* Without manifests we cannot know that the two copies are equal. */
	enum status status = layout_check_native(directory, &err);
	if (status == STATUS_OK)
		status = layout_check_native(destination, &err);
	if (status == STATUS_OK && progress_begin(0))
		checkpoint_on_progress(progress_add);
	if (status == STATUS_OK)
		status = checkpoint_drain(directory, destination, all, &request, &report, &err);
	progress_end();
	if (json || !message_is_quiet())
		print_report(directory, true, json, &request, &report, &shown);
	if (json)
		show_end(&line, shown);
	print(&line);
	prune_report_release(&report);
	return status == STATUS_OK ? STATUS_OK : message_fail(&err);
}
