/* SPDX-License-Identifier: MIT */
#include "ckpt/prune_remove.h"

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
#include "ckpt/directory.h"
#include "ckpt/layout/structure.h"
#include "ckpt/marks.h"
#include "ckpt/names.h"
#include "ckpt/remove.h"
#include "ckpt/staging.h"

static enum status lock(const struct scan *scan, int64_t wait, struct error *err)
{
	int64_t deadline = clock_after(wait);
	while (flock(scan->descriptor, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return STATUS_OK;
		if (clock_now() >= deadline)
			return error_set(err, STATUS_TEMPORARY,
				"another prune of %s is still at work; try again later",
				scan->directory);
		clock_sleep_until(clock_now() + clock_jitter(50));
	}
	return STATUS_OK;
}

enum status prune_begin(struct scan *scan, const struct prune_request *request, struct error *err)
{
	enum status status = scan_open(scan, err);
	return status == STATUS_OK && !request->dry_run ? lock(scan, request->wait, err) : status;
}

void prune_decide(struct prune_item *item, bool keep, const char *why)
{
	item->decision = (struct keep_decision){.keep = keep};
	item->status = keep ? STATUS_OK : STATUS_TEMPORARY;
	snprintf(item->decision.why, sizeof(item->decision.why), "%.*s",
		(int)sizeof(item->decision.why) - 1, why);
}

/* Note a failure, if it is the first. */
static void note(
	enum status *first, struct error *kept, enum status status, const struct error *err)
{
	if (*first != STATUS_OK || status == STATUS_OK || status == STATUS_NO)
		return;
	*first = status;
	if (kept)
		*kept = *err;
}

static bool is_no_record(const char *name)
{
	return !ckpt_name_is_transient(name);
}

/* Delete the entries of an open directory that have names of this kind. */
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
 * Lock an incomplete checkpoint until descriptor is closed: a process that commits it or copies
 * into it needs the same lock. STATUS_NO: such a process has it, or the path leads to another
 * directory now.
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
 * Empty an unfinished directory through its descriptor, and remove it last. A `begin` that finds a
 * dead writer makes a new directory (not if sharded), so this one has no files of a new writer; and
 * if it is not empty, rmdir fails. The writers' records are removed last, so that other processes
 * see until then that the writers are gone. STATUS_NO: it is gone, or a live writer uses it.
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
		/* A `begin` that works in the empty directory writes its record again. */
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

/* Entries that were renamed away, and will be deleted. */
struct removal {
	const struct scan *scan;
	const struct prune_check *check;
	char (*names)[CKPT_REMOVED_SIZE]; /* the hidden names */
	struct prune_item **items;	  /* the item of each */
	size_t count;
	struct prune_report *report;
};

/* Rename an entry back. Not STATUS_OK: it keeps its hidden name. */
static enum status give_back(
	struct removal *removal, const char *gone, const char *entry, struct error *err)
{
	int directory = removal->scan->descriptor;
	if (file_rename_new(directory, gone, directory, entry) == 0)
		return STATUS_OK;
	int number = errno;
	removal->report->stranded = true;
	return error_set(err, STATUS_TEMPORARY,
		"%s: cannot rename %s back to %s: %s; do so yourself before the next prune, which "
		"deletes it",
		removal->scan->directory, gone, entry, strerror(number));
}

/*
 * Rename an entry away; if it is pinned, keep item. A process that pins it at the same time either
 * fails to find it, or we find the pin and rename the entry back. STATUS_NO: it is gone already.
 */
static enum status rename_away(struct removal *removal, struct prune_item *item, const char *entry,
	uint64_t inode, struct error *err)
{
	int directory = removal->scan->descriptor;
	char *gone = removal->names[removal->count];
	bool ours = layout_is_native(removal->scan->choice), pinned = false;
	enum status status = ours ? marks_read_pinned(directory, entry, &pinned, err) : STATUS_OK;
	if (status == STATUS_OK && !pinned) {
		status = remove_begin(directory, entry, inode, gone, err);
		if (status != STATUS_OK) {
			error_prefix(err, "%s", removal->scan->directory);
			return status;
		}
		if (ours)
			status = marks_read_pinned(directory, gone, &pinned, err);
		if (status == STATUS_OK && !pinned && removal->check->after)
			status = removal->check->after(removal->check->context, item, err);
		/* If we cannot read whether it is pinned, we do not delete it. */
		struct error stranded;
		if (status == STATUS_OK && !pinned)
			removal->items[removal->count++] = item;
		else if (give_back(removal, gone, entry, &stranded) != STATUS_OK)
			return error_set(err, stranded.status, "%s", stranded.text);
	}
	if (status == STATUS_OK && pinned) {
		item->decision = (struct keep_decision){
			.keep = true, .must = true, .why = "pinned since it was listed"};
		item->checkpoint.pinned = true;
	}
	return status;
}

/*
 * Rename a framework's checkpoint away; of several files first the one that makes it a checkpoint.
 */
static enum status take_away_parts(struct removal *removal, const struct scan_item *found,
	struct prune_item *item, struct error *err)
{
	const struct scan *scan = removal->scan;
	enum status status = STATUS_NO;
	struct scan_item now = *found;
	enum status looked = scan_inspect(scan, &now, err);
	/* It has changed since we decided, so the decision may be wrong. */
	if (looked != STATUS_OK || now.changed != found->changed ||
		now.checkpoint.inode != found->checkpoint.inode)
		return looked == STATUS_OK ? STATUS_NO : looked;
	for (int others = 0; others < 2; others++)
		for (size_t i = 0; i < found->count; i++) {
			struct stat st;
			const char *entry = scan->parts[found->first + i].entry;
			bool other = found->count > 1 && !structure_ends(entry, ".index");
			if (other != (others == 1) ||
				fstatat(scan->descriptor, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			enum status one = rename_away(removal, item, entry,
				found->count == 1 ? found->checkpoint.inode : st.st_ino, err);
			if (one == STATUS_OK && status == STATUS_NO)
				status = STATUS_OK;
			else if (one != STATUS_OK && one != STATUS_NO)
				return one;
		}
	return status;
}

static enum status take_away(struct removal *removal, const struct scan_item *found,
	struct prune_item *item, struct error *err)
{
	const struct scan *scan = removal->scan;
	if (item->checkpoint.state == CHECKPOINT_INCOMPLETE)
		return remove_incomplete(scan->directory, &item->checkpoint, err);
	if (scan->choice->layout->inspect)
		return rename_away(
			removal, item, item->checkpoint.name, item->checkpoint.inode, err);
	return take_away_parts(removal, found, item, err);
}

/*
 * Check for the last time; after a failure rename all back, of several files of a checkpoint that
 * one last that makes it a checkpoint.
 */
static enum status check_last(struct removal *removal, struct error *err)
{
	if (!removal->count || !removal->check->last)
		return STATUS_OK;
	enum status status = removal->check->last(removal->check->context, err);
	for (size_t i = removal->count; i-- > 0 && status != STATUS_OK;) {
		uint64_t inode;
		const char *gone = removal->names[i];
		(void)give_back(removal, gone, ckpt_name_read_removed(gone, &inode), err);
		removal->items[i]->status = status;
	}
	return status;
}

/* Delete what we have renamed away, then what earlier pruners have left. */
static enum status delete_all(struct removal *removal, struct error *err)
{
	const struct scan *scan = removal->scan;
	const struct remove_scope scope = {.choice = scan->choice};
	enum status status = check_last(removal, err);
	if (status != STATUS_OK)
		return status;
	const char **names = xcalloc(removal->count + 1, sizeof(*names));
	enum status *statuses = xcalloc(removal->count + 1, sizeof(*statuses));
	for (size_t i = 0; i < removal->count; i++)
		names[i] = removal->names[i];
	status = remove_delete(
		scan->descriptor, scan->directory, names, removal->count, statuses, err);
	for (size_t i = 0; i < removal->count; i++)
		if (statuses[i] != STATUS_OK)
			removal->items[i]->status = statuses[i];
	free(names);
	free(statuses);
	/* If the renames could not be synced, delete nothing more: a second sync may succeed
	 * although they are not on the disk. */
	return status == STATUS_OK && !removal->report->stranded
		       ? remove_finish(scan->descriptor, scan->directory, &scope,
				 &removal->report->leftovers, err)
		       : status;
}

enum status prune_remove(const struct scan *scan, const struct prune_check *check,
	struct prune_report *report, struct error *err)
{
	struct removal removal = {.scan = scan,
		.check = check,
		.names = xcalloc(scan->part_count + 1, sizeof(*removal.names)),
		.items = xcalloc(scan->part_count + 1, sizeof(struct prune_item *)),
		.report = report};
	struct error one;
	enum status first = STATUS_OK;
	for (size_t i = 0; i < report->count && !(check->after && first == STATUS_USAGE); i++) {
		struct prune_item *item = &report->items[i];
		if (!prune_is_due(item))
			continue;
		item->status = take_away(&removal, &scan->items[i], item, &one);
		note(&first, err, item->status, &one);
	}
	note(&first, err, delete_all(&removal, &one), &one);
	free(removal.names);
	free(removal.items);
	return first;
}
