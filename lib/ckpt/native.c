/* SPDX-License-Identifier: MIT */
#include "ckpt/native.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/marks.h"
#include "ckpt/staging.h"
#include "ckpt/tree.h"
#include "ckpt/layout/layout.h"

/* We give up when the checkpoint was replaced this number of times while we looked. */
#define TRIES 8

static void conclude(struct checkpoint *found, enum checkpoint_state state, enum status status,
	const struct error *err)
{
	found->state = state;
	found->status = status;
	snprintf(found->why, sizeof(found->why), "%.*s", (int)sizeof(found->why) - 1,
		state == CHECKPOINT_COMPLETE ? "" : err->text);
}

/* Check a published checkpoint. path: its directory, which is open as descriptor. */
static void check_published(const char *path, int descriptor, bool contents,
	struct checkpoint *found, struct manifest *manifest)
{
	struct error err = {0};
	struct stat st;
	enum status status = STATUS_OK;
	char *file = ckpt_directory_path(path, CKPT_MANIFEST);
	if (fstatat(descriptor, CKPT_MANIFEST, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT) {
			error_set(&err, STATUS_NO, "it has no manifest, so it is not ours");
			conclude(found, CHECKPOINT_FOREIGN, STATUS_NO, &err);
			goto out;
		}
		status = error_errno(&err, errno, "look at the manifest");
	} else if (!S_ISREG(st.st_mode)) {
		status = error_set(&err, STATUS_NO, "the manifest is not a file");
	} else {
		status = manifest_load(file, manifest, &err);
	}
	if (status == STATUS_OK && manifest->step != found->step)
		status = error_set(
			&err, STATUS_NO, "its manifest is of step %" PRIu64, manifest->step);
	if (status == STATUS_OK) {
		found->attempt = manifest->attempt;
		memcpy(found->life, manifest->life, sizeof(found->life));
		found->tasks = manifest->tasks;
		found->sharded = manifest->sharded;
		found->files = manifest->count;
		found->bytes = manifest_bytes(manifest);
		found->utc = manifest->utc;
		found->metrics = manifest->metrics;
		status = tree_compare(descriptor, manifest, contents, &err);
	}
	struct marks marks = {0};
	if (status == STATUS_OK || status == STATUS_NO) {
		struct error own = {0};
		enum status marked = marks_read(descriptor, &marks, &own);
		if (marked != STATUS_OK) {
			status = marked;
			err = own;
		}
		found->pinned = marks.pinned;
		found->bad = marks.bad;
	}
	if (status == STATUS_OK && marks.bad)
		error_set(&err, STATUS_NO, "%s", *marks.reason ? marks.reason : "marked");
	conclude(found,
		status == STATUS_OK   ? marks.bad ? CHECKPOINT_BAD : CHECKPOINT_COMPLETE
		: status == STATUS_NO ? CHECKPOINT_DAMAGED
				      : CHECKPOINT_UNKNOWN,
		status, &err);
out:
	free(file);
}

enum status inspect_step(const char *directory, uint64_t step, bool contents,
	struct checkpoint *found, struct manifest *manifest, struct error *err)
{
	struct checkpoint look = {.step = step};
	struct stat held = {0}, named;
	enum status status = STATUS_OK;
	ckpt_name_step(look.name, step);
	char *path = ckpt_directory_path(directory, look.name);
	for (int tries = 0;; tries++) {
		struct error why = {0};
		struct manifest own = {0};
		int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (descriptor < 0 && errno == ENOENT) {
			status = error_set(err, STATUS_NO, "there is no %s", path);
			break;
		}
		if (descriptor < 0 && (errno == ENOTDIR || errno == ELOOP)) {
			error_set(&why, STATUS_NO, "it is not a directory");
			conclude(&look, CHECKPOINT_FOREIGN, STATUS_NO, &why);
			break;
		}
		if (descriptor < 0 || fstat(descriptor, &held) < 0) {
			error_errno(&why, errno, "open %s", path);
			conclude(&look, CHECKPOINT_UNKNOWN, why.status, &why);
			if (descriptor >= 0)
				close(descriptor);
			break;
		}
		look.inode = held.st_ino;
		check_published(path, descriptor, contents, &look, &own);
		close(descriptor);
		bool complete = look.state == CHECKPOINT_COMPLETE || look.state == CHECKPOINT_BAD;
		if (complete && manifest)
			*manifest = own;
		else
			manifest_release(&own);
		/* If it was replaced or removed in between, it may only have seemed damaged: look
		 * again. */
		if (complete || tries == TRIES ||
			(lstat(path, &named) == 0 && named.st_ino == held.st_ino &&
				named.st_dev == held.st_dev))
			break;
	}
	free(path);
	if (status == STATUS_OK)
		*found = look;
	return status;
}

enum status inspect_refuse(const char *directory, const struct checkpoint *found, struct error *err)
{
	if (found->state == CHECKPOINT_UNKNOWN)
		return error_set(
			err, found->status, "%s/%s: %s", directory, found->name, found->why);
	return error_set(err, STATUS_NO, "%s/%s already exists and is not a checkpoint of ours: %s",
		directory, found->name, found->why);
}

static enum status inspect_staging(
	const char *directory, const char *name, struct checkpoint *found, struct error *err)
{
	struct ckpt_name read = ckpt_name_read(name);
	struct checkpoint look = {
		.state = CHECKPOINT_INCOMPLETE, .step = read.step, .attempt = read.attempt};
	struct staging staging = {0};
	struct text absent = {0}, why = {0};
	static const char *const writers[] = {
		[WRITER_UNKNOWN] = "no record of who writes it",
		[WRITER_ALIVE] = "its writer runs",
		[WRITER_GONE] = "its writer is gone",
		[WRITER_ELSEWHERE] = "its writer is on another machine or in another container "
				     "and cannot be checked from here",
	};
	snprintf(look.name, sizeof(look.name), "%s", name);
	memcpy(look.life, read.life, sizeof(look.life));
	char *path = ckpt_directory_path(directory, name);
	enum status status = staging_inspect(path, &staging, err);
	if (status == STATUS_NO)
		goto out;
	if (status != STATUS_OK) {
		struct error reason = {0};
		if (err)
			reason = *err;
		conclude(&look, CHECKPOINT_UNKNOWN, status, &reason);
		status = STATUS_OK;
		goto out;
	}
	look.inode = staging.inode;
	look.sharded = staging.sharded;
	look.tasks = staging.tasks;
	look.writer = staging.writer;
	look.copy = staging.copy;
	look.vacant = !staging.others && !staging.sharded && !staging.one_writer;
	if (read.kind == CKPT_NAME_SCRATCH) {
		text_addf(&why, "task %" PRIu64 "'s own copy, which is discarded", read.task);
	} else if (staging.sharded && staging.tasks) {
		uint64_t missing = staging_absent(&staging, staging.tasks, &absent);
		look.whole = missing == 0;
		/* Without files it is what a killed prune has left. */
		look.early = staging.others && staging.shard_count && staging.begun < staging.tasks;
		if (look.whole)
			text_addf(&why,
				"all %" PRIu64 " shards are there, not published: run the commit "
				"of one task again",
				staging.tasks);
		else
			text_addf(&why, "missing %" PRIu64 " of %" PRIu64 " tasks: %s", missing,
				staging.tasks, text_string(&absent));
	} else {
		text_add(&why, "not committed");
	}
	snprintf(look.why, sizeof(look.why), "%s%s%s; %s", text_string(&why),
		*look.life ? "; life " : "", look.life, writers[staging.writer]);
out:
	text_release(&why);
	text_release(&absent);
	staging_release(&staging);
	free(path);
	if (status == STATUS_OK)
		*found = look;
	return status;
}

enum status checkpoint_inspect(const char *directory, uint64_t step, bool contents,
	struct checkpoint *found, struct error *err)
{
	int descriptor;
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	close(descriptor);
	return inspect_step(directory, step, contents, found, NULL, err);
}

const char *checkpoint_state_name(enum checkpoint_state state)
{
	static const char *const names[] = {
		[CHECKPOINT_COMPLETE] = "complete",
		[CHECKPOINT_BAD] = "bad",
		[CHECKPOINT_DAMAGED] = "damaged",
		[CHECKPOINT_FOREIGN] = "foreign",
		[CHECKPOINT_UNKNOWN] = "unknown",
		[CHECKPOINT_UNPROVEN] = "unproven",
		[CHECKPOINT_INCOMPLETE] = "incomplete",
	};
	return names[state];
}

enum status checkpoint_status(const struct checkpoint *checkpoint)
{
	switch (checkpoint->state) {
	case CHECKPOINT_COMPLETE: return STATUS_OK;
	case CHECKPOINT_DAMAGED: return STATUS_DAMAGED;
	case CHECKPOINT_UNKNOWN: return checkpoint->status;
	case CHECKPOINT_UNPROVEN: return STATUS_TEMPORARY;
	default: return STATUS_NO;
	}
}

static bool read_name(const char *entry, struct layout_name *name)
{
	struct ckpt_name read = ckpt_name_read(entry);
	if (read.kind == CKPT_NAME_FOREIGN)
		return false;
	*name = (struct layout_name){.step = read.step,
		.version = read.attempt,
		.group = read.kind - CKPT_NAME_STEP,
		.length = strlen(entry)};
	return true;
}

static enum status inspect(const char *directory, const char *entry, bool contents,
	struct checkpoint *found, struct error *err)
{
	struct ckpt_name read = ckpt_name_read(entry);
	return read.kind == CKPT_NAME_STEP
		       ? inspect_step(directory, read.step, contents, found, NULL, err)
		       : inspect_staging(directory, entry, found, err);
}

const struct layout layout_native = {
	.name = "native",
	.title = "ckpt-rotate",
	.shape = LAYOUT_DIRECTORY,
	.read = read_name,
	.inspect = inspect,
};
