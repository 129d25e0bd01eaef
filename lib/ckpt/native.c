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

#include "base/clock.h"
#include "ckpt/directory.h"
#include "ckpt/marks.h"
#include "ckpt/staging.h"
#include "ckpt/tree.h"

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
			conclude(found, CHECKPOINT_UNKNOWN_FORM, STATUS_NO, &err);
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
				      : CHECKPOINT_UNREADABLE,
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
			conclude(&look, CHECKPOINT_UNKNOWN_FORM, STATUS_NO, &why);
			break;
		}
		if (descriptor < 0 || fstat(descriptor, &held) < 0) {
			error_errno(&why, errno, "open %s", path);
			conclude(&look, CHECKPOINT_UNREADABLE, why.status, &why);
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
	if (found->state == CHECKPOINT_UNREADABLE)
		return error_set(
			err, found->status, "%s/%s: %s", directory, found->name, found->why);
	return error_set(err, STATUS_NO, "%s/%s already exists and is not a checkpoint of ours: %s",
		directory, found->name, found->why);
}

/* Note when anything in an unfinished one changed last, ms since 1970. */
static enum status note_change(
	void *context, const char *path, int directory, const struct stat *st, struct error *err)
{
	int64_t *changed = context;
	(void)path;
	(void)directory;
	(void)err;
	if (st) /* if it has vanished, its directory has changed */
		*changed = clock_later(*changed,
			(int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000);
	return STATUS_OK;
}

static enum status inspect_unfinished(
	const char *directory, const char *name, struct checkpoint *found, struct error *err)
{
	struct ckpt_name read = ckpt_name_read(name);
	struct checkpoint look = {.state = CHECKPOINT_INCOMPLETE,
		.step = read.step,
		.attempt = read.attempt,
		.unfinished = true};
	struct staging staging = {.root = -1};
	struct text absent = {0}, why = {0};
	struct error reason;
	snprintf(look.name, sizeof(look.name), "%s", name);
	memcpy(look.life, read.life, sizeof(look.life));
	char *path = ckpt_directory_path(directory, name);
	enum status status = staging_open(path, NULL, &staging, &reason);
	if (status == STATUS_OK)
		status = tree_walk(staging.root, "", note_change, &look.changed, &reason);
	if (status == STATUS_NO)
		status = error_set(err, STATUS_NO, "%s", reason.text);
	else if (status != STATUS_OK)
		conclude(&look, CHECKPOINT_UNREADABLE, status, &reason);
	if (status != STATUS_OK)
		goto out;
	look.inode = staging.inode;
	look.sharded = staging.tasks > 0;
	look.tasks = staging.tasks;
	uint64_t missing = staging_absent(&staging, &absent);
	if (read.kind == CKPT_NAME_SCRATCH)
		text_addf(&why, "task %" PRIu64 "'s own copy, which is discarded", read.task);
	else if (read.kind == CKPT_NAME_COPY)
		text_add(&why, "a copy");
	else if (missing)
		text_addf(&why, "missing %" PRIu64 " of %" PRIu64 " tasks: %s", missing,
			staging.tasks, text_string(&absent));
	else if (staging.tasks)
		text_addf(&why,
			"all %" PRIu64 " shards are there, not published: run the commit of one "
			"task again",
			staging.tasks);
	else
		text_add(&why, "not committed");
	text_addf(&why, "%s%s; unchanged for ", *look.life ? "; life " : "", look.life);
	text_add_age(&why, clock_utc() - look.changed);
	snprintf(look.why, sizeof(look.why), "%s", text_string(&why));
out:
	text_release(&why);
	text_release(&absent);
	staging_close(&staging);
	free(path);
	if (status != STATUS_NO)
		*found = look;
	return status == STATUS_NO ? STATUS_NO : STATUS_OK;
}

enum status native_inspect(const char *directory, const char *entry, bool contents,
	struct checkpoint *found, struct error *err)
{
	struct ckpt_name read = ckpt_name_read(entry);
	return read.kind == CKPT_NAME_STEP
		       ? inspect_step(directory, read.step, contents, found, NULL, err)
		       : inspect_unfinished(directory, entry, found, err);
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
		[CHECKPOINT_INCOMPLETE] = "incomplete",
		[CHECKPOINT_DAMAGED] = "damaged",
		[CHECKPOINT_DOUBTFUL] = "doubtful",
		[CHECKPOINT_UNKNOWN_FORM] = "unknown form",
		[CHECKPOINT_UNREADABLE] = "unreadable",
	};
	return names[state];
}

enum status checkpoint_status(const struct checkpoint *checkpoint)
{
	switch (checkpoint->state) {
	case CHECKPOINT_COMPLETE: return STATUS_OK;
	case CHECKPOINT_UNREADABLE: return checkpoint->status;
	case CHECKPOINT_DAMAGED: return STATUS_DAMAGED;
	case CHECKPOINT_DOUBTFUL: return STATUS_TEMPORARY;
	default: return STATUS_NO;
	}
}
