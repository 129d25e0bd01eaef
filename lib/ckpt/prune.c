/* SPDX-License-Identifier: MIT */
#include "ckpt/prune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/commit/marks.h"
#include "ckpt/commit/staging.h"
#include "ckpt/directory.h"
#include "ckpt/layout/native.h"
#include "ckpt/prune_lock.h"
#include "ckpt/remove.h"

void prune_report_release(struct prune_report *report)
{
	free(report->items);
	*report = (struct prune_report){0};
}

const char *prune_action(const struct prune_item *item, bool dry_run)
{
	if (item->decision.keep)
		return "kept";
	return dry_run || item->status == STATUS_OK ? "removed"
	       : item->status == STATUS_NO	    ? "gone"
						    : "FAILED";
}

/* Keep the first failure. */
static void note(
	enum status *first, struct error *kept, enum status status, const struct error *err)
{
	if (*first != STATUS_OK || status == STATUS_OK || status == STATUS_NO)
		return;
	*first = status;
	if (kept)
		*kept = *err;
}

/* The newest attempt of a line of lives (base/life.h) that has saved; 0: none has. */
static uint64_t newest_attempt(const struct checkpoint_list *list, const char *life)
{
	uint64_t newest = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *item = &list->items[i];
		bool saved = item->state == CHECKPOINT_COMPLETE || item->state == CHECKPOINT_BAD;
		if (saved && item->attempt > newest && life_same_line(item->life, life))
			newest = item->attempt;
	}
	return newest;
}

/* Fill the report's items with what there is and what becomes of it. *met: the limits are. */
static void decide(const struct checkpoint_list *list, const struct keep_policy *policy,
	const struct keep_moment *moment, struct prune_report *report, bool *met)
{
	size_t published = 0;
	const struct checkpoint *newest = NULL; /* complete */
	struct keep_decision *decisions = xcalloc(list->count + 1, sizeof(*decisions));
	report->items = xcalloc(list->count + 1, sizeof(*report->items));
	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *item = &list->items[i];
		if (ckpt_name_read(item->name).kind == CKPT_NAME_STEP)
			published = i + 1;
		if (item->state == CHECKPOINT_COMPLETE && (!newest || item->step > newest->step))
			newest = item;
	}
	*met = keep_decide(policy, moment, list->items, published, decisions);
	for (size_t i = published; i < list->count; i++)
		keep_decide_incomplete(&list->items[i], newest_attempt(list, list->items[i].life),
			newest, &decisions[i]);
	for (size_t i = 0; i < list->count; i++)
		report->items[i] = (struct prune_item){list->items[i], decisions[i],
			decisions[i].keep ? STATUS_OK : STATUS_TEMPORARY};
	report->count = list->count;
	free(decisions);
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
		removes |= !report->items[i].decision.keep;
	}
	if (!removes || !newest)
		return STATUS_OK;
	enum status status = inspect_step(directory, newest->step, false, &now, NULL, err);
	if (status == STATUS_NO || (status == STATUS_OK && now.state != CHECKPOINT_COMPLETE))
		return error_set(err, STATUS_TEMPORARY,
			"%s/%s disappeared while it was examined; nothing was removed, try again",
			directory, newest->name);
	return status;
}

static bool is_no_record(const char *name)
{
	return !ckpt_name_is_transient(name);
}

/* Delete what is in an open directory and has a name of this kind. */
static enum status remove_inside(
	int directory, bool (*is_kind)(const char *name), struct error *err)
{
	struct file_names names = {0};
	enum status status = file_read_names(directory, ".", &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
		if (is_kind(names.names[i]))
			status = file_remove_tree_at(directory, names.names[i], err);
	file_names_release(&names);
	return status;
}

/*
 * Nobody commits it, or copies into it, now or until it is closed: they hold a lock on it, and it
 * may have got its final name since we looked. STATUS_NO: somebody does, or it is not what it was.
 */
static enum status claim(const char *path, int descriptor, const struct checkpoint *checkpoint)
{
	struct staging now = {0};
	if (flock(descriptor, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return STATUS_NO;
	bool same = staging_inspect(path, &now, NULL) == STATUS_OK &&
		    now.inode == checkpoint->inode && now.writer == checkpoint->writer;
	staging_release(&now);
	return same ? STATUS_OK : STATUS_NO;
}

/*
 * Empty an unfinished directory in place, by its descriptor, and remove it last. A `begin` that
 * finds a dead writer creates a new directory, so this one holds nothing of a new writer, and rmdir
 * fails if it is not empty. Remove the writers' records after the other files: until then other
 * processes can see that the writers are gone. STATUS_NO: it is gone already, or a live writer uses
 * it now.
 */
static enum status remove_incomplete(
	const char *directory, const struct checkpoint *checkpoint, struct error *err)
{
	struct staging look = {0};
	int descriptor = -1;
	char *path = ckpt_directory_path(directory, checkpoint->name);
	enum status status = staging_inspect(path, &look, err);
	bool same = status == STATUS_OK && look.inode == checkpoint->inode;
	bool vacant = same && !look.others && !look.sharded && !look.one_writer;
	if (status == STATUS_OK && (!same || look.writer != checkpoint->writer))
		status = STATUS_NO;
	if (status == STATUS_OK) {
		struct stat st;
		descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (descriptor < 0 || fstat(descriptor, &st) < 0 || st.st_ino != checkpoint->inode)
			status = STATUS_NO;
		if (status == STATUS_OK && !vacant)
			status = claim(path, descriptor, checkpoint);
		if (status == STATUS_OK && !vacant)
			status = remove_inside(descriptor, is_no_record, err);
		/* (A begin that is at work in an empty one puts its record there anew.) */
		if (status == STATUS_OK)
			status = remove_inside(descriptor,
				vacant ? ckpt_name_is_ongoing : ckpt_name_is_transient, err);
		if (status != STATUS_OK && status != STATUS_NO)
			error_prefix(err, "%s", path);
	}
	if (status == STATUS_OK && rmdir(path) < 0)
		status = errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST
				 ? STATUS_NO
				 : error_errno(err, errno, "remove %s", path);
	if (descriptor >= 0)
		close(descriptor);
	staging_release(&look);
	free(path);
	return status;
}

/*
 * Rename one away, unless it is pinned. Whoever pins it after we looked finds it under its name, or
 * not at all, or we find the pin under the new name and give it back. STATUS_NO: it stays.
 */
static enum status take_away(
	int directory, struct prune_item *item, char gone[CKPT_REMOVED_SIZE], struct error *err)
{
	bool pinned = false;
	const char *name = item->checkpoint.name;
	enum status status = marks_read_pinned(directory, name, &pinned, err);
	if (status == STATUS_OK && !pinned) {
		status = remove_begin(directory, name, item->checkpoint.inode, gone, err);
		if (status != STATUS_OK)
			return status;
		/* What cannot be told now is deleted by nobody. */
		status = marks_read_pinned(directory, gone, &pinned, err);
		if (status != STATUS_OK || pinned)
			(void)file_rename_new(directory, gone, directory, name);
	}
	if (status == STATUS_OK && pinned) {
		item->decision = (struct keep_decision){true, true, "pinned meanwhile"};
		item->checkpoint.pinned = true;
	}
	return status;
}

/* Each item learns how it went. Where the renames cannot be made durable, nothing is deleted, also
 * not what earlier pruners left: a second sync may succeed although nothing is on the disk. */
static enum status remove_all(
	const char *directory, int descriptor, struct prune_report *report, struct error *err)
{
	struct error one;
	enum status first = STATUS_OK;
	size_t count = 0;
	char(*gone)[CKPT_REMOVED_SIZE] = xcalloc(report->count + 1, sizeof(*gone));
	const char **names = xcalloc(report->count + 1, sizeof(*names));
	enum status *statuses = xcalloc(report->count + 1, sizeof(*statuses));
	struct prune_item **items = xcalloc(report->count + 1, sizeof(struct prune_item *));
	for (size_t i = 0; i < report->count; i++) {
		struct prune_item *item = &report->items[i];
		if (item->decision.keep)
			continue;
		bool published = item->checkpoint.state != CHECKPOINT_INCOMPLETE;
		item->status = published ? take_away(descriptor, item, gone[count], &one)
					 : remove_incomplete(directory, &item->checkpoint, &one);
		note(&first, err, item->status, &one);
		if (published && item->status == STATUS_OK && !item->decision.keep) {
			names[count] = gone[count];
			items[count++] = item;
		}
	}
	enum status deleted = remove_delete(descriptor, directory, names, count, statuses, &one);
	note(&first, err, deleted, &one);
	if (deleted == STATUS_OK)
		note(&first, err,
			remove_finish(descriptor, directory,
				&(struct remove_scope){.choice = &layout_ours}, &report->leftovers,
				&one),
			&one);
	for (size_t i = 0; i < count; i++)
		items[i]->status = statuses[i];
	free(gone);
	free(names);
	free(statuses);
	free(items);
	return first;
}

enum status checkpoint_prune(const char *directory, const struct prune_request *request,
	struct prune_report *report, struct error *err)
{
	struct checkpoint_list list = {0};
	struct keep_moment moment = {.now = request->now};
	int descriptor;
	bool met = true;
	*report = (struct prune_report){0};
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	report->absent = status == STATUS_NO;
	if (status != STATUS_OK)
		return report->absent ? STATUS_OK : status;
	if (!request->dry_run)
		status = prune_lock(directory, descriptor, request->wait, err);
	if (status == STATUS_OK && request->policy.min_free)
		status = prune_measure_free(directory, descriptor, &moment.free, err);
	if (status == STATUS_OK)
		status = checkpoint_list(directory, &layout_ours, &list, NULL, err);
	if (status == STATUS_OK)
		status = keep_check_metric(&request->policy, list.items, list.count, err);
	if (status != STATUS_OK)
		goto out;
	decide(&list, &request->policy, &moment, report, &met);
	if (request->dry_run) {
		report->leftovers = list.removed;
	} else {
		status = confirm_newest(directory, report, err);
		if (status != STATUS_OK)
			goto out;
		status = remove_all(directory, descriptor, report, err);
	}
	if (status == STATUS_OK && !met)
		status = prune_unmet(directory, &request->policy, err);
out:
	checkpoint_list_release(&list);
	close(descriptor);
	return status;
}
