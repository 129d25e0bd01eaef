/* SPDX-License-Identifier: MIT */
/*
 * One save: its directory is begun, written by the training, committed, published.
 *
 *   begin     DIR/.tmp-... with a record of who writes; if sharded, with task-I of each task
 *   commit    the files are synced and have checksums; of a shard, in .ckpt-shard-I-of-N
 *   publish   when all is committed: the manifest is written, and the directory gets its name
 *   settle    the records go, "latest" follows, DIR is synced
 *
 * Each step may be done again, by any process: what is there says which are done.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/process/process.h"
#include "base/xalloc.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/gone.h"
#include "ckpt/manifest.h"
#include "ckpt/native.h"
#include "ckpt/staging.h"
#include "ckpt/tree.h"

/* We give up when other processes have published or removed something this number of times. */
#define TRIES	     8
#define LINK_TRIES   16	  /* the same for the link, which each of many may change */
#define NAMED_MAX    16	  /* at most this number of missing tasks is listed */
#define RECORD_LIMIT 4096 /* bytes */
/* Milliseconds: pauses between two looks, and how long the last task may take to publish. */
#define PAUSE_MIN 20
#define PAUSE_MAX 1000
#define PUBLISHES 3000

/* ---- What is there ---- */

/* Whether what this task writes is always discarded. */
static bool is_copy_of_chief(const struct checkpoint_target *target)
{
	return target->chief_only && target->task != 0;
}

/* Whether this attempt of this life has made it. */
static bool is_ours(const struct checkpoint_target *target, uint64_t attempt, const char *life)
{
	return attempt == target->attempt && strcmp(life, target->life) == 0;
}

/* The directory into which target writes: what becomes the checkpoint, or what is discarded. */
static char *staging_path(const struct checkpoint_target *target, bool discarded)
{
	char name[CKPT_NAME_SIZE];
	struct ckpt_name parts = {.kind = discarded ? CKPT_NAME_SCRATCH : CKPT_NAME_STAGING,
		.step = target->step,
		.attempt = target->attempt,
		.task = target->task};
	memcpy(parts.life, target->life, sizeof(parts.life));
	ckpt_name_make(name, &parts);
	return ckpt_directory_path(target->directory, name);
}

static bool is_away(const char *path)
{
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* Note the name of a record: a writer's (tasks 0: of the whole), or a shard's. */
static enum status note(const char *path, const char *name, const struct checkpoint_target *target,
	struct staging *staging, struct error *err)
{
	uint64_t task, tasks;
	bool shard = ckpt_name_read_record(name, CKPT_SHARD, &task, &tasks);
	if (!shard && !ckpt_name_read_record(name, CKPT_WRITER, &task, &tasks))
		return STATUS_OK;
	if (target && tasks != (target->sharded ? target->tasks : 0))
		return error_set(
			err, STATUS_USAGE, "%s was begun with other --sharded and --tasks", path);
	if (tasks > staging->tasks) {
		staging->committed = xrealloc(staging->committed, tasks, sizeof(bool));
		memset(staging->committed + staging->tasks, 0, tasks - staging->tasks);
		staging->tasks = tasks;
	}
	if (shard)
		staging->committed[task] = true;
	return STATUS_OK;
}

enum status staging_open(const char *path, const struct checkpoint_target *target,
	struct staging *staging, struct error *err)
{
	struct file_names names = {0};
	struct stat st;
	/* Opening it makes a network filesystem ask its server for the names of other tasks. */
	struct staging look = {.root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	if (look.root < 0 && errno == ENOENT)
		return error_set(err, STATUS_NO, "there is no %s", path);
	if (look.root < 0)
		return error_errno(err, errno, "read %s", path);
	look.tasks = target && target->sharded ? target->tasks : 0;
	look.committed = xcalloc(look.tasks, sizeof(bool));
	enum status status = file_read_names(look.root, path, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
		status = note(path, names.names[i], target, &look, err);
	file_names_release(&names);
	if (fstat(look.root, &st) < 0)
		status = error_errno(err, errno, "look at %s", path);
	else if (st.st_nlink == 0) /* it was removed after it was opened */
		status = error_set(err, STATUS_NO, "there is no %s", path);
	look.inode = st.st_ino;
	if (status == STATUS_OK)
		*staging = look;
	else
		staging_close(&look);
	return status;
}

void staging_close(struct staging *staging)
{
	if (staging->root >= 0)
		close(staging->root);
	free(staging->committed);
	*staging = (struct staging){.root = -1};
}

uint64_t staging_absent(const struct staging *staging, struct text *absent)
{
	uint64_t missing = 0;
	for (uint64_t task = 0; task < staging->tasks; task++) {
		if (staging->committed[task])
			continue;
		if (missing < NAMED_MAX)
			text_addf(absent, missing ? ", %" PRIu64 : "%" PRIu64, task);
		else if (missing == NAMED_MAX)
			text_add(absent, ", ...");
		missing++;
	}
	return missing;
}

enum status inspect_saved(const char *directory, uint64_t step, struct checkpoint *found,
	struct manifest *manifest, struct error *err)
{
	enum status status = inspect_step(directory, step, false, found, manifest, err);
	if (status == STATUS_NO) {
		*found = (struct checkpoint){.step = step, .state = CHECKPOINT_INCOMPLETE};
		return STATUS_OK;
	}
	return status == STATUS_OK && (found->state == CHECKPOINT_UNREADABLE ||
					      found->state == CHECKPOINT_UNKNOWN_FORM)
		       ? inspect_refuse(directory, found, err)
		       : status;
}

static enum status refuse_saved(const struct checkpoint_target *target,
	const struct checkpoint *found, const char *with, struct error *err)
{
	return error_set(err, STATUS_NO,
		"step %" PRIu64 " is saved already in %s/%s by attempt %" PRIu64
		"%s%s%s; it stays as it is",
		target->step, target->directory, found->name, found->attempt,
		*found->life ? " of life " : "", found->life, with);
}

/* ---- Begin ---- */

/*
 * Who writes: the process that called begin, which itself ends at once. The record only keeps two
 * from writing at the same time, by mistake, and names one of them.
 */
struct writer {
	struct process_identity process;
	int64_t utc;
};

#define WRITER(member) JSON_MEMBER(struct writer, member)
static const struct json_field writer_fields[] = {
	{"host", JSON_TEXT, JSON_REQUIRED, WRITER(process.host)},
	{"boot", JSON_TEXT, JSON_REQUIRED, WRITER(process.boot)},
	{"pid_namespace", JSON_UNSIGNED, JSON_REQUIRED, WRITER(process.pid_namespace)},
	{"pid", JSON_SIGNED, JSON_REQUIRED, WRITER(process.pid), 0, INT32_MAX},
	{"start", JSON_UNSIGNED, JSON_REQUIRED, WRITER(process.start)},
	{"utc_ms", JSON_TIME, JSON_REQUIRED, WRITER(utc)},
	{0},
};

/* STATUS_NO: the writer of this record lives on this machine, and is none of those that have
 * started us. */
static enum status check_rival(int file, const char *staging, struct error *err)
{
	struct writer writer = {0};
	struct text text = {0};
	char since[32] = "just now", who[128] = "another process";
	bool rival = flock(file, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	(void)file_read_descriptor(file, "the record", RECORD_LIMIT, &text, NULL);
	if (!rival && json_read_record(writer_fields, text_string(&text), text.length, &writer,
			      NULL) != JSON_UNUSABLE) {
		rival = process_check(&writer.process) == PROCESS_ALIVE &&
			!process_is_ancestor(writer.process.pid, getpid());
		snprintf(who, sizeof(who), "pid %d on %s", (int)writer.process.pid,
			writer.process.host);
		clock_format_utc(writer.utc, since);
	}
	text_release(&text);
	return rival ? error_set(err, STATUS_NO,
			       "%s is being written by %s since %s; if that only failed to save "
			       "this step, end it first; with --sharded or --chief-only every task "
			       "has its own directory",
			       staging, who, since)
		     : STATUS_OK;
}

/* Make our record, *locked until it is closed; of two that do so at once, one passes. STATUS_NO:
 * another living process writes or commits. */
static enum status claim(
	int root, const char *staging, const char *record, int *locked, struct error *err)
{
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct writer self = {.utc = clock_utc()};
	struct stat st;
	int file = openat(root, record, flags, 0666);
	if (file >= 0 && fstat(file, &st) == 0 && !S_ISREG(st.st_mode)) {
		close(file);
		(void)unlinkat(root, record, 0);
		file = openat(root, record, flags | O_EXCL, 0666);
	}
	if (file < 0)
		return error_errno(err, errno, "make %s/%s", staging, record);
	if (process_identify(getppid(), &self.process, NULL) != STATUS_OK)
		(void)process_identify(0, &self.process, NULL); /* it is of another namespace */
	struct json_object *object = json_write_record(writer_fields, &self);
	const char *line = json_line(object);
	enum status status = check_rival(file, staging, err);
	if (status == STATUS_OK && (ftruncate(file, 0) < 0 || lseek(file, 0, SEEK_SET) < 0 ||
					   file_write_all(file, line, strlen(line)) < 0)) {
		status = error_errno(err, errno, "write %s/%s", staging, record);
		(void)unlinkat(root, record, 0);
	}
	json_object_put(object);
	*locked = file;
	return status;
}

/* Remove what earlier writers left: all but the record; of a shard, the task's files. */
static enum status empty(const struct checkpoint_target *target, int root, const char *path,
	const char *record, struct error *err)
{
	char task[CKPT_NAME_SIZE];
	struct file_names names = {0};
	ckpt_name_task(task, target->task);
	if (target->sharded) {
		enum status removed = file_remove_tree_at(root, task, err);
		return removed == STATUS_OK && mkdirat(root, task, 0777) < 0
			       ? error_errno(err, errno, "make directory %s/%s", path, task)
			       : removed;
	}
	enum status status = file_read_names(root, path, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
		if (strcmp(names.names[i], record) != 0)
			status = file_remove_tree_at(root, names.names[i], err);
	file_names_release(&names);
	return status;
}

/* Whether what was opened has been removed, published or committed meanwhile. */
static bool is_over(
	const char *path, const struct staging *staging, const struct checkpoint_target *target)
{
	char shard[CKPT_NAME_SIZE];
	struct stat st;
	ckpt_name_record(shard, CKPT_SHARD, target->task, target->tasks);
	return (lstat(path, &st) < 0 ? errno == ENOENT : st.st_ino != staging->inode) ||
	       (target->sharded && faccessat(staging->root, shard, F_OK, 0) == 0);
}

/* Make the directory, or take the place of an earlier writer in it. */
static enum status begin_in(
	const char *path, const struct checkpoint_target *target, struct error *err)
{
	char record[CKPT_NAME_SIZE];
	struct staging staging = {.root = -1};
	int locked = -1;
	bool made;
	enum status status = file_make_directory(path, 0777, &made, err);
	if (status != STATUS_OK)
		return status;
	ckpt_name_record(record, CKPT_WRITER, target->task, target->sharded ? target->tasks : 0);
	status = staging_open(path, target, &staging, err);
	bool gone = status == STATUS_NO;
	if (status == STATUS_OK)
		status = claim(staging.root, path, record, &locked, err);
	gone |= status == STATUS_OK && is_over(path, &staging, target);
	if (status == STATUS_OK && !gone)
		status = empty(target, staging.root, path, record, err);
	gone |= status == STATUS_OK && is_over(path, &staging, target);
	if (gone)
		status = error_set(err, STATUS_TEMPORARY,
			"another process has just removed or committed %s; try again", path);
	if (status != STATUS_OK && made)
		(void)rmdir(path);
	if (locked >= 0)
		close(locked);
	staging_close(&staging);
	return status;
}

/* *saved: this start has saved the step, or this task's shard. STATUS_NO: another one has. */
static enum status find_saved(
	const struct checkpoint_target *target, bool *saved, struct error *err)
{
	struct checkpoint found;
	struct staging staging = {.root = -1};
	enum status status = inspect_saved(target->directory, target->step, &found, NULL, err);
	if (status != STATUS_OK)
		return status;
	/* A bad or damaged one will be replaced. */
	if (found.state == CHECKPOINT_COMPLETE) {
		*saved = *found.life && is_ours(target, found.attempt, found.life);
		return *saved ? STATUS_OK : refuse_saved(target, &found, "", err);
	}
	if (!target->sharded)
		return STATUS_OK;
	/* Its attempt and life are in the name of the directory. */
	char *path = staging_path(target, false);
	status = staging_open(path, target, &staging, err);
	*saved = status == STATUS_OK && staging.committed[target->task];
	staging_close(&staging);
	free(path);
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status checkpoint_begin(
	const struct checkpoint_target *target, struct text *path, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct checkpoint_target own = *target;
	bool discarded = is_copy_of_chief(target);
	enum status status = ckpt_directory_make(target->directory, err);
	/* A task whose copy is discarded may begin after task 0 has finished. */
	if (status == STATUS_OK && !discarded)
		status = find_saved(target, &discarded, err);
	if (status != STATUS_OK)
		return status;
	own.sharded &= !discarded;
	char *staging = staging_path(&own, discarded);
	status = begin_in(staging, &own, err);
	ckpt_name_task(name, own.task);
	if (status == STATUS_OK)
		text_addf(path, own.sharded ? "%s/%s" : "%s", staging, name);
	free(staging);
	return status;
}

/* ---- Publish and settle ---- */

enum status publish_rename(int place, const char *directory, const char *staging, uint64_t inode,
	uint64_t step, uint64_t damaged, struct error *err)
{
	char name[CKPT_NAME_SIZE], gone[CKPT_GONE_SIZE];
	struct stat st;
	enum status status = STATUS_OK;
	ckpt_name_step(name, step);
	if (damaged)
		status = gone_rename(place, directory, name, damaged, gone, err);
	if (status != STATUS_OK)
		return status;
	if (lstat(staging, &st) < 0 ? errno == ENOENT : st.st_ino != inode)
		return error_set(err, STATUS_NO, "%s is gone", staging);
	/* An existing checkpoint is not replaced: it is not empty, because it has a manifest. */
	int number = file_rename_new(AT_FDCWD, staging, place, name);
	if (number)
		status = error_errno(err, number, "rename %s to %s", staging, name);
	return number == ENOENT || number == EEXIST || number == ENOTEMPTY ? STATUS_NO : status;
}

/* Remove the records in a checkpoint of DIR that were only needed for writing. */
static enum status sweep(int place, const char *name, struct error *err)
{
	struct file_names names = {0};
	int descriptor = openat(place, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0) /* another process may have removed it */
		return errno == ENOENT ? STATUS_OK : error_errno(err, errno, "open %s", name);
	enum status status = file_read_names(descriptor, name, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
		if (ckpt_name_is_transient(names.names[i]) &&
			unlinkat(descriptor, names.names[i], 0) < 0 && errno != ENOENT)
			status = error_errno(err, errno, "remove %s/%s", name, names.names[i]);
	file_names_release(&names);
	close(descriptor);
	return status;
}

/* The name of the highest step that has a manifest; "": there is none, or DIR is not readable. */
static void find_highest(const char *directory, int place, char highest[CKPT_NAME_SIZE])
{
	struct file_names names = {0};
	enum status status = file_read_names(place, directory, &names, NULL);
	*highest = '\0';
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		char manifest[2 * CKPT_NAME_SIZE];
		struct ckpt_name one = ckpt_name_read(names.names[i]);
		if (one.kind != CKPT_NAME_STEP ||
			(*highest && one.step < ckpt_name_read(highest).step))
			continue;
		snprintf(manifest, sizeof(manifest), "%s/%s", names.names[i], CKPT_MANIFEST);
		if (faccessat(place, manifest, F_OK, 0) == 0)
			ckpt_name_step(highest, one.step);
	}
	file_names_release(&names);
}

/*
 * After changing the link, check it again. If several processes publish at the same time, the last
 * one to change the link then leaves it correct.
 */
void publish_latest(const char *directory, int place)
{
	char want[CKPT_NAME_SIZE], have[CKPT_NAME_SIZE];
	for (int tries = 0; tries < LINK_TRIES; tries++) {
		find_highest(directory, place, want);
		ssize_t n = readlinkat(place, CKPT_LATEST, have, sizeof(have) - 1);
		bool none = n < 0 && errno == ENOENT;
		have[n < 0 ? 0 : n] = '\0';
		if (!none && ckpt_name_read(have).kind != CKPT_NAME_STEP)
			break;
		if (strcmp(want, have) == 0 || (!*want && faccessat(place, have, F_OK, 0) == 0))
			break;
		(void)unlinkat(place, CKPT_LATEST_ONGOING, 0);
		if (!*want)
			(void)unlinkat(place, CKPT_LATEST, 0);
		else if (symlinkat(want, place, CKPT_LATEST_ONGOING) == 0)
			(void)renameat(place, CKPT_LATEST_ONGOING, place, CKPT_LATEST);
	}
	/* A killed process may have left it; a live one makes its link again. */
	(void)unlinkat(place, CKPT_LATEST_ONGOING, 0);
}

enum status publish_settle(int place, const char *directory, uint64_t step, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct error why;
	ckpt_name_step(name, step);
	enum status status = sweep(place, name, err);
	publish_latest(directory, place);
	if (status == STATUS_OK)
		status = file_sync_directory(directory, err);
	if (status != STATUS_OK)
		return status;
	/* Do this after our own sync of DIR: deleting syncs DIR, too, and the kernel reports an
	 * error of the disk only to one of two syncs. */
	(void)gone_settle(place, directory, NULL, name, NULL, NULL);
	/* The begin that made DIR may have been killed before it could sync the parent. If we must
	 * not read the parent, another user has made DIR. */
	char *parent = ckpt_directory_path(directory, "..");
	if (file_sync_directory(parent, &why) != STATUS_OK && why.status != STATUS_PERMISSION)
		status = error_set(err, why.status, "%s", why.text);
	free(parent);
	return status;
}

/* ---- Commit ---- */

struct save {
	const struct checkpoint_target *target;
	int place;  /* DIR, open */
	char *path; /* DIR/.tmp-... */
	struct staging staging;
	int record; /* of the writer, locked: no begin empties what we commit; -1: not yet */
	char below[CKPT_NAME_SIZE]; /* where in it our files are: "task-3", or "" */
	uint64_t damaged; /* inode of a bad or damaged checkpoint with the final name; 0: none */
	bool overtaken;	  /* another process has published something: look again */
	struct checkpoint_commit *answer;
};

static void describe(const struct checkpoint_target *target, struct manifest *manifest)
{
	*manifest = (struct manifest){.step = target->step,
		.attempt = target->attempt,
		.tasks = target->tasks,
		.sharded = target->sharded,
		.shard = target->sharded ? target->task : MANIFEST_NO_SHARD,
		.utc = target->utc ? target->utc : clock_utc(),
		.uid = geteuid()};
	memcpy(manifest->life, target->life, sizeof(manifest->life));
	if (gethostname(manifest->host, sizeof(manifest->host) - 1) < 0)
		strcpy(manifest->host, "unknown");
}

/*
 * Sync our files, compute their checksums, and make sure that they did not change during that.
 * STATUS_NO: they cannot be a checkpoint; err says why.
 */
static enum status record_files(
	const struct save *save, struct manifest *manifest, struct error *err)
{
	describe(save->target, manifest);
	if (save->target->metrics)
		manifest->metrics = *save->target->metrics;
	enum status status = tree_record(save->staging.root, save->below, manifest, err);
	if (status == STATUS_OK && manifest_bytes(manifest) == 0)
		status = error_set(err, STATUS_NO,
			"the save wrote nothing into %s/%s: an empty checkpoint is not committed",
			save->path, save->below);
	return status;
}

/* Save the manifest of the whole checkpoint, and publish it. */
static enum status publish(struct save *save, const struct manifest *manifest, struct error *err)
{
	const struct checkpoint_target *target = save->target;
	char *path = ckpt_directory_path(save->path, CKPT_MANIFEST);
	/* The directory may be a copy of a checkpoint that was marked. */
	enum status status = marks_clear(save->staging.root, err);
	if (status == STATUS_OK)
		status = manifest_save(path, manifest, err);
	free(path);
	if (status != STATUS_OK)
		return status;
	status = publish_rename(save->place, target->directory, save->path, save->staging.inode,
		target->step, save->damaged, err);
	save->overtaken = status == STATUS_NO;
	if (status != STATUS_OK)
		return status;
	save->answer->complete = save->answer->published = true;
	return publish_settle(save->place, target->directory, target->step, err);
}

static char *shard_path(const struct save *save, uint64_t task)
{
	char name[CKPT_NAME_SIZE];
	ckpt_name_record(name, CKPT_SHARD, task, save->target->tasks);
	return ckpt_directory_path(save->path, name);
}

static enum status load_shard(
	const struct save *save, uint64_t task, struct manifest *shard, struct error *err)
{
	const struct checkpoint_target *target = save->target;
	char *path = shard_path(save, task);
	enum status status = manifest_load(path, shard, err);
	if (status == STATUS_NO)
		error_prefix(err, "%s", path);
	else if (status == STATUS_OK &&
		 (!is_ours(target, shard->attempt, shard->life) || shard->step != target->step ||
			 shard->shard != task || shard->tasks != target->tasks))
		status = error_set(err, STATUS_NO,
			"%s is of another start (attempt %" PRIu64
			"%s%s): another start's shard never becomes a part of this checkpoint",
			path, shard->attempt, *shard->life ? ", life " : "", shard->life);
	free(path);
	return status;
}

/* Write the record of our shard, durably; or find that it is there with the same content. */
static enum status commit_shard(
	struct save *save, const struct manifest *manifest, struct error *err)
{
	const struct checkpoint_target *target = save->target;
	struct manifest before = {0};
	char *path = shard_path(save, target->task);
	enum status status = save->staging.committed[target->task]
				     ? load_shard(save, target->task, &before, err)
				     : manifest_save(path, manifest, err);
	if (status == STATUS_OK && before.count && manifest_difference(&before, manifest))
		status = error_set(err, STATUS_NO,
			"the files of task %" PRIu64 " have changed since its shard was committed",
			target->task);
	if (status == STATUS_OK)
		status = file_sync_directory(save->path, err);
	if (status == STATUS_OK)
		status = file_sync_directory(target->directory, err);
	manifest_release(&before);
	free(path);
	if (status != STATUS_OK)
		return status;
	/* Count after writing our own record: then the last task sees the records of all. */
	staging_close(&save->staging);
	status = staging_open(save->path, target, &save->staging, err);
	text_release(&save->answer->absent);
	if (status == STATUS_OK)
		save->answer->missing = staging_absent(&save->staging, &save->answer->absent);
	return status;
}

/* Add the files of a shard to whole. The result depends only on the shards. */
static enum status merge_shard(
	const struct save *save, uint64_t task, struct manifest *whole, struct error *err)
{
	struct manifest shard = {0};
	enum status status = load_shard(save, task, &shard, err);
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

/* All shards are committed: make the manifest of the whole out of theirs. */
static enum status merge(const struct save *save, struct manifest *whole, struct error *err)
{
	struct manifest there = {0};
	enum status status = STATUS_OK;
	describe(save->target, whole);
	whole->shard = MANIFEST_NO_SHARD;
	whole->utc = 0;
	for (uint64_t task = 0; task < save->target->tasks && status == STATUS_OK; task++)
		status = merge_shard(save, task, whole, err);
	manifest_sort(whole);
	if (status == STATUS_OK)
		status = tree_find(save->staging.root, "", false, &there, err);
	const char *odd = status == STATUS_OK ? manifest_difference(whole, &there) : NULL;
	if (odd)
		status = error_set(err, STATUS_NO,
			"%s/%s is not what the tasks committed: something was written outside of "
			"the tasks' own directories, or after a commit",
			save->path, odd);
	manifest_release(&there);
	return status;
}

/* Whether the files of the published checkpoint below a directory ("": all) are these. */
static bool has_files(
	const struct manifest *published, const char *below, const struct manifest *own)
{
	struct manifest part = {0};
	size_t length = strlen(below);
	for (size_t i = 0; i < published->count; i++) {
		const struct manifest_file *file = &published->files[i];
		if (strncmp(file->name, below, length) == 0 &&
			(!length || file->name[length] == '/'))
			memcpy(manifest_add(&part, file->name, file->bytes)->checksum,
				file->checksum, sizeof(file->checksum));
	}
	bool same = !manifest_difference(&part, own);
	manifest_release(&part);
	return same;
}

/*
 * The step is published: by this start, if our directory is gone; or what is in it is the same, and
 * is removed, unless other tasks write into it.
 */
static enum status compare_published(struct save *save, const struct checkpoint *found,
	const struct manifest *published, struct error *err)
{
	const struct checkpoint_target *target = save->target;
	struct manifest own = {0};
	bool same = false;
	enum status status = staging_open(save->path, NULL, &save->staging, err);
	if (status == STATUS_NO) {
		same = is_ours(target, published->attempt, published->life);
	} else if (status == STATUS_OK) {
		status = record_files(save, &own, err);
		same = status == STATUS_OK && has_files(published, save->below, &own);
		manifest_release(&own);
		if (same && !target->sharded)
			status = file_remove_tree(save->path, err);
	}
	if (status_is_error(status))
		return status;
	if (!same)
		return refuse_saved(target, found, ", with other content", err);
	save->answer->complete = true;
	return publish_settle(save->place, target->directory, target->step, err);
}

/*
 * Whether found, the checkpoint of target's step, ends the wait for it: it is complete; or it is
 * bad since this start has saved it, and nobody is writing a new one that will replace it.
 */
static bool is_settled(const struct checkpoint_target *target, const struct checkpoint *found)
{
	if (found->state != CHECKPOINT_BAD || !is_ours(target, found->attempt, found->life))
		return found->state == CHECKPOINT_COMPLETE;
	char *path = staging_path(target, false);
	bool settled = is_away(path);
	free(path);
	return settled;
}

/* Of other commits, each may have this lock, too. Without a record, or locks, there is none. */
static enum status lock_record(struct save *save, struct error *err)
{
	const struct checkpoint_target *target = save->target;
	char record[CKPT_NAME_SIZE];
	ckpt_name_record(record, CKPT_WRITER, target->task, target->sharded ? target->tasks : 0);
	save->record =
		openat(save->staging.root, record, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return save->record >= 0 && flock(save->record, LOCK_SH | LOCK_NB) < 0 &&
			       errno == EWOULDBLOCK
		       ? error_set(err, STATUS_TEMPORARY,
				 "another process begins to write %s just now; try again",
				 save->path)
		       : STATUS_OK;
}

static enum status commit_once(struct save *save, struct error *err)
{
	const struct checkpoint_target *target = save->target;
	struct checkpoint found = {0};
	struct manifest published = {0};
	enum status status =
		inspect_saved(target->directory, target->step, &found, &published, err);
	bool settled = status == STATUS_OK && is_settled(target, &found);
	if (settled)
		status = compare_published(save, &found, &published, err);
	manifest_release(&published);
	if (settled || status != STATUS_OK)
		return status;
	save->damaged = found.inode; /* 0: there is none */
	status = staging_open(save->path, target, &save->staging, err);
	if (status == STATUS_NO)
		return error_set(err, STATUS_NO,
			"there is no %s: \"ckpt-rotate begin\" comes first, with the same step, "
			"attempt and life",
			save->path);
	if (status != STATUS_OK)
		return status;
	/* No pruner takes it for one that was given up. */
	(void)futimens(save->staging.root, NULL);
	struct manifest manifest = {0}, whole = {0};
	status = lock_record(save, err);
	if (status == STATUS_OK)
		status = record_files(save, &manifest, err);
	if (status == STATUS_OK && target->sharded)
		status = commit_shard(save, &manifest, err);
	bool all = status == STATUS_OK && save->answer->missing == 0;
	if (all && target->sharded)
		status = merge(save, &whole, err);
	if (all && status == STATUS_OK)
		status = publish(save, target->sharded ? &whole : &manifest, err);
	manifest_release(&manifest);
	manifest_release(&whole);
	return status;
}

/*
 * Look whether the step is published, and else which tasks are missing: of one that is not sharded,
 * task 0, which may not even have begun. STATUS_NO: the shards are gone, and not published.
 */
static enum status look_around(
	const struct checkpoint_target *target, struct checkpoint_commit *answer, struct error *err)
{
	struct checkpoint found;
	struct staging staging = {.root = -1};
	enum status status = inspect_saved(target->directory, target->step, &found, NULL, err);
	if (status != STATUS_OK)
		return status;
	answer->complete = is_settled(target, &found);
	answer->missing = !answer->complete;
	text_release(&answer->absent);
	/* Its task may have published it a moment ago. */
	if (answer->complete)
		return file_sync_directory(target->directory, err);
	if (!target->sharded) {
		text_add(&answer->absent, "0");
		return STATUS_OK;
	}
	char *path = staging_path(target, false);
	status = staging_open(path, target, &staging, err);
	if (status == STATUS_OK)
		answer->missing = staging_absent(&staging, &answer->absent);
	staging_close(&staging);
	free(path);
	return status;
}

enum status checkpoint_commit(
	const struct checkpoint_target *target, struct checkpoint_commit *answer, struct error *err)
{
	struct save save = {
		.target = target, .staging = {.root = -1}, .record = -1, .answer = answer};
	*answer = (struct checkpoint_commit){0};
	enum status status = ckpt_directory_open(target->directory, &save.place, err);
	if (status != STATUS_OK)
		return status;
	/* What was to be discarded goes in any case; if this start has saved the step before, the
	 * first save is then committed once more. */
	char *discarded = staging_path(target, true);
	status = file_remove_tree(discarded, err);
	free(discarded);
	save.path = staging_path(target, false);
	if (target->sharded)
		ckpt_name_task(save.below, target->task);
	if (status == STATUS_OK && is_copy_of_chief(target))
		status = look_around(target, answer, err);
	else
		save.overtaken = status == STATUS_OK;
	for (int tries = 0; save.overtaken && tries < TRIES; tries++) {
		save.overtaken = false;
		status = commit_once(&save, err);
		/* When our directory is gone, another process may have published it. */
		save.overtaken |= status != STATUS_OK && is_away(save.path);
		staging_close(&save.staging);
		if (save.record >= 0)
			close(save.record);
		save.record = -1;
	}
	/* It is not there: perhaps all of DIR is not. */
	struct error why;
	if (status == STATUS_NO &&
		ckpt_directory_confirm(target->directory, save.place, &why) != STATUS_OK)
		status = error_set(err, why.status, "%s", why.text);
	close(save.place);
	free(save.path);
	return status;
}

enum status checkpoint_await(const struct checkpoint_target *target, int64_t deadline,
	struct checkpoint_commit *answer, struct error *err)
{
	int64_t pause = PAUSE_MIN, all_since = CLOCK_NEVER;
	for (;;) {
		enum status status = look_around(target, answer, err);
		if (status_is_error(status))
			return status;
		int64_t now = clock_now();
		all_since = answer->missing ? CLOCK_NEVER : clock_earlier(all_since, now);
		/* It is published, or gone: that is judged as in a commit, and made durable. Or the
		 * last task that committed was killed before it could publish. */
		if (status == STATUS_NO || answer->complete ||
			(all_since != CLOCK_NEVER && now - all_since >= PUBLISHES)) {
			text_release(&answer->absent);
			return checkpoint_commit(target, answer, err);
		}
		if (now >= deadline && answer->missing)
			return error_set(err, STATUS_TIMEOUT,
				"step %" PRIu64 " in %s is not complete: task %s has not committed",
				target->step, target->directory, text_string(&answer->absent));
		now += clock_jitter(pause);
		clock_sleep_until(answer->missing ? clock_earlier(deadline, now) : now);
		pause = clock_earlier(2 * pause, PAUSE_MAX);
	}
}
