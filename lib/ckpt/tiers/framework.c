/* SPDX-License-Identifier: MIT */
/* Copying checkpoints of frameworks, which have no manifest. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/copying.h"
#include "ckpt/directory.h"
#include "ckpt/layout/structure.h"
#include "ckpt/remove.h"
#include "ckpt/scan.h"
#include "ckpt/tree.h"

#define STAGING ".ckpt-copying-"
/* Bytes. TensorFlow's tracker lists all checkpoints; the others are short. */
#define TRACKER_LIMIT ((size_t)64 << 20)

/* Find the files of the item, without checksums. STATUS_NO: something in it cannot be copied.
 * STATUS_TEMPORARY: some files are gone. */
static enum status find_files(const struct scan *scan, const struct scan_item *item,
	struct scan_files *files, struct error *err)
{
	enum status status = scan_files(scan, item, files, NULL, err);
	if (status != STATUS_OK)
		return error_prefix(err, "%s", scan->directory);
	if (files->root < 0 && files->list.count != item->count)
		return error_set(err, STATUS_TEMPORARY, "some of %s/%s is gone", scan->directory,
			item->checkpoint.name);
	return STATUS_OK;
}

static int files_at(const struct scan_files *files, const struct scan *scan)
{
	return files->root >= 0 ? files->root : scan->descriptor;
}

/* The item of this name; NULL: there is none. */
static const struct scan_item *find_item(const struct scan *scan, const char *name)
{
	for (size_t i = 0; i < scan->count; i++)
		if (strcmp(scan->items[i].checkpoint.name, name) == 0)
			return &scan->items[i];
	return NULL;
}

/* Whether `whole` has each of these files with the same content. */
static bool is_part_of(const struct manifest *files, const struct manifest *whole)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct manifest_file *same = structure_find(whole, files->files[i].name);
		if (!same || strcmp(same->checksum, files->files[i].checksum) != 0)
			return false;
	}
	return true;
}

/* STATUS_USAGE: DEST has checkpoints of another layout. (A DIR with two cannot be detected.) */
static enum status check_destination(
	const char *destination, const struct layout_choice *choice, struct error *err)
{
	struct layout_choice there;
	struct scan ours = {.directory = destination, .choice = &layout_ours};
	enum status status = layout_detect(destination, &there, err);
	if (status != STATUS_OK)
		return status;
	bool other = !layout_is_native(&there) && there.layout != choice->layout;
	if (layout_is_native(&there)) {
		status = scan_open(&ours, err);
		if (status == STATUS_OK)
			status = scan_names(&ours, err);
		other = status == STATUS_OK && ours.part_count > 0;
		scan_close(&ours);
	}
	if (status == STATUS_OK && other && choice->layout != &layout_pattern)
		return error_set(err, STATUS_USAGE,
			"%s holds checkpoints of the layout %s, and a copy would bring one of %s: "
			"name another directory",
			destination, layout_name(&there), layout_name(choice));
	return status == STATUS_NO ? STATUS_OK : status;
}

/* If DEST has a checkpoint of this name, compare it. STATUS_NO: it differs, and stays. */
static enum status look_at_destination(struct copying *copying, const struct scan *there,
	const char *name, bool *same, struct error *err)
{
	struct scan_files files = {.root = -1};
	const struct scan_item *item = find_item(there, name);
	*same = false;
	if (!item)
		return STATUS_OK;
	enum status status = find_files(there, item, &files, err);
	if (status == STATUS_OK)
		status = tree_record(files_at(&files, there), &files.list, err);
	*same = status == STATUS_OK && manifest_same_files(&files.list, copying->manifest);
	/* A copy of several files that was killed may have published some of them. */
	if (status == STATUS_OK && !*same &&
		(files.root >= 0 || !is_part_of(&files.list, copying->manifest)))
		status = error_set(err, STATUS_NO,
			"%s/%s is there already with other content; it stays as it is",
			copying->destination, name);
	scan_files_release(&files);
	return status;
}

/*
 * Make, open and lock a new temporary directory, with the finished files of an earlier copy. Where
 * locks have no effect, that copy may be alive: then it does not find its directory any more.
 */
static enum status begin(struct copying *copying, const struct scan *there, struct error *err)
{
	const struct remove_scope scope = {there->choice, copying->staging};
	char gone[CKPT_REMOVED_SIZE];
	enum status status = copying_open(copying, err);
	int old = copying->root;
	copying->root = -1;
	/* If its name is too long to be renamed away, begin with nothing. */
	if (status == STATUS_OK && old >= 0)
		status = ckpt_name_removed(gone, copying->staging, copying->inode)
				 ? remove_begin(there->descriptor, copying->staging, copying->inode,
					   gone, err)
				 : file_remove_tree(copying->path, err);
	if (status == STATUS_OK && mkdir(copying->path, 0777) < 0)
		status = errno == EEXIST ? error_set(err, STATUS_NO, "%s is there", copying->path)
					 : error_errno(err, errno, "make %s", copying->path);
	if (status == STATUS_OK)
		status = copying_open(copying, err);
	/* Another copy has just made it, or taken it away. */
	if (status == STATUS_OK &&
		(copying->root < 0 || copying_confirm(copying, err) != STATUS_OK))
		status = STATUS_NO;
	copying->again = status == STATUS_NO;
	if (status == STATUS_OK && old >= 0)
		copying_take_over(copying, old);
	if (old >= 0)
		close(old);
	if (status == STATUS_OK)
		status = remove_finish(there->descriptor, copying->destination, &scope, NULL, err);
	return status;
}

/*
 * Set the times of the files in root, and of directories in it, to those of the original, so that a
 * prune decides the same in DEST.
 */
static void set_times(const struct copying *copying, int root, int64_t changed)
{
	const struct timespec newest = {changed / 1000, changed % 1000 * 1000000};
	const struct timespec both[2] = {{.tv_nsec = UTIME_OMIT}, newest};
	for (size_t i = 0; i < copying->manifest->count; i++) {
		const struct manifest_file *file = &copying->manifest->files[i];
		const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, file->modified};
		char name[4096];
		utimensat(root, file->name, times, AT_SYMLINK_NOFOLLOW);
		snprintf(name, sizeof(name), "%s", file->name);
		for (char *slash = strrchr(name, '/'); slash; slash = strrchr(name, '/')) {
			*slash = '\0';
			utimensat(root, name, both, AT_SYMLINK_NOFOLLOW);
		}
	}
	if (root == copying->root)
		futimens(root, both);
}

static bool is_listed(const struct scan *scan, const char *entry)
{
	for (size_t i = 0; i < scan->part_count; i++)
		if (strcmp(scan->parts[i].entry, entry) == 0)
			return true;
	return false;
}

/* Publish the files with new times: a prune must not remove some before the last one is there. */
static enum status publish_files(
	struct copying *copying, const struct scan *there, int64_t changed, struct error *err)
{
	const int destination = there->descriptor;
	for (size_t i = 0; i < copying->manifest->count; i++) {
		const char *name = copying->manifest->files[i].name;
		utimensat(copying->root, name, NULL, AT_SYMLINK_NOFOLLOW);
		int code = file_rename_new(copying->root, name, destination, name);
		/* Another copy has published it; look_at_destination may have compared it. */
		copying->again = code == EEXIST && !is_listed(there, name);
		if (code == EEXIST && !copying->again) {
			utimensat(destination, name, NULL, AT_SYMLINK_NOFOLLOW);
			code = unlinkat(copying->root, name, 0) < 0 ? errno : 0;
		}
		if (code)
			return error_errno(err, code, "make %s/%s", copying->destination, name);
	}
	set_times(copying, destination, changed);
	if (unlinkat(destination, copying->staging, AT_REMOVEDIR) < 0)
		return error_errno(err, errno, "remove %s", copying->path);
	return STATUS_OK;
}

static enum status publish_directory(
	struct copying *copying, int destination, const char *name, struct error *err)
{
	struct stat st;
	int code = file_rename_new(destination, copying->staging, destination, name);
	copying->again = code == EEXIST || code == ENOTEMPTY;
	if (code)
		return error_errno(err, code, "rename %s to %s", copying->path, name);
	if (fstatat(destination, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		st.st_ino != copying->inode) {
		/* Another copy has just put its own there: rename it back. */
		(void)file_rename_new(destination, name, destination, copying->staging);
		return error_set(
			err, STATUS_TEMPORARY, "another copy into %s is at work", copying->path);
	}
	return STATUS_OK;
}

static enum status publish(struct copying *copying, const struct scan *there,
	const struct scan_item *item, bool directory, struct error *err)
{
	enum status status = copying_confirm(copying, err);
	if (status == STATUS_OK && !directory) {
		status = publish_files(copying, there, item->changed, err);
	} else if (status == STATUS_OK) {
		set_times(copying, copying->root, item->changed);
		status = publish_directory(copying, there->descriptor, item->checkpoint.name, err);
	}
	if (status == STATUS_OK)
		status = file_sync_directory(copying->destination, err);
	copying->answer->copied = status == STATUS_OK;
	return status;
}

/* Check that the original has not changed since its checksums were computed. */
static enum status check_unchanged(const struct scan *here, const struct scan_item *item,
	const struct scan_files *before, struct error *err)
{
	struct scan_files now = {.root = -1};
	struct error why = {0};
	bool same = find_files(here, item, &now, &why) == STATUS_OK &&
		    tree_is_unchanged(&before->list, &now.list, &why);
	scan_files_release(&now);
	if (same)
		return STATUS_OK;
	return error_set(err, STATUS_TEMPORARY, "%s/%s changed while it was copied: %s",
		here->directory, item->checkpoint.name, why.text);
}

static enum status copy_once(struct copying *copying, const struct scan *here,
	const struct scan_item *item, const struct scan_files *files, struct error *err)
{
	bool same;
	const char *name = item->checkpoint.name;
	struct scan there = {.directory = copying->destination,
		.choice = here->choice,
		.settled = here->settled};
	enum status status = scan_open(&there, err);
	if (status == STATUS_OK)
		status = scan_read(&there, err);
	if (status == STATUS_OK)
		status = look_at_destination(copying, &there, name, &same, err);
	if (status == STATUS_OK && !same) {
		status = begin(copying, &there, err);
		if (status == STATUS_OK)
			status = copying_bring(copying, err);
		/* STATUS_DAMAGED means here that the original has changed; find out which file. */
		if (status == STATUS_OK || status == STATUS_DAMAGED) {
			enum status changed = check_unchanged(here, item, files, err);
			status = changed == STATUS_OK ? status : changed;
		}
		if (status == STATUS_OK)
			status = publish(copying, &there, item, files->root >= 0, err);
	} else if (status == STATUS_OK) {
		/* Remove an unfinished copy of a checkpoint that another copy has finished. */
		status = copying_open(copying, err);
		if (status == STATUS_OK && copying->root >= 0 && files->root < 0)
			set_times(copying, there.descriptor, item->changed);
		if (status == STATUS_OK && copying->root >= 0)
			status = file_remove_tree(copying->path, err);
		if (status == STATUS_OK)
			status = file_sync_directory(copying->destination, err);
	}
	copying_close(copying);
	scan_close(&there);
	return status;
}

/* Whether there is a tracker to copy. */
static bool has_tracker(const struct layout *layout)
{
	return layout->tracker && !layout->tracker_is_checkpoint;
}

/* Read the tracker in DIR. text stays empty if it does not name this step. */
static enum status read_tracker(
	const struct scan *here, uint64_t step, struct text *text, struct error *err)
{
	const struct layout *layout = here->choice->layout;
	struct layout_tracker before, after = {0};
	if (!has_tracker(layout))
		return STATUS_OK;
	enum status status = scan_track(here, &before, err);
	if (status != STATUS_OK || !before.named || before.step != step)
		return status;
	char *path = ckpt_directory_path(here->directory, layout->tracker);
	status = file_read_whole(path, TRACKER_LIMIT, text, err);
	free(path);
	if (status == STATUS_OK)
		status = scan_track(here, &after, err);
	/* If the training wrote it since then, it may name a checkpoint that is not copied. */
	if (!after.named || after.step != step)
		text_release(text);
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status track_destination(const struct copying *copying, const struct scan *here,
	struct layout_tracker *tracker, struct error *err)
{
	struct scan destination = {.directory = copying->destination, .choice = here->choice};
	enum status status = scan_open(&destination, err);
	if (status == STATUS_OK)
		status = scan_track(&destination, tracker, err);
	scan_close(&destination);
	return status;
}

/* Write the tracker of DEST, unless another copy has just written one that names a later step. */
static enum status write_tracker(struct copying *copying, const struct scan *here, uint64_t step,
	const struct text *text, struct error *err)
{
	struct layout_tracker there = {0};
	char name[LAYOUT_NAME_SIZE];
	/* If we are killed, the unfinished file must not look like one of the framework. */
	snprintf(name, sizeof(name), STAGING "tracker.%" PRIu64, step);
	char *part = ckpt_directory_path(copying->destination, name);
	char *to = ckpt_directory_path(copying->destination, here->choice->layout->tracker);
	enum status status =
		file_write_whole(part, text->data, text->length, file_new_mode(), true, err);
	if (status == STATUS_OK)
		status = track_destination(copying, here, &there, err);
	bool later = there.named && there.step >= step;
	if (status == STATUS_OK && !later && rename(part, to) < 0)
		status = error_errno(err, errno, "rename %s to %s", part, to);
	if (status != STATUS_OK || later)
		unlink(part);
	if (status == STATUS_OK)
		status = file_sync_directory(copying->destination, err);
	free(part);
	free(to);
	return status;
}

/*
 * Copy the tracker if it named the checkpoint before the copy (then text has it) or does now: the
 * training may save during the copy.
 */
static enum status copy_tracker(struct copying *copying, const struct scan *here,
	const struct checkpoint *item, struct text *text, struct error *err)
{
	char *warning = copying->answer->warning;
	const size_t size = sizeof(copying->answer->warning);
	const char *tracker = here->choice->layout->tracker;
	struct layout_tracker there = {0};
	if (!has_tracker(here->choice->layout))
		return STATUS_OK;
	enum status status = text->length ? STATUS_OK : read_tracker(here, item->step, text, err);
	if (status == STATUS_OK)
		status = track_destination(copying, here, &there, err);
	if (status != STATUS_OK || (there.named && there.step >= item->step))
		return status;
	if (text->length && !strchr(text_string(text), '/'))
		return write_tracker(copying, here, item->step, text, err);
	if (text->length)
		snprintf(warning, size,
			"%.120s/%s names a path, and was not copied: write it by hand",
			copying->directory, tracker);
	else if (there.named)
		snprintf(warning, size,
			"%.90s/%s still names %.40s: write it by hand to resume from %.40s",
			copying->destination, tracker, there.name, item->name);
	return STATUS_OK;
}

/* Read the checkpoint to copy, and compute its checksums. */
static enum status read_original(struct copying *copying, struct scan *here, const char *name,
	const struct scan_item **item, struct scan_files *files, struct error *err)
{
	enum status status = scan_read(here, err);
	if (status == STATUS_OK)
		status = ckpt_directory_confirm(here->directory, here->descriptor, err);
	if (status != STATUS_OK)
		return status;
	*item = find_item(here, name);
	if (!*item)
		return error_set(err, STATUS_NO, "%s/%s is gone", here->directory, name);
	const struct checkpoint *found = &(*item)->checkpoint;
	if (found->state != CHECKPOINT_COMPLETE)
		return error_set(err, checkpoint_status(found), "%s/%s is %s and not copied: %s",
			here->directory, name, checkpoint_state_name(found->state), found->why);
	status = find_files(here, *item, files, err);
	if (status == STATUS_OK)
		status = tree_record(files_at(files, here), &files->list, err);
	files->list.step = found->step;
	copying->transfer.from = files_at(files, here);
	copying->manifest = &files->list;
	copying->answer->files = files->list.count;
	copying->answer->bytes = manifest_bytes(&files->list);
	return status;
}

enum status copying_framework(struct copying *copying, const struct layout_choice *choice,
	const struct checkpoint *item, struct error *err)
{
	struct scan here = {.directory = copying->directory,
		.choice = choice,
		.settled = LAYOUT_SETTLED,
		.descriptor = -1};
	struct scan_files files = {.root = -1};
	const struct scan_item *found = NULL;
	struct text tracker = {0};
	if ((size_t)snprintf(copying->staging, sizeof(copying->staging), STAGING "%s",
		    item->name) >= sizeof(copying->staging))
		return error_set(err, STATUS_USAGE, "%s: the name is too long", item->name);
	copying->path = ckpt_directory_path(copying->destination, copying->staging);
	enum status status = check_destination(copying->destination, choice, err);
	if (status == STATUS_OK)
		status = scan_open(&here, err);
	if (status == STATUS_OK)
		status = read_tracker(&here, item->step, &tracker, err);
	if (status == STATUS_OK)
		status = read_original(copying, &here, item->name, &found, &files, err);
	if (status == STATUS_OK)
		status = ckpt_directory_make(copying->destination, err);
	copying->again = status == STATUS_OK;
	for (int tries = 0; copying->again && tries < COPYING_TRIES; tries++) {
		copying->again = false;
		status = copy_once(copying, &here, found, &files, err);
	}
	if (copying->again)
		status = error_set(err, STATUS_TEMPORARY,
			"%s kept changing during the copy; try again", copying->path);
	if (status == STATUS_OK)
		status = copy_tracker(copying, &here, &found->checkpoint, &tracker, err);
	text_release(&tracker);
	scan_files_release(&files);
	scan_close(&here);
	free(copying->path);
	return status;
}
