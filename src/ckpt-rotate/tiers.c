/* SPDX-License-Identifier: MIT */
/* ckpt-rotate copy. */
#include "rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/message.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "ckpt/copy.h"
#include "ckpt/layouts.h"
#include "ckpt/list.h"

static uint64_t last = 1;
static bool last_given, all, moves;
static const char *directory, *destination;

const struct args_option copy_options[] = {
	{"last", "N", "the N newest complete ones (1)", ARGS_UNSIGNED, .target = &last, .min = 1,
		.max = 1000000000, .given = &last_given},
	{"all", NULL, "all complete ones", ARGS_FLAG, .target = &all},
	{"move", NULL, "then remove each original that has a verified copy, but not the newest",
		ARGS_FLAG, .target = &moves},
	{0},
};

/* listed: it was found in DIR, so if it is gone since, it needs no copy. *copied: it was read. */
static int copy_one(const struct checkpoint *item, bool listed, bool *copied)
{
	struct error err;
	struct text size = {0};
	bool vanished;
	int code = STATUS_OK;
	progress_begin(item->bytes);
	enum status status =
		checkpoint_copy(directory, destination, item->step, copied, &vanished, &err);
	progress_end();
	text_add_size(&size, item->bytes);
	if (status != STATUS_OK && vanished && listed)
		message_info("%s", err.text);
	else if (status != STATUS_OK)
		code = message_fail(&err);
	else if (!message_is_quiet() && *copied)
		printf("%s copied and verified: %" PRIu64 " files, %s\n", item->name, item->files,
			text_string(&size));
	else if (!message_is_quiet())
		printf("%s is there already\n", item->name);
	text_release(&size);
	return code;
}

static int move_one(const struct checkpoint *item, bool newest, bool copied)
{
	struct error err;
	enum status status =
		newest && !all ? error_set(&err, STATUS_NO, "the newest complete one")
			       : checkpoint_move(directory, destination, item->step, copied, &err);
	if (status_is_error(status))
		return message_fail(&err);
	if (!message_is_quiet())
		printf("%s %s: %s\n", item->name, status == STATUS_OK ? "removed" : "kept",
			status == STATUS_OK ? "its copy is verified" : err.text);
	return STATUS_OK;
}

/* STATUS_USAGE: DIR has checkpoints of a framework, and none of ours. */
static enum status check_ours(const char *place, struct error *err)
{
	struct layout layout;
	enum status status = layout_detect(place, layout_ours()->name, &layout, err);
	if (status == STATUS_OK && !layout_is_native(&layout))
		status = error_set(err, STATUS_USAGE,
			"%s has checkpoints of the layout %s; copy those of a framework with "
			"rsync, and check the copy with \"ckpt-rotate verify\"",
			place, layout.name);
	return status;
}

/* Note that the checkpoint of a step is to be copied. STATUS_NO: there is none in DIR. */
static enum status choose(
	const struct list *list, const char *word, bool *chosen, struct error *err)
{
	uint64_t step;
	bool any = false;
	enum status status = parse_unsigned(word, 0, CKPT_NUMBER_MAX, &step, "STEP", err);
	for (size_t i = 0; i < list->count && status == STATUS_OK; i++)
		if (list->items[i].checkpoint.step == step && !list->items[i].checkpoint.unfinished)
			any = chosen[i] = true;
	return status != STATUS_OK || any
		       ? status
		       : error_set(err, STATUS_NO, "there is no checkpoint of step %s in %s", word,
				 directory);
}

/* Copy, and move, the chosen ones (NULL: complete ones, by the options), the newest first. Returns
 * the worst code. */
static int copy_all(const struct list *list, const bool *chosen)
{
	const struct list_item *newest = list_newest(list);
	uint64_t met = 0;
	int code = STATUS_OK;
	for (size_t i = list->count; i-- > 0 && (chosen || all || moves || met < last);) {
		const struct checkpoint *item = &list->items[i].checkpoint;
		bool unreadable = !chosen && item->state == CHECKPOINT_UNREADABLE, copied = false;
		int answer = STATUS_OK;
		if (unreadable) {
			message_error("%s/%s: %s", directory, item->name, item->why);
			answer = (int)item->status;
		} else if (chosen ? !chosen[i] : item->state != CHECKPOINT_COMPLETE) {
			continue;
		} else if (chosen || all || met < last) {
			answer = copy_one(item, !chosen, &copied);
		}
		if (moves && answer == STATUS_OK)
			answer = move_one(item, newest && item == &newest->checkpoint, copied);
		code = answer > code ? answer : code;
		met++;
		if (unreadable)
			break;
	}
	if (!met)
		message_info("there is no complete checkpoint in %s", directory);
	return met ? code : STATUS_NO;
}

int run_copy(const struct args_rest *rest)
{
	struct error err;
	struct list list = {.descriptor = -1};
	bool *chosen = NULL, named = rest->count > 2;
	checkpoint_on_progress(progress_add);
	directory = directory_at(rest, 0);
	destination = directory_at(rest, 1);
	const struct list_request request = {.directory = directory, .layout = layout_ours()};
	enum status status = named + all + last_given > 1
				     ? error_set(&err, STATUS_USAGE,
					       "give only one of STEP..., --last and --all")
				     : copy_check_places(directory, destination, &err);
	for (int i = 0; i < 2 && status == STATUS_OK; i++)
		status = check_ours(i ? destination : directory, &err);
	if (status == STATUS_OK && moves)
		status = copy_settle(directory, &err);
	if (status == STATUS_OK)
		status = list_read(&request, &list, &err);
	if (named)
		chosen = xcalloc(list.count + 1, sizeof(*chosen));
	for (size_t i = 2; i < rest->count && status == STATUS_OK; i++)
		status = choose(&list, rest->words[i], chosen, &err);
	int code = status == STATUS_OK ? copy_all(&list, chosen) : message_fail(&err);
	list_release(&list);
	free(chosen);
	return code;
}
