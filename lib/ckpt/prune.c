/* SPDX-License-Identifier: MIT */
#include "ckpt/prune.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/look.h"
#include "ckpt/place.h"
#include "ckpt/staging.h"

void prune_report_release(struct prune_report *report)
{
	free(report->items);
	*report = (struct prune_report){0};
}

/* Keep the first failure. */
static void note(enum status *first, struct error *kept, enum status status,
	const struct error *err)
{
	if (*first != STATUS_OK || status == STATUS_OK || status == STATUS_NO)
		return;
	*first = status;
	if (kept)
		*kept = *err;
}

/* Fill the report's items with what there is and what becomes of it. */
static enum status decide(const struct checkpoint_list *list, const struct keep_policy *policy,
	struct prune_report *report, struct error *err)
{
	uint64_t newest_attempt = 0;
	size_t published = 0;
	struct keep_verdict *verdicts = calloc(list->count + 1, sizeof(*verdicts));
	report->items = calloc(list->count + 1, sizeof(*report->items));
	if (!verdicts || !report->items) {
		free(verdicts);
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	}
	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *item = &list->items[i];
		if (ckpt_name_read(item->name).kind == CKPT_NAME_STEP)
			published = i + 1;
		if (item->state == CHECKPOINT_COMPLETE && item->attempt > newest_attempt)
			newest_attempt = item->attempt;
	}
	keep_decide(policy, list->items, published, verdicts);
	for (size_t i = published; i < list->count; i++)
		keep_decide_incomplete(&list->items[i], newest_attempt, &verdicts[i]);
	for (size_t i = 0; i < list->count; i++)
		report->items[i] = (struct prune_item){list->items[i], verdicts[i], STATUS_OK};
	report->count = list->count;
	free(verdicts);
	return STATUS_OK;
}

/* The decision rests on the newest complete one: is it still there, and whole? */
static enum status confirm_newest(
	const char *directory, const struct prune_report *report, struct error *err)
{
	const struct checkpoint *newest = NULL;
	struct checkpoint now;
	bool removes = false;
	for (size_t i = 0; i < report->count; i++) {
		if (report->items[i].checkpoint.state == CHECKPOINT_COMPLETE)
			newest = &report->items[i].checkpoint;
		removes |= !report->items[i].verdict.keep;
	}
	if (!removes || !newest)
		return STATUS_OK;
	enum status status = look_at_step(directory, newest->step, false, &now, NULL, err);
	if (status == STATUS_NO || (status == STATUS_OK && now.state != CHECKPOINT_COMPLETE))
		return error_set(err, STATUS_TEMPORARY,
			"%s/%s went while we looked; nothing was removed, try again", directory,
			newest->name);
	return status;
}

/* STATUS_NO: it went already, or it has come to life. */
static enum status take_away(const char *directory, const struct checkpoint *checkpoint,
	char **removed, struct error *err)
{
	enum status status =
		place_remove_begin(directory, checkpoint->name, checkpoint->inode, removed, err);
	if (status != STATUS_OK || checkpoint->state != CHECKPOINT_INCOMPLETE)
		return status;
	/* Did somebody begin to write there in that moment? */
	struct staging look = {0};
	if (staging_look(*removed, &look, NULL) == STATUS_OK && look.writer == WRITER_ALIVE) {
		char *path = place_path(directory, checkpoint->name);
		if (path)
			(void)renameat2(AT_FDCWD, *removed, AT_FDCWD, path, RENAME_NOREPLACE);
		free(path);
		free(*removed);
		*removed = NULL;
		status = STATUS_NO;
	}
	staging_release(&look);
	return status;
}

static enum status remove_all(
	const char *directory, struct prune_report *report, struct error *err)
{
	struct error one;
	enum status first = STATUS_OK;
	char **removed = calloc(report->count + 1, sizeof(*removed));
	if (!removed)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	bool any = false;
	for (size_t i = 0; i < report->count; i++) {
		struct prune_item *item = &report->items[i];
		if (item->verdict.keep)
			continue;
		item->status = take_away(directory, &item->checkpoint, &removed[i], &one);
		note(&first, err, item->status, &one);
		any |= removed[i] != NULL;
	}
	/* Otherwise a crash of the machine could show the old name with half the files. */
	if (any) {
		enum status synced = file_sync_directory(directory, &one);
		note(&first, err, synced, &one);
		any = synced == STATUS_OK;
	}
	for (size_t i = 0; i < report->count; i++) {
		if (any && removed[i]) {
			report->items[i].status = file_remove_tree(removed[i], &one);
			note(&first, err, report->items[i].status, &one);
		}
		free(removed[i]);
	}
	free(removed);
	return first;
}

/* What earlier pruners had taken away and did not live to delete. */
static enum status finish_earlier(const char *directory, size_t *leftovers, struct error *err)
{
	struct place_entries entries = {0};
	struct error one;
	enum status first = STATUS_OK;
	int descriptor;
	enum status status = place_open(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = place_list(directory, descriptor, &entries, err);
	close(descriptor);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < entries.count; i++) {
		if (entries.items[i].read.kind != CKPT_NAME_REMOVED)
			continue;
		char *path = place_path(directory, entries.items[i].name);
		status = path ? file_remove_tree(path, &one)
			      : error_set(&one, STATUS_TEMPORARY, "out of memory");
		*leftovers += status == STATUS_OK;
		note(&first, err, status, &one);
		free(path);
	}
	free(entries.items);
	return first;
}

enum status checkpoint_prune(const char *directory, const struct keep_policy *policy, bool dry_run,
	struct prune_report *report, struct error *err)
{
	struct checkpoint_list list = {0};
	struct error one;
	enum status status = checkpoint_list(directory, &list, err);
	if (status != STATUS_OK)
		return status;
	*report = (struct prune_report){0};
	status = decide(&list, policy, report, err);
	if (dry_run)
		report->leftovers = list.removed;
	checkpoint_list_release(&list);
	if (status != STATUS_OK || dry_run)
		return status;
	status = confirm_newest(directory, report, err);
	if (status != STATUS_OK)
		return status;
	status = remove_all(directory, report, err);
	note(&status, err, finish_earlier(directory, &report->leftovers, &one), &one);
	return status;
}
