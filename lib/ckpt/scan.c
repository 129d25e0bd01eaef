/* SPDX-License-Identifier: MIT */
#include "ckpt/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/directory.h"
#include "ckpt/layout/shards.h"
#include "ckpt/layout/structure.h"
#include "ckpt/parallel.h"
#include "ckpt/tree.h"

/* There may be more than processors: they mostly wait for a shared filesystem. */
#define THREADS_MAX 8
#define FEW	    4 /* up to this number of checkpoints, more threads are not worth it */

/* We give up when a checkpoint has been replaced this number of times while we looked. */
#define TRIES 8

/* Release parts and items. */
static void forget(struct scan *scan)
{
	for (size_t i = 0; i < scan->part_count; i++)
		free(scan->parts[i].entry);
	free(scan->parts);
	free(scan->items);
	scan->parts = NULL;
	scan->items = NULL;
	scan->part_count = scan->count = scan->removed = 0;
	scan->vanished = false;
}

/* STATUS_USAGE: DIR is a checkpoint of a framework, not a directory of checkpoints. */
static enum status refuse_inside(const struct scan *scan, struct error *err)
{
	static const struct {
		const char *file;
		const char *whose;
	} signs[] = {{"trainer_state.json", "Hugging Face's"}, {".metadata", "PyTorch's"}};
	const struct layout *layout = scan->choice->layout;
	bool inside = layout == &layout_deepspeed || layout == &layout_dcp;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && inside; i++)
		if (faccessat(scan->descriptor, signs[i].file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return error_set(err, STATUS_USAGE,
				"%s is itself a checkpoint of %s (it holds %s): name the directory "
				"above it",
				scan->directory, signs[i].whose, signs[i].file);
	return STATUS_OK;
}

enum status scan_open(struct scan *scan, struct error *err)
{
	enum status status = ckpt_directory_open(scan->directory, &scan->descriptor, err);
	if (status != STATUS_OK)
		scan->descriptor = -1;
	return status == STATUS_OK ? refuse_inside(scan, err) : status;
}

void scan_close(struct scan *scan)
{
	forget(scan);
	if (scan->descriptor >= 0)
		close(scan->descriptor);
	scan->descriptor = -1;
}

static int by_step(const void *a, const void *b)
{
	const struct scan_part *x = a, *y = b;
	if (x->read.group != y->read.group)
		return x->read.group < y->read.group ? -1 : 1;
	if (x->read.step != y->read.step)
		return x->read.step < y->read.step ? -1 : 1;
	if (x->read.version != y->read.version)
		return x->read.version < y->read.version ? -1 : 1;
	size_t shorter = x->read.length < y->read.length ? x->read.length : y->read.length;
	int order = memcmp(x->entry, y->entry, shorter);
	if (order == 0 && x->read.length != y->read.length)
		order = x->read.length < y->read.length ? -1 : 1;
	return order ? order : strcmp(x->entry, y->entry);
}

static bool is_same(const struct scan_part *a, const struct scan_part *b)
{
	return a->read.length == b->read.length && memcmp(a->entry, b->entry, a->read.length) == 0;
}

static void conclude(struct scan_item *item, enum checkpoint_state state, const struct error *why)
{
	item->checkpoint.state = state;
	item->checkpoint.status = why ? why->status : STATUS_OK;
	snprintf(
		item->checkpoint.why, sizeof(item->checkpoint.why), "%.255s", why ? why->text : "");
}

static void note_change(struct scan_item *item, const struct timespec *time)
{
	int64_t changed = (int64_t)time->tv_sec * 1000 + time->tv_nsec / 1000000;
	if (changed > item->changed)
		item->changed = changed;
}

static bool is_marked(const struct layout *layout, const struct manifest *files)
{
	for (const char *const *mark = layout->marks; mark && *mark; mark++)
		if (structure_find(files, *mark))
			return true;
	return !layout->marks;
}

enum status scan_files(const struct scan *scan, const struct scan_item *item,
	struct scan_files *files, struct tree_notes *notes, struct error *err)
{
	struct stat st;
	for (size_t i = 0; i < item->count; i++) {
		const char *entry = scan->parts[item->first + i].entry;
		if (fstatat(scan->descriptor, entry, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue;
			return error_errno(err, errno, "look at %s", entry);
		}
		if (S_ISDIR(st.st_mode) && item->count == 1) {
			files->root = openat(scan->descriptor, entry,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (files->root < 0 && errno == ENOENT)
				continue;
			if (files->root < 0)
				return error_errno(err, errno, "open %s", entry);
			return tree_find(files->root, "", false, &files->list, notes, err);
		}
		if (!S_ISREG(st.st_mode))
			return error_set(err, STATUS_NO, "%s is not a file", entry);
		struct manifest_file *file =
			manifest_add(&files->list, entry, (uint64_t)st.st_size);
		file->modified = st.st_mtim;
		file->inode = st.st_ino;
	}
	manifest_sort(&files->list);
	return STATUS_OK;
}

void scan_files_release(struct scan_files *files)
{
	if (files->root >= 0)
		close(files->root);
	files->root = -1;
	manifest_release(&files->list);
}

/* Note the inode of the item, and when it changed last. */
static void note_files(
	struct scan_item *item, const struct scan_files *files, const struct tree_notes *notes)
{
	struct stat st;
	if (files->root >= 0 && fstat(files->root, &st) == 0)
		item->checkpoint.inode = st.st_ino;
	else if (files->root < 0 && files->list.count)
		item->checkpoint.inode = files->list.files[0].inode;
	note_change(item, &notes->changed);
	for (size_t i = 0; i < files->list.count; i++)
		note_change(item, &files->list.files[i].modified);
}

int64_t scan_quiet(const struct scan *scan, const struct scan_item *item)
{
	return clock_utc() + scan->ahead - item->changed;
}

/* Conclude that it is being written, if it changed recently; otherwise that it is damaged. */
static void conclude_not_complete(
	const struct scan *scan, struct scan_item *item, const struct error *why)
{
	int64_t quiet = scan_quiet(scan, item);
	struct text age = {0};
	struct error both;
	if (quiet >= scan->settled) {
		conclude(item, CHECKPOINT_DAMAGED, why);
		return;
	}
	text_add_age(&age, quiet);
	error_set(&both, STATUS_NO, "%s; changed %s ago", why->text, text_string(&age));
	conclude(item, CHECKPOINT_INCOMPLETE, &both);
	text_release(&age);
}

/* Check an item by the layout's rule and the tracker. It has one of the layout's marks. */
static enum status check_files(const struct scan *scan, const struct layout_item *look,
	struct scan_item *item, struct error *why)
{
	struct layout_found found = {0};
	const struct layout *layout = scan->choice->layout;
	enum status status = layout->check(look, &found, why);
	const struct layout_tracker *tracker = &scan->tracker;
	item->shards = found.shards;
	item->checkpoint.metrics = found.metrics;
	if (status == STATUS_OK && shards_decide(&found.shards, NULL, 0, why) == SHARDS_MISSING)
		status = STATUS_NO;
	item->whole = status == STATUS_OK;
	if (status == STATUS_OK && layout->tracker_commits && tracker->named &&
		look->step > tracker->step)
		status = error_set(why, STATUS_NO, "newer than %s, which %s names still",
			tracker->name, layout->tracker);
	return status;
}

static void inspect_once(const struct scan *scan, struct scan_item *item, bool *gone)
{
	const struct layout *layout = scan->choice->layout;
	struct tree_notes notes = {.part = layout->unfinished};
	struct scan_files files = {.root = -1};
	struct error why = {0};
	struct stat st;
	const char *entry = scan->parts[item->first].entry;
	enum status status = STATUS_OK;
	*gone = false;
	item->changed = 0;
	item->checkpoint.inode = 0;
	item->shards = (struct shards){0};
	item->whole = item->fewer = false;
	item->checkpoint.metrics = (struct metrics){0};
	if (fstatat(scan->descriptor, entry, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* Other files of it may still be there, because it is being removed. */
		*gone = errno == ENOENT;
		error_errno(&why, errno, "look at %s", entry);
		conclude(item, CHECKPOINT_UNKNOWN, &why);
		return;
	}
	bool directory = S_ISDIR(st.st_mode);
	if (S_ISLNK(st.st_mode))
		status = error_set(&why, STATUS_NO, "it is a symbolic link");
	else if (directory && !(layout->shape & LAYOUT_DIRECTORY))
		status = error_set(&why, STATUS_NO, "it is a directory");
	else if (!directory && !(layout->shape & LAYOUT_FILE))
		status = error_set(&why, STATUS_NO, "it is not a directory");
	if (status == STATUS_OK) {
		status = scan_files(scan, item, &files, &notes, &why);
		note_files(item, &files, &notes);
		*gone = status == STATUS_OK && files.root < 0 && files.list.count == 0;
	}
	if (status == STATUS_OK && directory && !is_marked(layout, &files.list))
		status = error_set(&why, STATUS_NO, "it holds nothing of %s", layout->title);
	if (status != STATUS_OK) {
		conclude(item, status == STATUS_NO ? CHECKPOINT_FOREIGN : CHECKPOINT_UNKNOWN, &why);
		goto out;
	}
	struct layout_item look = {.name = item->checkpoint.name,
		.step = item->checkpoint.step,
		.root = files.root >= 0 ? files.root : scan->descriptor,
		.directory = directory,
		.files = &files.list,
		.tracked = scan->tracker.named && item->checkpoint.step <= scan->tracker.step};
	if (*notes.found)
		status = error_set(&why, STATUS_NO, "%s is not finished", notes.found);
	else
		status = check_files(scan, &look, item, &why);
	item->checkpoint.files = files.list.count;
	item->checkpoint.bytes = manifest_bytes(&files.list);
	item->checkpoint.utc = item->changed ? item->changed : 1;
	if (status == STATUS_OK)
		conclude(item, CHECKPOINT_COMPLETE, NULL);
	else if (status == STATUS_NO)
		conclude_not_complete(scan, item, &why);
	else
		conclude(item, CHECKPOINT_UNKNOWN, &why);
out:
	scan_files_release(&files);
}

/* Inspect an item without comparing it with others. STATUS_NO: it is gone. */
static enum status inspect_alone(const struct scan *scan, struct scan_item *item, struct error *err)
{
	bool gone = false;
	const char *entry = scan->parts[item->first].entry;
	if (scan->choice->layout->inspect)
		return scan->choice->layout->inspect(
			scan->directory, entry, scan->contents, &item->checkpoint, err);
	/* It may only seem damaged because it is being changed, replaced or removed: look again. */
	for (int tries = 0; tries < TRIES; tries++) {
		struct stat st;
		inspect_once(scan, item, &gone);
		if (gone)
			return error_set(err, STATUS_NO, "%s/%s is gone", scan->directory,
				item->checkpoint.name);
		if (item->checkpoint.state == CHECKPOINT_UNKNOWN &&
			item->checkpoint.status == STATUS_TEMPORARY)
			continue;
		if (item->checkpoint.state == CHECKPOINT_COMPLETE || !item->checkpoint.inode ||
			(fstatat(scan->descriptor, entry, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				st.st_ino == item->checkpoint.inode))
			break;
	}
	return STATUS_OK;
}

struct shards_sibling scan_sibling(const struct scan_item *item, const struct scan_item *of)
{
	return (struct shards_sibling){.name = item->checkpoint.name,
		.shards = &item->shards,
		.whole = item->whole,
		.older = item->checkpoint.step < of->checkpoint.step};
}

/* Compare an item that seems complete with its siblings. */
static void compare(const struct scan *scan, struct scan_item *item)
{
	struct error why;
	size_t count = 0;
	if (item->checkpoint.state != CHECKPOINT_COMPLETE || !shards_any(&item->shards))
		return;
	struct shards_sibling *siblings = xcalloc(scan->count + 1, sizeof(*siblings));
	for (size_t i = 0; i < scan->count; i++)
		if (scan->items[i].first != item->first)
			siblings[count++] = scan_sibling(&scan->items[i], item);
	enum shards_answer answer = shards_decide(&item->shards, siblings, count, &why);
	if (answer != SHARDS_ALL)
		conclude(item, CHECKPOINT_UNPROVEN, &why);
	item->fewer = answer == SHARDS_FEWER;
	free(siblings);
}

enum status scan_inspect(const struct scan *scan, struct scan_item *item, struct error *err)
{
	enum status status = inspect_alone(scan, item, err);
	if (status == STATUS_OK)
		compare(scan, item);
	return status;
}

enum status scan_track(const struct scan *scan, struct layout_tracker *tracker, struct error *err)
{
	struct error why;
	*tracker = (struct layout_tracker){0};
	if (!scan->choice->layout->track)
		return STATUS_OK;
	enum status status = scan->choice->layout->track(scan->descriptor, tracker, &why);
	return status == STATUS_OK ? STATUS_OK
				   : error_set(err, status, "%s: %s", scan->directory, why.text);
}

enum status scan_names(struct scan *scan, struct error *err)
{
	struct file_names names = {0};
	const struct layout *layout = scan->choice->layout;
	forget(scan);
	/*
	 * Read the tracker before the list: with an older tracker, more checkpoints are protected.
	 */
	enum status status = scan_track(scan, &scan->tracker, err);
	if (status == STATUS_OK)
		status = file_read_names(scan->descriptor, scan->directory, &names, err);
	scan->parts = xcalloc(names.count + 1, sizeof(*scan->parts));
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		struct scan_part *part = &scan->parts[scan->part_count];
		uint64_t inode;
		const char *entry = ckpt_name_read_removed(names.names[i], &inode);
		if (entry) {
			scan->removed += layout_reads(scan->choice, entry, &part->read);
		} else if (layout_reads(scan->choice, names.names[i], &part->read)) {
			part->entry = xstrdup(names.names[i]);
			scan->part_count++;
		}
	}
	file_names_release(&names);
	/* The tracker is a checkpoint, too, which only the framework itself replaces. */
	if (status == STATUS_OK && layout->tracker_is_checkpoint && scan->tracker.named &&
		!*scan->tracker.name)
		scan->parts[scan->part_count++] = (struct scan_part){xstrdup(layout->tracker),
			{.step = scan->tracker.step, .length = strlen(layout->tracker)}};
	if (scan->part_count)
		qsort(scan->parts, scan->part_count, sizeof(*scan->parts), by_step);
	return status;
}

size_t scan_item(const struct scan *scan, size_t first, struct scan_item *item)
{
	const struct scan_part *part = &scan->parts[first];
	size_t next = first + 1;
	while (next < scan->part_count && is_same(part, &scan->parts[next]))
		next++;
	item->first = first;
	item->count = next - first;
	item->checkpoint.step = part->read.step;
	snprintf(item->checkpoint.name, sizeof(item->checkpoint.name), "%.*s",
		(int)part->read.length, part->entry);
	return next;
}

static enum status read_one(void *context, size_t i, struct error *err)
{
	struct scan *scan = context;
	enum status status = inspect_alone(scan, &scan->items[i], err);
	/* It was in the list, and is gone now. */
	if (status == STATUS_NO)
		scan->items[i].count = 0;
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status scan_read(struct scan *scan, struct error *err)
{
	size_t listed = 0;
	enum status status = scan_names(scan, err);
	scan->items = xcalloc(scan->part_count + 1, sizeof(*scan->items));
	for (size_t i = 0; i < scan->part_count && status == STATUS_OK;)
		i = scan_item(scan, i, &scan->items[listed++]);
	if (status == STATUS_OK)
		status = parallel(listed, listed > FEW ? THREADS_MAX : 1, read_one, scan, err);
	for (size_t i = 0; i < listed; i++) {
		if (!scan->items[i].count)
			continue;
		if (i != scan->count)
			scan->items[scan->count] = scan->items[i];
		scan->count++;
	}
	scan->vanished = scan->count < listed;
	for (size_t i = 0; i < scan->count && status == STATUS_OK; i++)
		compare(scan, &scan->items[i]);
	return status;
}
