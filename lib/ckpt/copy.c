/* SPDX-License-Identifier: MIT */
#include "ckpt/copying.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/directory.h"
#include "ckpt/native.h"
#include "ckpt/publish.h"
#include "ckpt/remove.h"
#include "ckpt/writer.h"

enum status copy_check_places(const char *directory, const char *destination, struct error *err)
{
	struct stat a, b;
	if (stat(directory, &a) == 0 && stat(destination, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino)
		return error_set(err, STATUS_USAGE, "%s and %s are the same directory", directory,
			destination);
	return STATUS_OK;
}

/* Look for the step in DEST. *there: it is the same. STATUS_NO: it has other content, and stays. */
static enum status look_at_destination(struct copying *copying, bool *there, struct error *err)
{
	struct checkpoint found;
	struct manifest published = {0};
	const struct manifest *manifest = copying->manifest;
	*there = false;
	copying->damaged = 0;
	enum status status =
		inspect_step(copying->destination, manifest->step, false, &found, &published, err);
	if (status == STATUS_NO)
		return STATUS_OK;
	if (status != STATUS_OK)
		return status;
	switch (found.state) {
	case CHECKPOINT_COMPLETE:
	case CHECKPOINT_BAD:
		*there = manifest_same_files(&published, manifest);
		manifest_release(&published);
		if (*there)
			return STATUS_OK;
		return error_set(err, STATUS_NO,
			"%s/%s is there already with other content, saved by attempt %" PRIu64
			"; it stays as it is",
			copying->destination, found.name, found.attempt);
	case CHECKPOINT_DAMAGED: copying->damaged = found.inode; return STATUS_OK;
	default: return inspect_refuse(copying->destination, &found, err);
	}
}

/* Whether the open directory was left by an earlier copy of the same checkpoint. */
static enum status is_left_over(struct copying *copying, bool *is, struct error *err)
{
	struct manifest record = {0};
	struct writer writer;
	char name[CKPT_NAME_SIZE];
	char *path = ckpt_directory_path(copying->path, CKPT_COPY);
	enum status status = manifest_load(path, &record, err);
	free(path);
	*is = status == STATUS_OK && record.attempt == copying->manifest->attempt &&
	      manifest_same_files(&record, copying->manifest);
	manifest_release(&record);
	if (status != STATUS_NO && status != STATUS_OK)
		return status;
	/* No copy works in it, because we hold the lock. */
	if (status == STATUS_OK)
		return STATUS_OK;
	/* It is a save of the same step and attempt, which may be alive. */
	ckpt_name_writer(name, false, 0);
	path = ckpt_directory_path(copying->path, name);
	status = writer_load(path, &writer, err);
	free(path);
	if (status == STATUS_OK && writer_check(&writer) != PROCESS_GONE)
		return error_set(err, STATUS_NO,
			"%s is being written on %s, by another process (started by %d)",
			copying->path, writer.group.host, (int)writer.parent.pid);
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status save_records(struct copying *copying, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct writer self = {.tasks = 1};
	writer_identify(&self);
	ckpt_name_writer(name, false, 0);
	char *writer = ckpt_directory_path(copying->path, name);
	char *record = ckpt_directory_path(copying->path, CKPT_COPY);
	/* Write the record of the copy first: with it, the lock shows whether a copy is at work. */
	enum status status = manifest_save(record, copying->manifest, err);
	if (status == STATUS_OK)
		status = writer_save(writer, &self, err);
	/* A pruner may have removed it before it had the record of a writer. */
	copying->again = status != STATUS_OK && access(copying->path, F_OK) < 0 && errno == ENOENT;
	free(writer);
	free(record);
	return status;
}

/*
 * Make a new directory to write into, with the finished files of an earlier copy. A pruner may be
 * emptying the old directory through a descriptor, so only files that we move out of it are safe.
 */
static enum status begin(struct copying *copying, struct error *err)
{
	bool made = false, usable = false;
	int old = -1;
	enum status status = copying_open(copying, err);
	if (status == STATUS_OK && copying->root >= 0) {
		status = is_left_over(copying, &usable, err);
		if (status == STATUS_OK) {
			status = remove_begin_ours(
				copying->destination, copying->staging, copying->inode, err);
			copying->again = status == STATUS_NO;
		}
		old = copying->root;
		copying->root = -1;
	}
	if (status == STATUS_OK)
		status = file_make_directory(copying->path, 0777, &made, err);
	if (status == STATUS_OK)
		status = copying_open(copying, err);
	/* Another process has made it, or removed it. */
	if (status == STATUS_OK && (!made || copying->root < 0)) {
		copying->again = true;
		status = STATUS_NO;
	}
	if (status == STATUS_OK)
		status = save_records(copying, err);
	if (status == STATUS_OK && usable)
		copying_take_over(copying, old);
	if (old >= 0)
		close(old);
	if (status == STATUS_OK)
		status = remove_finish_ours(copying->destination, copying->staging, err);
	return status;
}

static enum status publish(struct copying *copying, struct error *err)
{
	char *path = ckpt_directory_path(copying->path, CKPT_MANIFEST);
	enum status status = manifest_save(path, copying->manifest, err);
	free(path);
	if (status != STATUS_OK) {
		copying->again = access(copying->path, F_OK) < 0 && errno == ENOENT;
		return status;
	}
	status = publish_rename(copying->destination, copying->staging, copying->inode,
		copying->manifest->step, copying->damaged, err);
	copying->again = status == STATUS_NO;
	if (status != STATUS_OK)
		return status;
	copying->answer->copied = true;
	return STATUS_OK;
}

static enum status copy_once(struct copying *copying, struct error *err)
{
	bool there;
	enum status status = look_at_destination(copying, &there, err);
	if (status == STATUS_OK && !there) {
		status = begin(copying, err);
		if (status == STATUS_OK)
			status = copying_bring(copying, err);
		if (status == STATUS_OK)
			status = publish(copying, err);
	} else if (status == STATUS_OK) {
		/* Remove an unfinished copy of a checkpoint that another copy has finished. */
		bool usable = false;
		status = copying_open(copying, err);
		if (status == STATUS_OK && copying->root >= 0 &&
			is_left_over(copying, &usable, err) == STATUS_OK && usable)
			status = file_remove_tree(copying->path, err);
	}
	if (status == STATUS_OK)
		status = publish_settle(copying->destination, copying->manifest->step,
			copying->answer->warning, sizeof(copying->answer->warning), err);
	copying_close(copying);
	return status;
}

static enum status copy_ours(
	struct copying *copying, const struct checkpoint *item, struct error *err)
{
	struct checkpoint found;
	struct manifest manifest = {0};
	char *original = NULL;
	copying->manifest = &manifest;
	enum status status = ckpt_directory_confirm(copying->directory, -1, err);
	if (status == STATUS_OK)
		status =
			inspect_step(copying->directory, item->step, false, &found, &manifest, err);
	if (status == STATUS_OK && found.state != CHECKPOINT_COMPLETE)
		status =
			error_set(err, found.state == CHECKPOINT_UNKNOWN ? found.status : STATUS_NO,
				"%s/%s is %s and not copied: %s", copying->directory, found.name,
				checkpoint_state_name(found.state), found.why);
	if (status == STATUS_OK)
		status = ckpt_directory_make(copying->destination, err);
	if (status != STATUS_OK)
		goto out;
	ckpt_name_staging(copying->staging, item->step, manifest.attempt, "");
	copying->path = ckpt_directory_path(copying->destination, copying->staging);
	original = ckpt_directory_path(copying->directory, found.name);
	copying->transfer.from = open(original, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (copying->transfer.from < 0) {
		status = error_errno(err, errno, "open %s", original);
		goto out;
	}
	copying->answer->files = manifest.count;
	copying->answer->bytes = manifest_bytes(&manifest);
	copying->again = true;
	for (int tries = 0; copying->again && tries < COPYING_TRIES; tries++) {
		copying->again = false;
		status = copy_once(copying, err);
	}
	if (copying->again)
		status = error_set(err, STATUS_TEMPORARY,
			"%s kept changing during the copy; try again", copying->path);
	close(copying->transfer.from);
out:
	free(original);
	free(copying->path);
	manifest_release(&manifest);
	return status;
}

enum status checkpoint_copy(const char *directory, const char *destination,
	const struct checkpoint *item, const struct copy_options *options,
	struct copy_answer *answer, struct error *err)
{
	struct copying copying = {.directory = directory,
		.destination = destination,
		.transfer = {.from = -1,
			.pace = {.bytes_per_second = options->bytes_per_second,
				.progress = options->progress}},
		.answer = answer,
		.root = -1};
	*answer = (struct copy_answer){0};
	enum status status = copy_check_places(directory, destination, err);
	if (status != STATUS_OK)
		return status;
	return layout_is_native(options->choice)
		       ? copy_ours(&copying, item, err)
		       : copying_framework(&copying, options->choice, item, err);
}
