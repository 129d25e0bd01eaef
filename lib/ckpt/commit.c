/* SPDX-License-Identifier: MIT */
/* Committing: sync the files, write the manifest, publish. */
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
#include "ckpt/manifest.h"
#include "ckpt/marks.h"
#include "ckpt/native.h"
#include "ckpt/publish.h"
#include "ckpt/remove.h"
#include "ckpt/staging.h"
#include "ckpt/tree.h"
#include "ckpt/writer.h"

/* We give up when other processes have published or removed something this number of times. */
#define TRIES 32

/* One try to commit a directory. */
struct pass {
	const struct checkpoint_target *target;
	char staging[CKPT_NAME_SIZE];
	char *path;	  /* DIR/STAGING */
	int place;	  /* DIR, open */
	int root;	  /* DIR/STAGING, open */
	uint64_t inode;	  /* of DIR/STAGING */
	uint64_t damaged; /* inode of a bad or damaged checkpoint with the final name; 0: none */
	bool again;	  /* another process has changed something: try again */
	struct checkpoint_commit *answer;
};

static void describe(struct manifest *manifest, const struct checkpoint_target *target)
{
	manifest->step = target->step;
	manifest->attempt = target->attempt;
	memcpy(manifest->life, target->life, sizeof(manifest->life));
	manifest->tasks = target->tasks;
	manifest->sharded = target->sharded;
	manifest->shard = target->sharded ? target->task : MANIFEST_NO_SHARD;
	manifest->utc = target->utc ? target->utc : clock_utc();
	manifest->uid = geteuid();
	if (target->metrics)
		manifest->metrics = *target->metrics;
	if (gethostname(manifest->host, sizeof(manifest->host) - 1) < 0)
		strcpy(manifest->host, "unknown");
}

/*
 * Sync the files of the checkpoint or of our shard, compute their checksums, and make sure that
 * they did not change during that. STATUS_NO: they cannot be a checkpoint; err says why.
 */
static enum status record_files(struct pass *pass, struct manifest *manifest, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	struct manifest after = {0};
	char below[CKPT_NAME_SIZE] = "";
	if (target->sharded)
		ckpt_name_task(below, target->task);
	enum status status = tree_find(pass->root, below, true, manifest, NULL, err);
	if (status != STATUS_OK)
		return status;
	if (manifest_bytes(manifest) == 0)
		return error_set(err, STATUS_NO,
			"the save wrote nothing into %s%s%s: an empty checkpoint is not committed",
			pass->path, *below ? "/" : "", below);
	status = tree_record(pass->root, manifest, err);
	if (status == STATUS_OK)
		status = tree_find(pass->root, below, false, &after, NULL, err);
	if (status == STATUS_OK && !tree_is_unchanged(manifest, &after, err))
		status = STATUS_NO;
	manifest_release(&after);
	return status;
}

/* Save the manifest of the whole checkpoint, and publish it. */
static enum status publish(struct pass *pass, const struct manifest *manifest, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	char *path = ckpt_directory_path(pass->path, CKPT_MANIFEST);
	enum status status = marks_clear(pass->root, err);
	if (status == STATUS_OK)
		status = manifest_save(path, manifest, err);
	free(path);
	if (status != STATUS_OK) {
		/* Another process may just have published the directory. */
		pass->again = access(pass->path, F_OK) < 0 && errno == ENOENT;
		return status;
	}
	status = publish_rename(
		target->directory, pass->staging, pass->inode, target->step, pass->damaged, err);
	if (status == STATUS_NO)
		pass->again = true;
	if (status != STATUS_OK)
		return status;
	pass->answer->complete = true;
	return publish_settle(target->directory, target->step, pass->answer->warning,
		sizeof(pass->answer->warning), err);
}

static enum status commit_whole(struct pass *pass, struct error *err)
{
	struct manifest manifest = {0};
	enum status status = record_files(pass, &manifest, err);
	describe(&manifest, pass->target);
	if (status == STATUS_OK)
		status = publish(pass, &manifest, err);
	manifest_release(&manifest);
	return status;
}

/* Whether this attempt of this life has made the record. */
static bool is_of_same_start(const struct manifest *record, const struct checkpoint_target *target)
{
	return record->attempt == target->attempt && strcmp(record->life, target->life) == 0;
}

/* Write the record of our shard, durably; or find that it is there with the same content. */
static enum status commit_shard(struct pass *pass, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct manifest manifest = {0}, before = {0};
	ckpt_name_shard(name, pass->target->task);
	char *record = ckpt_directory_path(pass->path, name);
	enum status status = record_files(pass, &manifest, err);
	describe(&manifest, pass->target);
	if (status != STATUS_OK)
		goto out;
	status = manifest_load(record, &before, err);
	if (status == STATUS_NO)
		status = manifest_save(record, &manifest, err);
	else if (status == STATUS_OK && !is_of_same_start(&before, pass->target))
		status = error_set(err, STATUS_NO,
			"%s is the record of another start's shard; it stays as it is", record);
	else if (status == STATUS_OK && before.tasks != manifest.tasks)
		status = error_set(err, STATUS_USAGE,
			"this shard was committed with --tasks %" PRIu64 " before", before.tasks);
	else if (status == STATUS_OK && !manifest_same_files(&before, &manifest))
		status = error_set(err, STATUS_NO,
			"the files of task %" PRIu64 " have changed since its shard was committed",
			pass->target->task);
	if (status == STATUS_OK)
		status = file_sync_directory(pass->path, err);
	if (status == STATUS_OK)
		status = file_sync_directory(pass->target->directory, err);
out:
	if (status != STATUS_OK && access(pass->path, F_OK) < 0 && errno == ENOENT)
		pass->again = true;
	manifest_release(&manifest);
	manifest_release(&before);
	free(record);
	return status;
}

/* Add the files of a shard to whole. The result depends only on the shards. */
static enum status merge_shard(
	struct pass *pass, uint64_t task, struct manifest *whole, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct manifest shard = {0};
	ckpt_name_shard(name, task);
	char *record = ckpt_directory_path(pass->path, name);
	enum status status = manifest_load(record, &shard, err);
	free(record);
	if (status == STATUS_NO) {
		pass->again = access(pass->path, F_OK) < 0;
		return error_prefix(err, "the record of task %" PRIu64 "'s shard", task);
	}
	if (status != STATUS_OK)
		return status;
	if (shard.tasks != pass->target->tasks || shard.step != pass->target->step ||
		shard.shard != task)
		status = error_set(err, STATUS_USAGE,
			"task %" PRIu64 " committed its shard with --tasks %" PRIu64
			", this is --tasks %" PRIu64,
			task, shard.tasks, pass->target->tasks);
	else if (!is_of_same_start(&shard, pass->target))
		status = error_set(err, STATUS_NO,
			"the record of task %" PRIu64 "'s shard in %s is of another start (attempt "
			"%" PRIu64 "%s%s): shards of two starts never make one checkpoint",
			task, pass->path, shard.attempt, *shard.life ? ", life " : "", shard.life);
	for (size_t i = 0; i < shard.count && status == STATUS_OK; i++) {
		const struct manifest_file *file = &shard.files[i];
		memcpy(manifest_add(whole, file->name, file->bytes)->checksum, file->checksum,
			sizeof(file->checksum));
	}
	if (shard.utc > whole->utc)
		whole->utc = shard.utc;
	metrics_merge(&whole->metrics, &shard.metrics);
	if (task == 0) {
		memcpy(whole->host, shard.host, sizeof(whole->host));
		whole->uid = shard.uid;
	}
	manifest_release(&shard);
	return status;
}

/* All shards are committed: publish. Several tasks may do this at once; one rename succeeds. */
static enum status publish_shards(struct pass *pass, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	struct manifest whole = {.step = target->step,
		.attempt = target->attempt,
		.tasks = target->tasks,
		.sharded = true,
		.shard = MANIFEST_NO_SHARD};
	struct manifest there = {0};
	enum status status = STATUS_OK;
	memcpy(whole.life, target->life, sizeof(whole.life));
	for (uint64_t task = 0; task < target->tasks && status == STATUS_OK; task++)
		status = merge_shard(pass, task, &whole, err);
	manifest_sort(&whole);
	if (status == STATUS_OK)
		status = tree_find(pass->root, "", false, &there, NULL, err);
	if (status == STATUS_OK)
		status = tree_compare(pass->root, &whole, false, err);
	if (status == STATUS_OK && there.count != whole.count)
		status = error_set(err, STATUS_NO,
			"%s holds %zu files, but the tasks committed %zu: something was written "
			"outside of the tasks' own directories, or after a commit",
			pass->path, there.count, whole.count);
	if (status == STATUS_OK)
		status = publish(pass, &whole, err);
	manifest_release(&whole);
	manifest_release(&there);
	return status;
}

static enum status commit_sharded(struct pass *pass, struct error *err)
{
	struct staging look = {0};
	struct text absent = {0};
	enum status status = commit_shard(pass, err);
	/* Count after writing our own record: then the last task sees the records of all. */
	if (status == STATUS_OK) {
		status = staging_inspect(pass->path, &look, err);
		if (status == STATUS_NO)
			pass->again = true;
	}
	if (status == STATUS_OK) {
		uint64_t missing = staging_absent(&look, pass->target->tasks, &absent);
		if (missing == 0) {
			status = publish_shards(pass, err);
		} else {
			pass->answer->missing = missing;
			pass->answer->absent = absent;
			absent = (struct text){0};
		}
	}
	text_release(&absent);
	staging_release(&look);
	return status;
}

/* Check that begin was called with the same options as commit. */
static enum status check_staging(struct pass *pass, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	char name[CKPT_NAME_SIZE];
	struct staging look = {0};
	enum status status = staging_inspect(pass->path, &look, err);
	if (status == STATUS_NO)
		pass->again = true;
	else if (status == STATUS_OK && (target->sharded ? look.one_writer : look.sharded))
		status = error_set(err, STATUS_USAGE, "%s was begun %s --sharded", pass->path,
			target->sharded ? "without" : "with");
	else if (status == STATUS_OK && target->sharded && look.tasks &&
		 look.tasks != target->tasks)
		status = error_set(err, STATUS_USAGE,
			"%s was begun for %" PRIu64 " tasks, not for %" PRIu64, pass->path,
			look.tasks, target->tasks);
	/* If the process that began it is gone, record this process as the writer, so that no
	 * pruner removes the directory during the commit. */
	if (status == STATUS_OK && look.writer != WRITER_ALIVE) {
		struct writer self = {.sharded = target->sharded, .tasks = target->tasks};
		ckpt_name_writer(name, target->sharded, target->task);
		char *record = ckpt_directory_path(pass->path, name);
		writer_identify(&self);
		status = writer_save(record, &self, err);
		free(record);
	}
	staging_release(&look);
	return status;
}

/* The step is published already: compare it with ours. */
static enum status compare_published(struct pass *pass, const struct checkpoint *found,
	const struct manifest *published, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	struct manifest own = {0};
	char prefix[CKPT_NAME_SIZE + 1] = "";
	bool same;
	enum status status = staging_open(pass->path, &pass->root, &pass->inode, err);
	if (status == STATUS_NO) {
		/* Our directory is gone: if this start has published it, it is the same. */
		same = is_of_same_start(published, target);
	} else if (status == STATUS_OK) {
		status = record_files(pass, &own, err);
		if (status != STATUS_OK && status != STATUS_NO)
			goto out;
		if (target->sharded) {
			ckpt_name_task(prefix, target->task);
			strcat(prefix, "/");
		}
		same = status == STATUS_OK && manifest_same_below(published, &own, prefix);
	} else {
		goto out;
	}
	if (!same) {
		status = error_set(err, STATUS_NO,
			"step %" PRIu64 " is saved already in %s/%s by attempt %" PRIu64
			"%s%s, with other content; it stays as it is",
			target->step, target->directory, found->name, found->attempt,
			*found->life ? " of life " : "", found->life);
		goto out;
	}
	/* Our copy has the same content: remove it. A sharded directory stays, because other tasks
	 * may be writing into it. */
	status =
		pass->root >= 0 && !target->sharded ? file_remove_tree(pass->path, err) : STATUS_OK;
	if (status != STATUS_OK)
		goto out;
	pass->answer->complete = true;
	status = publish_settle(target->directory, target->step, pass->answer->warning,
		sizeof(pass->answer->warning), err);
out:
	manifest_release(&own);
	return status;
}

static enum status commit_once(struct pass *pass, bool first, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	struct checkpoint found = {0};
	struct manifest published = {0};
	enum status status =
		inspect_step(target->directory, target->step, false, &found, &published, err);
	if (status == STATUS_OK) {
		/* A bad one may have been published by this start, and marked after that. */
		bool settled = staging_is_settled(target, &found);
		if (settled)
			status = compare_published(pass, &found, &published, err);
		manifest_release(&published);
		if (settled)
			return status;
		if (found.state != CHECKPOINT_BAD && found.state != CHECKPOINT_DAMAGED)
			return inspect_refuse(target->directory, &found, err);
		pass->damaged = found.inode;
	} else if (status != STATUS_NO) {
		return status;
	}
	status = staging_open(pass->path, &pass->root, &pass->inode, err);
	if (status == STATUS_NO && first) {
		pass->again = true; /* it may have been published between our two looks */
	} else if (status == STATUS_NO) {
		status = ckpt_directory_confirm(target->directory, pass->place, err);
		if (status == STATUS_OK)
			status = error_set(err, STATUS_NO,
				"there is no %s: \"ckpt-rotate begin\" comes first, with the same "
				"step, attempt and life",
				pass->path);
	}
	if (status == STATUS_OK)
		status = check_staging(pass, err);
	if (status == STATUS_OK)
		status = target->sharded ? commit_sharded(pass, err) : commit_whole(pass, err);
	return status;
}

/*
 * Remove the copy that was written to be discarded: of a task (--chief-only), or because this start
 * has saved the step before.
 */
static enum status discard(const struct checkpoint_target *target, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct stat st;
	enum status status = STATUS_OK;
	ckpt_name_scratch(name, target->step, target->attempt, target->life, target->task);
	char *path = ckpt_directory_path(target->directory, name);
	bool there = lstat(path, &st) == 0;
	if (there)
		status = remove_begin_ours(target->directory, name, st.st_ino, err);
	else if (errno != ENOENT)
		status = error_errno(err, errno, "look at %s", path);
	/* Of a task, also delete a copy that a killed process had renamed away. */
	if ((status == STATUS_OK || status == STATUS_NO) && (there || staging_is_scratch(target)))
		status = remove_finish_ours(target->directory, name, err);
	free(path);
	return status;
}

static enum status commit_scratch(struct pass *pass, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	struct checkpoint found;
	enum status status =
		inspect_step(target->directory, target->step, false, &found, NULL, err);
	if (status != STATUS_OK && status != STATUS_NO)
		return status;
	pass->answer->complete = status == STATUS_OK && staging_is_settled(target, &found);
	if (!pass->answer->complete) {
		pass->answer->missing = 1;
		text_add(&pass->answer->absent, "0");
	}
	return STATUS_OK;
}

enum status checkpoint_commit(
	const struct checkpoint_target *target, struct checkpoint_commit *answer, struct error *err)
{
	struct pass pass = {
		.target = target, .place = -1, .root = -1, .again = true, .answer = answer};
	enum status status = ckpt_directory_open(target->directory, &pass.place, err);
	if (status != STATUS_OK)
		return status;
	*answer = (struct checkpoint_commit){0};
	staging_name(target, pass.staging);
	pass.path = ckpt_directory_path(target->directory, pass.staging);
	status = discard(target, err);
	/* What was committed before is then committed once more. */
	if (status == STATUS_OK && staging_is_scratch(target))
		status = commit_scratch(&pass, err);
	pass.again = status == STATUS_OK && !staging_is_scratch(target);
	for (int tries = 0; pass.again && tries < TRIES; tries++) {
		pass.again = false;
		pass.damaged = 0;
		status = commit_once(&pass, tries == 0, err);
		if (pass.root >= 0)
			close(pass.root);
		pass.root = -1;
	}
	if (pass.again)
		status = error_set(err, STATUS_TEMPORARY,
			"%s kept changing during the commit; try again", pass.path);
	close(pass.place);
	free(pass.path);
	return status;
}
