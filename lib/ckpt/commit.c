/* SPDX-License-Identifier: MIT */
/* Committing: sync the files, write the manifest, publish; and waiting for the other tasks. */
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
#include "ckpt/native.h"
#include "ckpt/publish.h"
#include "ckpt/staging.h"
#include "ckpt/tree.h"

/* We give up when other processes have published or removed something this number of times. */
#define TRIES 32
/* Milliseconds: pauses between two looks, and how long the last task may take to publish. */
#define PAUSE_MIN 20
#define PAUSE_MAX 1000
#define PUBLISHES 3000

/* One try to commit a directory. */
struct pass {
	const struct checkpoint_target *target;
	char *path; /* DIR/STAGING */
	struct staging staging;
	char below[CKPT_NAME_SIZE]; /* where in it our files are: "task-3", or "" */
	uint64_t damaged; /* inode of a bad or damaged checkpoint with the final name; 0: none */
	bool again;	  /* another process has changed something: try again */
	struct checkpoint_commit *answer;
};

/* Another process may just have published or removed the directory. */
static bool is_away(const struct pass *pass)
{
	return access(pass->path, F_OK) < 0 && errno == ENOENT;
}

/* Whether this attempt of this life has made it. */
static bool is_ours(const struct checkpoint_target *target, uint64_t attempt, const char *life)
{
	return attempt == target->attempt && strcmp(life, target->life) == 0;
}

static void describe(const struct checkpoint_target *target, struct manifest *manifest)
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
 * Sync our files, compute their checksums, and make sure that they did not change during that.
 * STATUS_NO: they cannot be a checkpoint; err says why.
 */
static enum status record_files(struct pass *pass, struct manifest *manifest, struct error *err)
{
	describe(pass->target, manifest);
	enum status status = tree_record(pass->staging.root, pass->below, manifest, err);
	if (status == STATUS_OK && manifest_bytes(manifest) == 0)
		status = error_set(err, STATUS_NO,
			"the save wrote nothing into %s%s%s: an empty checkpoint is not committed",
			pass->path, *pass->below ? "/" : "", pass->below);
	return status;
}

/* Save the manifest of the whole checkpoint, and publish it. */
static enum status publish(struct pass *pass, const struct manifest *manifest, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	char *path = ckpt_directory_path(pass->path, CKPT_MANIFEST);
	/* The directory may be a copy of a checkpoint that was marked. */
	enum status status = marks_clear(pass->staging.root, err);
	if (status == STATUS_OK)
		status = manifest_save(path, manifest, err);
	free(path);
	if (status != STATUS_OK) {
		pass->again = is_away(pass);
		return status;
	}
	status = publish_rename(target->directory, pass->path, pass->staging.inode, target->step,
		pass->damaged, err);
	pass->again = status == STATUS_NO;
	if (status != STATUS_OK)
		return status;
	pass->answer->complete = pass->answer->published = true;
	return publish_settle(target->directory, target->step, &pass->answer->warning, err);
}

/* Write the record of our shard, durably; or find that it is there with the same content. */
static enum status commit_shard(struct pass *pass, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	char name[CKPT_NAME_SIZE];
	struct manifest manifest = {0}, before = {0};
	ckpt_name_record(name, CKPT_SHARD, target->task, target->tasks);
	char *record = ckpt_directory_path(pass->path, name);
	enum status status = record_files(pass, &manifest, err);
	enum status found = STATUS_NO;
	if (status == STATUS_OK && pass->staging.committed[target->task])
		found = manifest_load(record, &before, err);
	if (found != STATUS_OK && found != STATUS_NO)
		status = found;
	else if (found == STATUS_OK && !is_ours(target, before.attempt, before.life))
		status = error_set(err, STATUS_NO,
			"%s is the record of another start's shard; it stays as it is", record);
	else if (found == STATUS_OK && !manifest_same_files(&before, &manifest))
		status = error_set(err, STATUS_NO,
			"the files of task %" PRIu64 " have changed since its shard was committed",
			target->task);
	else if (status == STATUS_OK && found == STATUS_NO)
		status = manifest_save(record, &manifest, err);
	if (status == STATUS_OK)
		status = file_sync_directory(pass->path, err);
	if (status == STATUS_OK)
		status = file_sync_directory(target->directory, err);
	pass->again = status != STATUS_OK && is_away(pass);
	manifest_release(&manifest);
	manifest_release(&before);
	free(record);
	return status;
}

/* Add the files of a shard to whole. The result depends only on the shards. */
static enum status merge_shard(
	struct pass *pass, uint64_t task, struct manifest *whole, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	char name[CKPT_NAME_SIZE];
	struct manifest shard = {0};
	ckpt_name_record(name, CKPT_SHARD, task, target->tasks);
	char *record = ckpt_directory_path(pass->path, name);
	enum status status = manifest_load(record, &shard, err);
	free(record);
	if (status == STATUS_NO) {
		pass->again = is_away(pass);
		return error_prefix(err, "the record of task %" PRIu64 "'s shard", task);
	}
	if (status == STATUS_OK &&
		(!is_ours(target, shard.attempt, shard.life) || shard.step != target->step ||
			shard.shard != task || shard.tasks != target->tasks))
		status = error_set(err, STATUS_NO,
			"the record of task %" PRIu64 "'s shard in %s is of another start (attempt "
			"%" PRIu64 "%s%s): shards of two starts never make one checkpoint",
			task, pass->path, shard.attempt, *shard.life ? ", life " : "", shard.life);
	for (size_t i = 0; i < shard.count && status == STATUS_OK; i++) {
		const struct manifest_file *file = &shard.files[i];
		memcpy(manifest_add(whole, file->name, file->bytes)->checksum, file->checksum,
			sizeof(file->checksum));
	}
	whole->utc = clock_later(whole->utc, shard.utc);
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
		status = tree_find(pass->staging.root, "", false, &there, err);
	if (status == STATUS_OK)
		status = tree_compare(pass->staging.root, &whole, false, err);
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
	enum status status = commit_shard(pass, err);
	if (status != STATUS_OK)
		return status;
	/* Count after writing our own record: then the last task sees the records of all. */
	staging_close(&pass->staging);
	status = staging_open(pass->path, pass->target, &pass->staging, err);
	pass->again = status == STATUS_NO;
	if (status != STATUS_OK)
		return status;
	text_release(&pass->answer->absent);
	pass->answer->missing = staging_absent(&pass->staging, &pass->answer->absent);
	return pass->answer->missing ? STATUS_OK : publish_shards(pass, err);
}

static enum status commit_whole(struct pass *pass, struct error *err)
{
	struct manifest manifest = {0};
	enum status status = record_files(pass, &manifest, err);
	if (status == STATUS_OK)
		status = publish(pass, &manifest, err);
	manifest_release(&manifest);
	return status;
}

/* The step is published already: compare it with ours. */
static enum status compare_published(struct pass *pass, const struct checkpoint *found,
	const struct manifest *published, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	struct manifest own = {0};
	char prefix[CKPT_NAME_SIZE + 1] = "";
	bool same = false;
	enum status status = staging_open(pass->path, NULL, &pass->staging, err);
	if (status == STATUS_NO) {
		/* Our directory is gone: if this start has published it, it is the same. */
		same = is_ours(target, published->attempt, published->life);
	} else if (status == STATUS_OK) {
		if (*pass->below)
			strcat(strcpy(prefix, pass->below), "/");
		status = record_files(pass, &own, err);
		same = status == STATUS_OK && manifest_same_below(published, &own, prefix);
	}
	manifest_release(&own);
	if (status != STATUS_OK && status != STATUS_NO)
		return status;
	if (!same)
		return error_set(err, STATUS_NO,
			"step %" PRIu64 " is saved already in %s/%s by attempt %" PRIu64
			"%s%s, with other content; it stays as it is",
			target->step, target->directory, found->name, found->attempt,
			*found->life ? " of life " : "", found->life);
	/* Our copy has the same content: remove it. A sharded directory stays, because other tasks
	 * may be writing into it. */
	if (status == STATUS_OK && !target->sharded)
		status = file_remove_tree(pass->path, err);
	if (status != STATUS_OK && status != STATUS_NO)
		return status;
	pass->answer->complete = true;
	return publish_settle(target->directory, target->step, &pass->answer->warning, err);
}

/*
 * Whether found, the checkpoint of target's step, ends the wait for it: it is complete; or it is
 * bad, and target is not writing a new one that will replace it.
 */
static bool is_settled(const struct checkpoint_target *target, const struct checkpoint *found)
{
	struct checkpoint_target chief = *target;
	if (found->state != CHECKPOINT_BAD)
		return found->state == CHECKPOINT_COMPLETE;
	/* A task whose files are discarded may end before task 0 has begun to save again. */
	if (staging_is_scratch(target) && !is_ours(target, found->attempt, found->life))
		return false;
	chief.task = 0;
	chief.again = false;
	char *path = staging_path(&chief);
	bool settled = access(path, F_OK) < 0 && errno == ENOENT;
	free(path);
	return settled;
}

static enum status commit_once(struct pass *pass, bool first, struct error *err)
{
	const struct checkpoint_target *target = pass->target;
	struct checkpoint found = {0};
	struct manifest published = {0};
	enum status status =
		inspect_step(target->directory, target->step, false, &found, &published, err);
	bool settled = status == STATUS_OK && is_settled(target, &found);
	if (settled)
		status = compare_published(pass, &found, &published, err);
	manifest_release(&published);
	if (settled || (status != STATUS_OK && status != STATUS_NO))
		return status;
	if (status == STATUS_OK && found.state != CHECKPOINT_BAD &&
		found.state != CHECKPOINT_DAMAGED)
		return inspect_refuse(target->directory, &found, err);
	pass->damaged = status == STATUS_OK ? found.inode : 0;
	status = staging_open(pass->path, target, &pass->staging, err);
	/* At first: it may have been published between our two looks. */
	pass->again = status == STATUS_NO && first;
	if (status == STATUS_NO && !first)
		return error_set(err, STATUS_NO,
			"there is no %s: \"ckpt-rotate begin\" comes first, with the same step, "
			"attempt and life",
			pass->path);
	if (status != STATUS_OK)
		return status;
	/* No pruner takes it for one that was given up. */
	(void)futimens(pass->staging.root, NULL);
	return target->sharded ? commit_sharded(pass, err) : commit_whole(pass, err);
}

/* What was written to be discarded is gone: a task's own copy (--chief-only) waits for task 0. */
static enum status look_for_chief(
	const struct checkpoint_target *target, struct checkpoint_commit *answer, struct error *err)
{
	struct checkpoint found;
	enum status status =
		inspect_step(target->directory, target->step, false, &found, NULL, err);
	if (status == STATUS_OK && found.state == CHECKPOINT_UNREADABLE)
		return inspect_refuse(target->directory, &found, err);
	if (status != STATUS_OK && status != STATUS_NO)
		return status;
	answer->complete = status == STATUS_OK && is_settled(target, &found);
	answer->missing = !answer->complete;
	text_release(&answer->absent);
	if (answer->missing)
		text_add(&answer->absent, "0");
	/* Its task may have published it a moment ago. */
	return answer->complete ? file_sync_directory(target->directory, err) : STATUS_OK;
}

enum status checkpoint_commit(
	const struct checkpoint_target *target, struct checkpoint_commit *answer, struct error *err)
{
	struct checkpoint_target scratch = *target;
	struct pass pass = {.target = target, .staging = {.root = -1}, .answer = answer};
	int place;
	*answer = (struct checkpoint_commit){0};
	enum status status = ckpt_directory_open(target->directory, &place, err);
	if (status != STATUS_OK)
		return status;
	/* Remove what was written to be discarded, also because this start has saved the step
	 * before; that is then committed once more. */
	scratch.again = true;
	char *path = staging_path(&scratch);
	status = file_remove_tree(path, err);
	free(path);
	if (status == STATUS_OK && staging_is_scratch(target))
		status = look_for_chief(target, answer, err);
	pass.again = status == STATUS_OK && !staging_is_scratch(target);
	pass.path = staging_path(target);
	if (target->sharded)
		ckpt_name_task(pass.below, target->task);
	for (int tries = 0; pass.again && tries < TRIES; tries++) {
		pass.again = false;
		status = commit_once(&pass, tries == 0, err);
		staging_close(&pass.staging);
	}
	if (pass.again)
		status = error_set(err, STATUS_TEMPORARY,
			"%s kept changing during the commit; try again", pass.path);
	/* It is not there: perhaps all of DIR is not. */
	struct error why;
	if (status == STATUS_NO &&
		ckpt_directory_confirm(target->directory, place, &why) != STATUS_OK)
		status = error_set(err, why.status, "%s", why.text);
	close(place);
	free(pass.path);
	return status;
}

/*
 * Look which tasks are missing. STATUS_NO: the committed directory is gone, and not published.
 */
static enum status look_around(
	const struct checkpoint_target *target, struct checkpoint_commit *answer, struct error *err)
{
	struct staging staging = {.root = -1};
	enum status status = look_for_chief(target, answer, err);
	/* Without --sharded, task 0 may not even have begun. */
	if (status != STATUS_OK || answer->complete || !target->sharded)
		return status;
	char *path = staging_path(target);
	status = staging_open(path, target, &staging, err);
	if (status == STATUS_OK) {
		text_release(&answer->absent);
		answer->missing = staging_absent(&staging, &answer->absent);
	}
	staging_close(&staging);
	free(path);
	return status;
}

enum status checkpoint_await(const struct checkpoint_target *target, int64_t deadline,
	struct checkpoint_commit *answer, struct error *err)
{
	int64_t pause = PAUSE_MIN, all_since = CLOCK_NEVER;
	bool gone = false;
	for (;;) {
		enum status status = look_around(target, answer, err);
		/* It may have been published between the two looks: look once more. */
		if (status != STATUS_OK && (status != STATUS_NO || gone))
			return status;
		gone = status == STATUS_NO;
		int64_t now = clock_now();
		all_since = gone || answer->missing ? CLOCK_NEVER : clock_earlier(all_since, now);
		/* It is published: that is judged as in a commit, and made durable. Or the last
		 * task that committed was killed before it could publish. */
		if (answer->complete ||
			(all_since != CLOCK_NEVER && now - all_since >= PUBLISHES)) {
			text_release(&answer->absent);
			return checkpoint_commit(target, answer, err);
		}
		if (now >= deadline && !gone)
			return error_set(err, STATUS_TIMEOUT,
				"step %" PRIu64 " in %s is not complete: %s%s%s", target->step,
				target->directory, answer->missing ? "task " : "",
				answer->missing ? text_string(&answer->absent)
						: "no task has published it yet",
				answer->missing ? " has not committed" : "");
		now += gone ? 0 : clock_jitter(pause);
		clock_sleep_until(now < deadline ? now : deadline);
		pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
	}
}
