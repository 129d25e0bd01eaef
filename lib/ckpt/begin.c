/* SPDX-License-Identifier: MIT */
/* Making the directory to write into. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/native.h"
#include "ckpt/remove.h"
#include "ckpt/staging.h"
#include "ckpt/writer.h"

/* We give up when a pruner has removed our new directory this number of times. */
#define TRIES 16
/* How long we wait for a pruner that is emptying our directory, in milliseconds. */
#define PRUNE_WAIT 30000

/* *again: this start has saved the step. STATUS_NO: something else has its name. */
static enum status find_existing(
	const struct checkpoint_target *target, bool *again, struct error *err)
{
	struct checkpoint found;
	enum status status =
		inspect_step(target->directory, target->step, false, &found, NULL, err);
	if (status == STATUS_NO)
		return STATUS_OK;
	if (status != STATUS_OK)
		return status;
	switch (found.state) {
	case CHECKPOINT_COMPLETE:
		*again = *found.life && strcmp(found.life, target->life) == 0 &&
			 found.attempt == target->attempt;
		if (*again)
			return STATUS_OK;
		return error_set(err, STATUS_NO,
			"step %" PRIu64 " is saved already, in %s/%s by attempt %" PRIu64
			"%s%s; it stays as it is",
			target->step, target->directory, found.name, found.attempt,
			*found.life ? " of life " : "", found.life);
	case CHECKPOINT_UNKNOWN:
	case CHECKPOINT_FOREIGN: return inspect_refuse(target->directory, &found, err);
	default: return STATUS_OK; /* bad or damaged: it will be replaced */
	}
}

/* *again: this start has committed this task's shard; the name of staging has attempt and life. */
static enum status find_shard(
	const struct checkpoint_target *target, const char *staging, bool *again, struct error *err)
{
	struct staging look = {0};
	enum status status = staging_inspect(staging, &look, err);
	for (size_t i = 0; i < look.shard_count; i++)
		*again |= look.shards[i] == target->task;
	staging_release(&look);
	return status == STATUS_NO ? STATUS_OK : status;
}

/* Remove the files of earlier writers (if sharded, those of our task); our own record stays. */
static enum status empty(
	const char *staging, const struct checkpoint_target *target, struct error *err)
{
	char own[CKPT_NAME_SIZE], task[CKPT_NAME_SIZE];
	struct file_names names = {0};
	ckpt_name_writer(own, target->sharded, target->task);
	ckpt_name_task(task, target->task);
	int descriptor = open(staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0 && errno == ENOENT)
		return error_set(err, STATUS_NO, "there is no directory %s", staging);
	if (descriptor < 0)
		return error_errno(err, errno, "read directory %s", staging);
	enum status status = file_read_names(descriptor, staging, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		const char *name = names.names[i];
		bool ours = target->sharded ? strcmp(name, task) == 0 : strcmp(name, own) != 0;
		if (ours)
			status = file_remove_tree_at(descriptor, name, err);
	}
	file_names_release(&names);
	close(descriptor);
	return status;
}

static enum status refuse_in_use(const char *path, const struct checkpoint_target *target,
	const struct staging *staging, const struct writer *self, struct error *err)
{
	if (target->sharded && staging->tasks && staging->tasks != target->tasks)
		return error_set(err, STATUS_USAGE,
			"%s was begun for %" PRIu64 " tasks, not for %" PRIu64, path,
			staging->tasks, target->tasks);
	if (target->sharded ? staging->one_writer : staging->sharded)
		return error_set(err, STATUS_USAGE, "%s was begun %s --sharded", path,
			target->sharded ? "without" : "with");
	char name[CKPT_NAME_SIZE];
	struct writer other;
	ckpt_name_writer(name, target->sharded, target->task);
	char *record = ckpt_directory_path(path, name);
	enum status status = writer_load(record, &other, err);
	free(record);
	if (status == STATUS_OK && writer_is_rival(&other, self))
		return error_set(err, STATUS_NO,
			"%s is being written by another process (started by %d, process group %d); "
			"with --sharded or --chief-only every task has its own directory; if it "
			"only failed to save this step, end it first",
			path, (int)other.parent.pid, (int)other.group.pid);
	return status == STATUS_NO ? STATUS_OK : status;
}

/*
 * A pruner may be removing the directory of a dead writer: rename it away, so that we make a new
 * one. A sharded directory stays: tasks share it, and the next start has another attempt number, so
 * another directory.
 */
static enum status take_away_old(const struct checkpoint_target *target, const struct staging *look,
	bool *again, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	bool vacant = !look->others && !look->one_writer && !look->sharded;
	if (target->sharded || look->writer == WRITER_ALIVE || vacant)
		return STATUS_OK;
	staging_name(target, name);
	enum status status = remove_begin_ours(target->directory, name, look->inode, err);
	*again = status == STATUS_OK || status == STATUS_NO;
	return status == STATUS_OK ? STATUS_NO : status;
}

/* Keep pruners out of a sharded directory, which cannot be taken away, until *root is closed. */
static enum status keep_out(const char *staging, int *root, uint64_t *inode, struct error *err)
{
	int64_t deadline = clock_after(PRUNE_WAIT);
	enum status status = staging_open(staging, root, inode, err);
	while (status == STATUS_TEMPORARY && clock_now() < deadline) {
		if (*root >= 0)
			close(*root);
		clock_sleep_until(clock_now() + clock_jitter(50));
		status = staging_open(staging, root, inode, err);
	}
	return status;
}

/* STATUS_NO with *again: the directory was replaced; call this again. */
static enum status begin_once(const struct checkpoint_target *target, const char *staging,
	const struct writer *self, bool *again, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct staging look = {0};
	struct stat st;
	bool made;
	int root = -1;
	uint64_t inode;
	enum status status = file_make_directory(staging, 0777, &made, err);
	if (status != STATUS_OK)
		return status;
	if (target->sharded)
		status = keep_out(staging, &root, &inode, err);
	if (status == STATUS_OK)
		status = staging_inspect(staging, &look, err);
	if (status == STATUS_OK && target->sharded && look.inode != inode)
		status = error_set(err, STATUS_NO, "%s was replaced", staging);
	inode = look.inode;
	if (status == STATUS_NO)
		*again = true;
	if (status == STATUS_OK)
		status = refuse_in_use(staging, target, &look, self, err);
	if (status == STATUS_OK)
		status = take_away_old(target, &look, again, err);
	staging_release(&look);
	if (status != STATUS_OK)
		goto out;
	/* With our record, a pruner sees a live writer. If one was faster, begin again. */
	ckpt_name_writer(name, target->sharded, target->task);
	char *record = ckpt_directory_path(staging, name);
	ckpt_name_task(name, target->task);
	char *shard = ckpt_directory_path(staging, name);
	status = writer_save(record, self, err);
	/* A pruner may have removed the record while it was unfinished. */
	*again = status == STATUS_TEMPORARY;
	if (status == STATUS_OK)
		status = empty(staging, target, err);
	if (status == STATUS_OK && target->sharded)
		status = file_make_directory(shard, 0777, &made, err);
	if (lstat(staging, &st) < 0 ? errno == ENOENT : st.st_ino != inode)
		*again = true;
	free(record);
	free(shard);
out:
	if (root >= 0)
		close(root);
	return status;
}

/* Begin in the directory that staging_name names. */
static enum status begin(
	const struct checkpoint_target *target, struct text *path, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct writer self = {.sharded = target->sharded, .tasks = target->tasks};
	bool again = true;
	enum status status = STATUS_OK;
	writer_identify(&self);
	staging_name(target, name);
	char *staging = ckpt_directory_path(target->directory, name);
	for (int tries = 0; again && tries < TRIES; tries++) {
		again = false;
		status = begin_once(target, staging, &self, &again, err);
	}
	if (again && status != STATUS_TEMPORARY)
		status =
			error_set(err, STATUS_TEMPORARY, "%s was removed again and again", staging);
	if (status == STATUS_OK)
		status = remove_finish_ours(target->directory, name, err);
	if (status == STATUS_OK) {
		text_add(path, staging);
		if (target->sharded) {
			ckpt_name_task(name, target->task);
			text_add(path, "/");
			text_add(path, name);
		}
	}
	free(staging);
	return status;
}

enum status checkpoint_begin(
	const struct checkpoint_target *target, struct text *path, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct checkpoint_target own = *target;
	enum status status = ckpt_directory_make(target->directory, err);
	/* A task whose copy is discarded (--chief-only) may begin after task 0 has finished. */
	if (status == STATUS_OK && !staging_is_scratch(target))
		status = find_existing(target, &own.again, err);
	if (status == STATUS_OK && target->sharded && !own.again) {
		staging_name(target, name);
		char *staging = ckpt_directory_path(target->directory, name);
		status = find_shard(target, staging, &own.again, err);
		free(staging);
	}
	/* A copy that is discarded has no shards. */
	own.sharded &= !own.again;
	return status == STATUS_OK ? begin(&own, path, err) : status;
}
