/* SPDX-License-Identifier: MIT */
/* Finding checkpoints in any layout: all in a directory, the newest, the one to resume from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/layout/layout.h"
#include "ckpt/scan.h"

/* We give up when listed checkpoints have vanished this number of times. */
#define TRIES 100

void checkpoint_list_release(struct checkpoint_list *list)
{
	free(list->items);
	free(list->memory);
	*list = (struct checkpoint_list){0};
}

/* Add what a user should know about the tracker. */
static void note_tracker(const struct scan *scan, struct text *notes)
{
	const struct layout_tracker *tracker = &scan->tracker;
	const char *directory = scan->directory, *file = scan->choice->layout->tracker;
	if (!notes || !tracker->found)
		return;
	if (*tracker->broken)
		text_addf(notes, "%s/%s: cannot parse the tracker file: %s\n", directory, file,
			tracker->broken);
	bool there = !tracker->named || !*tracker->name;
	for (size_t i = 0; i < scan->count && !there; i++)
		there = strcmp(scan->items[i].checkpoint.name, tracker->name) == 0;
	if (!there)
		text_addf(notes, "%s/%s names %s, which is not there\n", directory, file,
			tracker->name);
}

enum status checkpoint_list(const char *directory, const struct layout_choice *choice,
	struct checkpoint_list *list, struct text *notes, struct error *err)
{
	struct checkpoint_list made = {0};
	struct scan scan = {.directory = directory, .choice = choice, .settled = LAYOUT_SETTLED};
	enum status status = scan_open(&scan, err);
	if (status == STATUS_OK)
		status = scan_read(&scan, err);
	made.removed = scan.removed;
	if (status == STATUS_OK && scan.count == 0)
		status = ckpt_directory_confirm(directory, scan.descriptor, err);
	if (status == STATUS_OK) {
		note_tracker(&scan, notes);
		made.items = xcalloc(scan.count + 1, sizeof(*made.items));
		for (; made.count < scan.count; made.count++)
			made.items[made.count] = &scan.items[made.count].checkpoint;
		made.memory = scan.items;
		scan.items = NULL;
		*list = made;
	}
	scan_close(&scan);
	return status;
}

/* A walk from the newest checkpoint to the oldest. */
struct walk {
	const struct checkpoint_search *search;
	struct checkpoint *found;
	struct text skipped;
	bool unproven; /* found is set, to one that is CHECKPOINT_UNPROVEN */
	bool fewer;    /* and another checkpoint has more ranks */
};

/* Look at the next checkpoint. STATUS_OK: it is complete, so the walk ends. STATUS_NO: go on. */
static enum status meet(struct walk *walk, const struct scan_item *item, struct error *err)
{
	const struct checkpoint *one = &item->checkpoint;
	const char *directory = walk->search->directory;
	if (one->state == CHECKPOINT_COMPLETE) {
		*walk->found = *one;
		walk->unproven = false;
		return STATUS_OK;
	}
	if (one->state == CHECKPOINT_UNKNOWN)
		return error_set(err, one->status, "%s/%s: %s", directory, one->name, one->why);
	/* Prefer an unproven one that has no fewer ranks than others. */
	if (one->state == CHECKPOINT_UNPROVEN &&
		(!walk->unproven || (walk->fewer && !item->fewer))) {
		*walk->found = *one;
		walk->unproven = true;
		walk->fewer = item->fewer;
	}
	text_addf(&walk->skipped, "%s/%s is %s and was skipped: %s\n", directory, one->name,
		checkpoint_state_name(one->state), one->why);
	return STATUS_NO;
}

/* Choose the newest one to resume from. STATUS_NO: there is none among those that were read. */
static enum status choose(struct scan *scan, struct walk *walk, struct error *err)
{
	/* Each checkpoint of a framework is compared with the others, so read all. Ours are
	 * inspected one by one, the newest first, until one is complete. */
	bool alone = scan->choice->layout->inspect != NULL;
	enum status status = alone ? scan_names(scan, err) : scan_read(scan, err);
	if (status != STATUS_OK)
		return status;
	note_tracker(scan, &walk->skipped);
	for (size_t i = alone ? scan->part_count : scan->count; i-- > 0;) {
		struct scan_item item = {0};
		if (alone)
			(void)scan_item(scan, i, &item);
		else
			item = scan->items[i];
		if (scan->parts[item.first].read.group != 0 ||
			(walk->search->below && item.checkpoint.step >= *walk->search->below))
			continue;
		if (alone)
			status = scan_inspect(scan, &item, err);
		if (status == STATUS_OK)
			status = meet(walk, &item, err);
		else if (status == STATUS_NO)
			scan->vanished = true;
		if (status != STATUS_NO)
			return status;
		status = STATUS_OK;
	}
	if (walk->unproven)
		return STATUS_OK;
	const struct layout *layout = scan->choice->layout;
	if (layout->tracker_is_checkpoint && *scan->tracker.broken)
		return error_set(err, STATUS_DAMAGED,
			"%s/%s is the only checkpoint, and it is "
			"not complete",
			scan->directory, layout->tracker);
	return error_set(err, STATUS_NO, "there is no complete checkpoint in %s", scan->directory);
}

enum status checkpoint_latest(const struct checkpoint_search *search, struct checkpoint *found,
	struct text *skipped, struct error *err)
{
	struct scan scan = {.directory = search->directory,
		.choice = search->choice,
		.settled = LAYOUT_SETTLED,
		.contents = search->contents};
	enum status status = scan_open(&scan, err);
	/* While another process commits and prunes, a listed checkpoint may be gone when it is
	 * examined. Repeat until nothing listed disappeared. Never answer "none" from an
	 * unstable listing; but after TRIES, answer with a checkpoint that was found. */
	bool again = status == STATUS_OK;
	for (int tries = 1; again; tries++) {
		struct walk walk = {.search = search, .found = found};
		status = choose(&scan, &walk, err);
		again = scan.vanished && tries < TRIES &&
			(status == STATUS_OK || status == STATUS_NO);
		if (skipped && !again)
			text_add(skipped, text_string(&walk.skipped));
		text_release(&walk.skipped);
	}
	if (status == STATUS_NO && scan.vanished)
		status = error_set(err, STATUS_TEMPORARY,
			"the checkpoints in %s kept changing while they were read; try again",
			search->directory);
	if (status == STATUS_NO) {
		status = ckpt_directory_confirm(search->directory, scan.descriptor, err);
		status = status == STATUS_OK ? STATUS_NO : status;
	}
	scan_close(&scan);
	return status;
}

enum status checkpoint_find_resume(
	const char *text, char path[4096], uint64_t *step, bool *unproven, struct error *notes)
{
	struct checkpoint found;
	struct layout_choice choice;
	struct text skipped = {0};
	char directory[4096];
	const struct checkpoint_search search = {.directory = directory, .choice = &choice};
	enum status status = layout_read_location(text, directory, &choice, notes);
	if (status == STATUS_OK)
		status = checkpoint_latest(&search, &found, &skipped, notes);
	if (status == STATUS_OK && snprintf(path, 4096, "%s/%s", directory, found.name) >= 4096)
		status = error_set(notes, STATUS_USAGE, "the name %.100s... is too long", text);
	if (status == STATUS_OK) {
		*step = found.step;
		*unproven = found.state == CHECKPOINT_UNPROVEN;
		if (*unproven)
			error_set(notes, STATUS_OK, "%s may be incomplete: %s", path, found.why);
		else
			error_set(notes, STATUS_OK, "%.*s",
				(int)strcspn(text_string(&skipped), "\n"), text_string(&skipped));
	}
	text_release(&skipped);
	return status;
}

/* STATUS_OK: a checkpoint of another step is complete. STATUS_NO: there is none. */
static enum status find_other(
	const char *directory, const struct layout_choice *choice, uint64_t step, struct error *err)
{
	struct checkpoint_list list = {0};
	bool found = false;
	enum status status = checkpoint_list(directory, choice, &list, NULL, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_TEMPORARY : status;
	for (size_t i = 0; i < list.count; i++)
		found |= list.items[i]->state == CHECKPOINT_COMPLETE && list.items[i]->step != step;
	checkpoint_list_release(&list);
	return found ? STATUS_OK
		     : error_set(err, STATUS_NO, "there is no other complete checkpoint");
}

enum status checkpoint_give_up(
	const char *place, uint64_t step, uint64_t failures, struct error *err)
{
	char reason[80];
	struct layout_choice choice;
	char directory[4096];
	enum status status = layout_read_location(place, directory, &choice, err);
	if (status == STATUS_OK && !layout_is_native(&choice))
		return error_set(err, STATUS_NO,
			"checkpoints of the layout %s cannot be marked; move it away yourself",
			layout_name(&choice));
	if (status == STATUS_OK)
		status = find_other(directory, &choice, step, err);
	if (status != STATUS_OK)
		return status;
	snprintf(reason, sizeof(reason), "%llu restarts from it failed",
		(unsigned long long)failures);
	/* If another process has marked or pruned it already, that is as good. */
	status = checkpoint_mark(directory, step, CKPT_MARK_BAD, reason, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	/* A prune that did not see the mark has renamed the others away by now. */
	status = find_other(directory, &choice, step, err);
	if (status != STATUS_OK) {
		struct error why;
		enum status undone = checkpoint_mark(directory, step, CKPT_MARK_GOOD, NULL, &why);
		if (undone != STATUS_OK && undone != STATUS_NO)
			status = error_set(err, undone, "%s", why.text);
	}
	return status;
}
