/* SPDX-License-Identifier: MIT */
#include "ckpt/adopted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "ckpt/directory.h"
#include "ckpt/scan.h"

/* How often things may go while we look before we give up. */
#define TRIES 100

enum status layout_choose(const char *directory, const char *layout, const char *pattern,
	struct layout_choice *choice, struct error *err)
{
	if (pattern && layout)
		return error_set(err, STATUS_USAGE, "give either --layout or --pattern");
	if (pattern)
		return layout_of_pattern(pattern, choice, err);
	if (layout && strcmp(layout, "auto") != 0)
		return layout_named(layout, choice, err);
	return layout_detect(directory, choice, err);
}

enum status layout_read_location(
	const char *text, char directory[4096], struct layout_choice *choice, struct error *err)
{
	const char *colon = strrchr(text, ':');
	struct error why;
	struct stat st;
	bool named = colon && (strcmp(colon + 1, "auto") == 0 ||
				      layout_named(colon + 1, choice, &why) == STATUS_OK);
	/* (A filesystem that cannot be asked may have a directory of that name.) */
	if (colon && !named && !strchr(colon, '/') && lstat(text, &st) < 0 && errno == ENOENT)
		return error_set(err, STATUS_USAGE,
			"%s: %s (a directory whose name has a colon is written with a slash at the "
			"end: %s/)",
			text, why.text, text);
	int length = named ? (int)(colon - text) : (int)strlen(text);
	if (snprintf(directory, 4096, "%.*s", length, text) >= 4096)
		return error_set(err, STATUS_USAGE, "the name %.100s... is too long", text);
	return layout_choose(directory, named ? colon + 1 : NULL, NULL, choice, err);
}

static enum status look(const char *directory, const struct layout_choice *choice, int *descriptor,
	struct scan *scan, struct error *err)
{
	enum status status = ckpt_directory_open(directory, descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = scan_refuse_inside(directory, *descriptor, choice, err);
	if (status == STATUS_OK)
		status = scan_read(directory, *descriptor, choice, LAYOUT_SETTLED, scan, err);
	if (status == STATUS_OK && scan->count == 0)
		status = ckpt_directory_confirm(directory, *descriptor, err);
	if (status != STATUS_OK) {
		close(*descriptor);
		scan_release(scan);
	}
	return status;
}

/* What people should know of the tracker. */
static void note_tracker(const char *directory, const struct layout_choice *choice,
	const struct scan *scan, struct text *notes)
{
	const struct layout_tracker *tracker = &scan->tracker;
	if (!notes || !tracker->found)
		return;
	if (*tracker->broken)
		text_addf(notes, "%s/%s: cannot parse the tracker file: %s\n", directory,
			choice->layout->tracker, tracker->broken);
	bool there = !tracker->named || !*tracker->name;
	for (size_t i = 0; i < scan->count && !there; i++)
		there = strcmp(scan->items[i].checkpoint.name, tracker->name) == 0;
	if (!there)
		text_addf(notes, "%s/%s names %s, which is not there\n", directory,
			choice->layout->tracker, tracker->name);
}

enum status adopted_list(const char *directory, const struct layout_choice *choice,
	struct checkpoint_list *list, struct text *notes, struct error *err)
{
	struct scan scan = {0};
	int descriptor;
	if (!choice->layout)
		return checkpoint_list(directory, list, err);
	enum status status = look(directory, choice, &descriptor, &scan, err);
	if (status != STATUS_OK)
		return status;
	struct checkpoint *items = xcalloc(scan.count + 1, sizeof(*items));
	for (size_t i = 0; i < scan.count; i++)
		items[i] = scan.items[i].checkpoint;
	*list = (struct checkpoint_list){items, scan.count, scan.removed};
	note_tracker(directory, choice, &scan, notes);
	close(descriptor);
	scan_release(&scan);
	return status;
}

static enum status choose(const char *directory, const struct layout *layout,
	const struct scan *scan, struct checkpoint *found, struct text *skipped, struct error *err)
{
	const struct scan_item *unproven = NULL;
	for (size_t i = scan->count; i-- > 0;) {
		const struct checkpoint *item = &scan->items[i].checkpoint;
		if (item->state == CHECKPOINT_COMPLETE) {
			*found = *item;
			return STATUS_OK;
		}
		if (item->state == CHECKPOINT_UNKNOWN)
			return error_set(
				err, item->status, "%s/%s: %s", directory, item->name, item->why);
		/* Rather one that nothing speaks against. */
		if (item->state == CHECKPOINT_UNPROVEN &&
			(!unproven || (unproven->fewer && !scan->items[i].fewer)))
			unproven = &scan->items[i];
		if (skipped)
			text_addf(skipped, "%s/%s is %s and was skipped: %s\n", directory,
				item->name, checkpoint_state_name(item->state), item->why);
	}
	if (unproven) {
		*found = unproven->checkpoint;
		return STATUS_OK;
	}
	if (layout->tracker_is_checkpoint && *scan->tracker.broken)
		return error_set(err, STATUS_DAMAGED,
			"%s/%s is the only checkpoint, and it is "
			"not complete",
			directory, layout->tracker);
	return error_set(err, STATUS_NO, "there is no complete checkpoint in %s", directory);
}

enum status adopted_latest(const char *directory, const struct layout_choice *choice, bool contents,
	struct checkpoint *found, struct text *skipped, struct error *err)
{
	struct scan scan = {0};
	int descriptor;
	if (!choice->layout)
		return checkpoint_latest(directory, contents, found, skipped, err);
	enum status status = look(directory, choice, &descriptor, &scan, err);
	if (status == STATUS_NO) {
		enum status confirmed = ckpt_directory_confirm(directory, -1, err);
		return confirmed == STATUS_OK
			       ? error_set(err, STATUS_NO, "there is no directory %s", directory)
			       : confirmed;
	}
	/* What went while it was looked at may have been replaced by what was not listed. */
	for (int tries = 1; status == STATUS_OK && scan.vanished && tries < TRIES; tries++) {
		close(descriptor);
		scan_release(&scan);
		status = look(directory, choice, &descriptor, &scan, err);
	}
	if (status != STATUS_OK)
		return status == STATUS_NO ? error_set(err, STATUS_TEMPORARY,
						     "%s vanished while it was read", directory)
					   : status;
	note_tracker(directory, choice, &scan, skipped);
	status = choose(directory, choice->layout, &scan, found, skipped, err);
	if (status == STATUS_NO && scan.vanished)
		status = error_set(err, STATUS_TEMPORARY,
			"the checkpoints in %s kept changing while they were read; try again",
			directory);
	if (status == STATUS_NO) {
		struct error why;
		enum status confirmed = ckpt_directory_confirm(directory, descriptor, &why);
		if (confirmed != STATUS_OK)
			status = error_set(err, confirmed, "%s", why.text);
	}
	close(descriptor);
	scan_release(&scan);
	return status;
}

enum status checkpoint_find_resume(
	const char *text, char path[4096], uint64_t *step, bool *unproven, struct error *notes)
{
	struct checkpoint found;
	struct layout_choice choice;
	struct text skipped = {0};
	char directory[4096];
	enum status status = layout_read_location(text, directory, &choice, notes);
	if (status == STATUS_OK)
		status = adopted_latest(directory, &choice, false, &found, &skipped, notes);
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

enum status checkpoint_give_up(
	const char *place, uint64_t step, uint64_t failures, struct error *err)
{
	char reason[80];
	struct checkpoint_list list = {0};
	struct layout_choice choice;
	char directory[4096];
	size_t others = 0;
	enum status status = layout_read_location(place, directory, &choice, err);
	if (status == STATUS_OK && choice.layout)
		return error_set(err, STATUS_NO,
			"checkpoints of the layout %s cannot be marked; move it away yourself",
			layout_name(&choice));
	if (status == STATUS_OK)
		status = checkpoint_list(directory, &list, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_TEMPORARY : status;
	for (size_t i = 0; i < list.count; i++)
		others += list.items[i].state == CHECKPOINT_COMPLETE && list.items[i].step != step;
	checkpoint_list_release(&list);
	if (others == 0)
		return error_set(err, STATUS_NO, "there is no other complete checkpoint");
	snprintf(reason, sizeof(reason), "%llu restarts from it failed",
		(unsigned long long)failures);
	/* Marked, or pruned, by somebody else meanwhile: then it is not found either. */
	status = checkpoint_mark_bad(directory, step, reason, err);
	return status == STATUS_NO ? STATUS_OK : status;
}
