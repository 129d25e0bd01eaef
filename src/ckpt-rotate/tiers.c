/* SPDX-License-Identifier: MIT */
#include "tiers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/message.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "ckpt/copy.h"
#include "ckpt/list.h"
#include "rows.h"

static uint64_t last = 1;
static bool last_given, all, moves;

const struct args_option copy_options[] = {
	{"last", "N", "the N newest complete ones (1)", ARGS_UNSIGNED, .target = &last, .min = 1,
		.max = 1000000000, .given = &last_given},
	{"all", NULL, "all complete ones", ARGS_FLAG, .target = &all},
	{"move", NULL, "then remove each original that has a verified copy, but not the newest",
		ARGS_FLAG, .target = &moves},
	{0},
};

/* What is copied or moved, the newest first: it is the most important if there is no time for all.
 */
struct chosen {
	struct choice {
		uint64_t step;
		bool copied; /* just now, so the copy was read */
	} * items;
	size_t count;
	bool listed; /* they were found in DIR: what is gone since needs no copy */
};

/* Choose complete checkpoints of DIR, most at most. */
static enum status choose(
	const char *directory, uint64_t most, struct chosen *chosen, struct error *err)
{
	const struct list_request request = {.directory = directory, .layout = layout_ours()};
	struct list list;
	enum status status = list_read(&request, &list, err);
	chosen->items = xcalloc(list.count + 1, sizeof(*chosen->items));
	chosen->listed = true;
	for (size_t i = list.count; i-- > 0 && chosen->count < most && status == STATUS_OK;) {
		const struct checkpoint *item = &list.items[i].checkpoint;
		if (item->state == CHECKPOINT_UNREADABLE)
			status = error_set(
				err, item->status, "%s/%s: %s", directory, item->name, item->why);
		else if (item->state == CHECKPOINT_COMPLETE)
			chosen->items[chosen->count++].step = item->step;
	}
	list_release(&list);
	return status;
}

static enum status choose_steps(
	const struct args_rest *rest, struct chosen *chosen, struct error *err)
{
	enum status status = STATUS_OK;
	chosen->items = xcalloc(rest->count, sizeof(*chosen->items));
	for (size_t i = 2; i < rest->count && status == STATUS_OK; i++)
		status = parse_unsigned(rest->words[i], 0, CKPT_NUMBER_MAX,
			&chosen->items[chosen->count++].step, "STEP", err);
	return status;
}

static int copy_one(
	const char *directory, const char *destination, bool listed, struct choice *choice)
{
	struct copy_answer answer = {0};
	struct checkpoint found = {0};
	struct error err;
	struct text size = {0};
	int code = STATUS_OK;
	(void)checkpoint_inspect(directory, choice->step, false, &found, &err);
	bool shown = progress_begin(found.bytes);
	enum status status = checkpoint_copy(
		directory, destination, choice->step, shown ? progress_add : NULL, &answer, &err);
	progress_end();
	choice->copied = status == STATUS_OK && answer.copied;
	show_size(&size, answer.bytes);
	message_warnings(answer.warning.data);
	if (status != STATUS_OK && answer.vanished && listed)
		message_info("%s", err.text);
	else if (status != STATUS_OK)
		code = message_fail(&err);
	else if (!message_is_quiet() && answer.copied)
		printf("%s copied and verified: %" PRIu64 " files, %s\n", found.name, answer.files,
			text_string(&size));
	else if (!message_is_quiet())
		printf("%s is there already\n", found.name);
	text_release(&size);
	text_release(&answer.warning);
	return code;
}

/* Remove the originals that have a verified copy. */
static int move_all(
	const char *directory, const char *destination, const struct chosen *copied, bool named)
{
	struct error err;
	struct chosen complete = {0};
	int code = STATUS_OK;
	enum status status = choose(directory, UINT64_MAX, &complete, &err);
	for (size_t i = 0; i < complete.count && status == STATUS_OK; i++) {
		char name[CKPT_NAME_SIZE];
		bool read = false, wanted = !named;
		uint64_t step = complete.items[i].step;
		for (size_t k = 0; k < copied->count; k++) {
			wanted |= copied->items[k].step == step;
			read |= copied->items[k].step == step && copied->items[k].copied;
		}
		if (!wanted)
			continue;
		enum status moved =
			i == 0 && !all ? error_set(&err, STATUS_NO, "the newest complete one")
				       : checkpoint_move(directory, destination, step, read, &err);
		ckpt_name_step(name, step);
		if (moved != STATUS_OK && moved != STATUS_NO)
			code = worse(code, message_fail(&err));
		else if (!message_is_quiet() && moved == STATUS_OK)
			printf("%s removed: its copy is verified\n", name);
		else if (!message_is_quiet())
			printf("%s kept: %s\n", name, err.text);
	}
	free(complete.items);
	return status == STATUS_OK ? code : worse(code, message_fail(&err));
}

/* STATUS_USAGE: DIR has checkpoints of a framework, and none of ours. */
static enum status check_ours(const char *directory, struct error *err)
{
	struct layout layout;
	enum status status = layout_detect(directory, layout_ours()->name, &layout, err);
	if (status == STATUS_OK && !layout_is_native(&layout))
		status = error_set(err, STATUS_USAGE,
			"%s has checkpoints of the layout %s; copy those of a framework with "
			"rsync, and check the copy with \"ckpt-rotate verify\"",
			directory, layout.name);
	return status;
}

int run_copy(const struct args_rest *rest)
{
	struct error err;
	struct chosen chosen = {0};
	int code = STATUS_OK;
	const char *directory = directory_at(rest, 0), *destination = directory_at(rest, 1);
	bool named = rest->count > 2;
	enum status status = named + all + last_given > 1
				     ? error_set(&err, STATUS_USAGE,
					       "give only one of STEP..., --last and --all")
				     : copy_check_places(directory, destination, &err);
	for (int i = 0; i < 2 && status == STATUS_OK; i++)
		status = check_ours(i ? destination : directory, &err);
	if (status == STATUS_OK && moves)
		status = copy_settle(directory, &err);
	if (status == STATUS_OK)
		status = named ? choose_steps(rest, &chosen, &err)
			       : choose(directory, all ? UINT64_MAX : last, &chosen, &err);
	for (size_t i = 0; i < chosen.count && (!named || status == STATUS_OK); i++)
		code = worse(
			code, copy_one(directory, destination, chosen.listed, &chosen.items[i]));
	if (status != STATUS_OK)
		code = worse(code, message_fail(&err));
	if (chosen.count == 0 && code == STATUS_OK) {
		message_info("there is no complete checkpoint in %s", directory);
		code = STATUS_NO;
	}
	if (moves && status == STATUS_OK)
		code = worse(code, move_all(directory, destination, &chosen, named));
	free(chosen.items);
	return code;
}
