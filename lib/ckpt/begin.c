/* SPDX-License-Identifier: MIT */
/* Making the directory to write into. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/process/process.h"
#include "base/xalloc.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/native.h"
#include "ckpt/staging.h"

/* We give up when another process has changed what we look at this number of times. */
#define TRIES	     16
#define RECORD_LIMIT 4096 /* bytes */

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

/* Write a record of our caller under a new name, whose last six characters are "XXXXXX". */
static enum status write_record(char *name, struct error *err)
{
	struct writer self = {.utc = clock_utc()};
	if (process_identify(getppid(), &self.process, NULL) != STATUS_OK)
		(void)process_identify(0, &self.process, NULL); /* it is of another namespace */
	struct json_object *object = json_write_record(writer_fields, &self);
	const char *line = json_line(object);
	int descriptor = mkostemp(name, O_CLOEXEC);
	enum status status = STATUS_OK;
	if (descriptor < 0 || fchmod(descriptor, file_new_mode()) < 0 ||
		file_write_all(descriptor, line, strlen(line)) < 0)
		status = error_errno(err, errno, "write %s", name);
	if (descriptor >= 0)
		close(descriptor);
	json_object_put(object);
	return status;
}

/*
 * Whether the writer of this record lives on this machine, and neither it nor our caller has
 * started the other. who: "pid 7 on node3 since ..."; unchanged if this is not a record.
 */
static bool is_rival(const char *path, struct text *who)
{
	struct writer writer = {0};
	struct text text = {0};
	char since[32];
	bool read = file_read_whole(path, RECORD_LIMIT, &text, NULL) == STATUS_OK &&
		    json_read_record(writer_fields, text_string(&text), text.length, &writer,
			    NULL) != JSON_UNUSABLE;
	text_release(&text);
	if (!read)
		return false;
	pid_t pid = writer.process.pid;
	clock_format_utc(writer.utc, since);
	text_release(who);
	text_addf(who, "pid %d on %s since %s", (int)pid, writer.process.host, since);
	return process_check(&writer.process) == PROCESS_ALIVE &&
	       !process_is_ancestor(pid, getpid()) && !process_is_ancestor(getppid(), pid);
}

/*
 * Make our record. STATUS_NO: another living process writes. replaced: whose place we take. A
 * record that is there is looked at under a name of our own: so of two that begin at the same time
 * one finds the record of the other.
 */
static enum status claim(
	const char *staging, const char *record, struct text *replaced, struct error *err)
{
	char *ours = xprintf("%s.XXXXXX", record), *theirs = xprintf("%s.XXXXXX.old", record);
	enum status status = write_record(ours, err);
	memcpy(theirs, ours, strlen(ours));
	int number = EEXIST;
	for (int tries = 0; status == STATUS_OK && number == EEXIST && tries < TRIES; tries++) {
		number = file_rename_new(AT_FDCWD, ours, AT_FDCWD, record);
		if (number != EEXIST)
			break;
		if (rename(record, theirs) < 0) {
			number = errno == ENOENT ? EEXIST : errno;
		} else if (is_rival(theirs, replaced)) {
			(void)file_rename_new(AT_FDCWD, theirs, AT_FDCWD, record);
			status = error_set(err, STATUS_NO,
				"%s is being written by %s; if that only failed to save this step, "
				"end it first; with --sharded or --chief-only every task has its "
				"own directory",
				staging, text_string(replaced));
		}
	}
	if (status == STATUS_OK && number)
		status = error_errno(err, number, "make %s", record);
	(void)unlink(theirs);
	(void)unlink(ours);
	free(ours);
	free(theirs);
	return status;
}

/* Remove what earlier writers left: all but the records of writers; of a shard, the task's files.
 */
static enum status empty(
	int root, const char *path, const struct checkpoint_target *target, struct error *err)
{
	char task[CKPT_NAME_SIZE], writer[CKPT_NAME_SIZE];
	struct file_names names = {0};
	ckpt_name_task(task, target->task);
	ckpt_name_record(writer, CKPT_WRITER, 0, 0);
	if (target->sharded)
		return file_remove_tree_at(root, task, err);
	enum status status = file_read_names(root, path, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
		if (strncmp(names.names[i], writer, strlen(writer)) != 0)
			status = file_remove_tree_at(root, names.names[i], err);
	file_names_release(&names);
	return status;
}

/* *again: the directory was removed or replaced meanwhile: call this again. */
static enum status begin_once(const struct checkpoint_target *target, const char *path,
	struct text *replaced, bool *again, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct staging staging = {.root = -1};
	struct stat st;
	bool made;
	*again = false;
	enum status status = file_make_directory(path, 0777, &made, err);
	if (status != STATUS_OK)
		return status;
	status = staging_open(path, target, &staging, err);
	ckpt_name_record(name, CKPT_WRITER, target->task, target->sharded ? target->tasks : 0);
	char *record = ckpt_directory_path(path, name);
	if (status == STATUS_OK)
		status = claim(path, record, replaced, err);
	if (status == STATUS_OK)
		status = empty(staging.root, path, target, err);
	ckpt_name_task(name, target->task);
	if (status == STATUS_OK && target->sharded && mkdirat(staging.root, name, 0777) < 0 &&
		errno != EEXIST)
		status = error_errno(err, errno, "make directory %s/%s", path, name);
	*again = lstat(path, &st) < 0 ? errno == ENOENT
				      : staging.root >= 0 && st.st_ino != staging.inode;
	if (status != STATUS_OK && made)
		(void)rmdir(path);
	free(record);
	staging_close(&staging);
	return status;
}

/* *saved: this start has saved the step. STATUS_NO: something else has its name. */
static enum status find_existing(
	const struct checkpoint_target *target, bool *saved, struct error *err)
{
	struct checkpoint found;
	enum status status =
		inspect_step(target->directory, target->step, false, &found, NULL, err);
	if (status == STATUS_NO)
		return STATUS_OK;
	if (status != STATUS_OK)
		return status;
	if (found.state == CHECKPOINT_UNREADABLE || found.state == CHECKPOINT_UNKNOWN_FORM)
		return inspect_refuse(target->directory, &found, err);
	/* A bad or damaged one will be replaced. */
	*saved = found.state == CHECKPOINT_COMPLETE && *found.life &&
		 strcmp(found.life, target->life) == 0 && found.attempt == target->attempt;
	if (found.state != CHECKPOINT_COMPLETE || *saved)
		return STATUS_OK;
	return error_set(err, STATUS_NO,
		"step %" PRIu64 " is saved already, in %s/%s by attempt %" PRIu64
		"%s%s; it stays as it is",
		target->step, target->directory, found.name, found.attempt,
		*found.life ? " of life " : "", found.life);
}

/* *saved: this start has committed this task's shard; its directory's name has attempt and life. */
static enum status find_shard(
	const struct checkpoint_target *target, bool *saved, struct error *err)
{
	struct staging staging = {.root = -1};
	char *path = staging_path(target);
	enum status status = staging_open(path, target, &staging, err);
	*saved = status == STATUS_OK && staging.committed[target->task];
	staging_close(&staging);
	free(path);
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status checkpoint_begin(const struct checkpoint_target *target, struct text *path,
	struct text *replaced, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct checkpoint_target own = *target;
	bool again = true;
	enum status status = ckpt_directory_make(target->directory, err);
	/* A task whose copy is discarded (--chief-only) may begin after task 0 has finished. */
	if (status == STATUS_OK && !staging_is_scratch(target))
		status = find_existing(target, &own.again, err);
	if (status == STATUS_OK && target->sharded && !own.again)
		status = find_shard(target, &own.again, err);
	if (status != STATUS_OK)
		return status;
	own.sharded &= !own.again; /* what is discarded has no shards */
	char *staging = staging_path(&own);
	for (int tries = 0; again && tries < TRIES; tries++)
		status = begin_once(&own, staging, replaced, &again, err);
	if (again)
		status =
			error_set(err, STATUS_TEMPORARY, "%s was removed again and again", staging);
	ckpt_name_task(name, own.task);
	if (status == STATUS_OK)
		text_add(path, staging);
	if (status == STATUS_OK && own.sharded)
		text_addf(path, "/%s", name);
	free(staging);
	return status;
}
