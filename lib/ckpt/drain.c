/* SPDX-License-Identifier: MIT */
/* Removing checkpoints from the first tier when they are safe on the second. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/copy.h"
#include "ckpt/directory.h"
#include "ckpt/native.h"
#include "ckpt/prune_remove.h"
#include "ckpt/publish.h"
#include "ckpt/scan.h"
#include "ckpt/tree.h"

/*
 * Whether both paths lead to the same directory, perhaps through two mounts: then the manifest is
 * the same file, with the same time of change. (To look whether the copy vanishes with the original
 * is not enough, because a cache may still show it for a while.)
 */
static bool is_one(const char *directory, const char *destination, const struct checkpoint *here,
	const struct checkpoint *there)
{
	struct stat a, b;
	char path[2][PATH_MAX];
	snprintf(path[0], PATH_MAX, "%s/%s/" CKPT_MANIFEST, directory, here->name);
	snprintf(path[1], PATH_MAX, "%s/%s/" CKPT_MANIFEST, destination, there->name);
	return here->inode == there->inode && stat(path[0], &a) == 0 && stat(path[1], &b) == 0 &&
	       a.st_ino == b.st_ino && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
	       a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

static enum status sync_file(int root, const char *name, struct error *err)
{
	int descriptor = openat(root, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	enum status status = STATUS_OK;
	if (descriptor < 0 || fsync(descriptor) < 0)
		status = error_errno(err, errno, "sync %s", name);
	if (descriptor >= 0)
		close(descriptor);
	return status;
}

/* Make the copy durable: its writer may have been killed before it synced, or never do it. */
static enum status sync_copy(
	const char *destination, const struct checkpoint *there, struct error *err)
{
	struct manifest files = {0};
	char *path = ckpt_directory_path(destination, there->name);
	int root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum status status = root < 0 ? error_errno(err, errno, "open directory %s", path)
				      : tree_find(root, "", true, &files, NULL, err);
	for (size_t i = 0; i < files.count && status == STATUS_OK; i++)
		status = sync_file(root, files.files[i].name, err);
	if (status == STATUS_OK)
		status = sync_file(root, CKPT_MANIFEST, err);
	if (status == STATUS_OK)
		status = file_sync_directory(destination, err);
	if (root >= 0)
		close(root);
	manifest_release(&files);
	free(path);
	return status;
}

/*
 * Read the copy in DEST and compare it; if it is the same, make it durable. STATUS_NO: it is
 * missing or differs; err says why.
 */
static enum status compare(const char *directory, const char *destination,
	const struct checkpoint *item, struct error *err)
{
	struct checkpoint here, there;
	struct manifest ours = {0}, theirs = {0};
	enum status status = inspect_step(directory, item->step, false, &here, &ours, err);
	if (status == STATUS_OK && here.state != CHECKPOINT_COMPLETE)
		status = error_set(err, STATUS_NO, "no longer complete");
	if (status == STATUS_OK) {
		status = inspect_step(destination, item->step, true, &there, &theirs, err);
		if (status == STATUS_NO)
			error_set(err, STATUS_NO, "not in %s", destination);
	}
	if (status == STATUS_OK && there.state == CHECKPOINT_UNKNOWN)
		status = error_set(
			err, there.status, "%s/%s: %s", destination, there.name, there.why);
	if (status == STATUS_OK && there.state != CHECKPOINT_COMPLETE)
		status = error_set(err, STATUS_NO, "%s in %s: %s",
			checkpoint_state_name(there.state), destination, there.why);
	if (status == STATUS_OK && is_one(directory, destination, &here, &there))
		status = error_set(err, STATUS_NO, "the same directory as in %s", destination);
	if (status == STATUS_OK && !manifest_same_files(&ours, &theirs))
		status = error_set(err, STATUS_NO, "other content in %s", destination);
	if (status == STATUS_OK)
		status = sync_copy(destination, &there, err);
	manifest_release(&ours);
	manifest_release(&theirs);
	return status;
}

struct draining {
	const char *directory, *destination;
};

/*
 * After the original was renamed away, check that the copy is still there. If not, it was the
 * original under another path: STATUS_USAGE, and the original gets its name back.
 */
static enum status check_copy(void *context, struct prune_item *item, struct error *err)
{
	const struct draining *draining = context;
	struct checkpoint there;
	enum status status = inspect_step(
		draining->destination, item->checkpoint.step, false, &there, NULL, err);
	if (status == STATUS_OK && there.state == CHECKPOINT_COMPLETE)
		return STATUS_OK;
	if (status == STATUS_OK && there.state == CHECKPOINT_UNKNOWN)
		return error_set(err, there.status, "%s/%s: %s", draining->destination, there.name,
			there.why);
	if (status != STATUS_OK && status != STATUS_NO)
		return status;
	prune_decide(item, true, "its copy disappeared with it: are both the same directory?");
	return error_set(err, STATUS_USAGE,
		"%s: the copy of %s disappeared when the original was renamed; is it the same "
		"directory as %s? The original was given back its name",
		draining->destination, item->checkpoint.name, draining->directory);
}

static enum status decide_drain(const struct draining *draining, bool newest_too,
	const struct scan *scan, struct prune_report *report, struct error *err)
{
	enum status first = STATUS_OK;
	size_t newest = scan->count;
	struct error why;
	for (size_t i = 0; i < scan->count; i++)
		if (scan->items[i].checkpoint.state == CHECKPOINT_COMPLETE)
			newest = i;
	report->items = xcalloc(scan->count + 1, sizeof(*report->items));
	report->count = scan->count;
	for (size_t i = 0; i < scan->count; i++) {
		struct prune_item *item = &report->items[i];
		item->checkpoint = scan->items[i].checkpoint;
		if (item->checkpoint.state != CHECKPOINT_COMPLETE) {
			prune_decide(item, true, checkpoint_state_name(item->checkpoint.state));
			continue;
		}
		if (i == newest && !newest_too) {
			prune_decide(item, true, "the newest complete one");
			continue;
		}
		if (item->checkpoint.pinned) {
			prune_decide(item, true, "pinned");
			continue;
		}
		enum status status = compare(
			draining->directory, draining->destination, &item->checkpoint, &why);
		prune_decide(item, status != STATUS_OK,
			status == STATUS_OK ? "its copy is verified" : why.text);
		if (status != STATUS_OK && status != STATUS_NO && first == STATUS_OK)
			first = error_set(err, status, "%s", why.text);
	}
	return first;
}

/*
 * Repair the link "latest" if its checkpoint was removed. A link that is not ours stays. A commit
 * may have set the link since we read it: if we remove that one, publish_latest finds the new step.
 */
static void repair_latest(const char *directory, int descriptor)
{
	char target[CKPT_NAME_SIZE], warning[256];
	struct stat st;
	ssize_t length = readlinkat(descriptor, CKPT_LATEST, target, sizeof(target) - 1);
	if (length < 0)
		return;
	target[length] = '\0';
	if (ckpt_name_read(target).kind != CKPT_NAME_STEP ||
		fstatat(descriptor, target, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	(void)unlinkat(descriptor, CKPT_LATEST, 0);
	publish_latest(directory, descriptor, warning, sizeof(warning));
	(void)file_sync_directory(directory, NULL);
}

enum status checkpoint_drain(const char *directory, const char *destination, bool newest_too,
	const struct prune_request *request, struct prune_report *report, struct error *err)
{
	struct draining draining = {directory, destination};
	const struct prune_check check = {.after = check_copy, .context = &draining};
	struct scan scan = {.directory = directory, .choice = &layout_ours, .descriptor = -1};
	struct error one;
	*report = (struct prune_report){0};
	enum status status = copy_check_places(directory, destination, err);
	if (status == STATUS_OK)
		status = prune_begin(&scan, request, err);
	if (status == STATUS_OK)
		status = scan_read(&scan, err);
	if (status == STATUS_OK && scan.count == 0)
		status = ckpt_directory_confirm(directory, scan.descriptor, err);
	if (status == STATUS_OK)
		status = decide_drain(&draining, newest_too, &scan, report, err);
	if (request->dry_run)
		report->leftovers = scan.removed;
	if (!request->dry_run && report->count) {
		/* Checkpoints that could not be compared are kept; remove the others. */
		enum status removed = prune_remove(&scan, &check, report, &one);
		if (removed != STATUS_OK && status == STATUS_OK)
			status = error_set(err, removed, "%s", one.text);
		repair_latest(directory, scan.descriptor);
	}
	scan_close(&scan);
	return status;
}
