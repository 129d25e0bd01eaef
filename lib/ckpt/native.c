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
#include "base/file.h"
#include "base/json.h"
#include "ckpt/directory.h"
#include "ckpt/formats.h"
#include "ckpt/staging.h"
#include "ckpt/tree.h"

/* We give up when the checkpoint was replaced this number of times while we looked. */
#define TRIES 8

/* Look whether NAME/MARK is there, whatever it is. */
static enum status look_for(
	int directory, const char *name, const char *mark, bool *there, struct error *err)
{
	char path[2 * CKPT_GONE_SIZE];
	snprintf(path, sizeof(path), "%s/%s", name, mark);
	*there = faccessat(directory, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	return *there || errno == ENOENT ? STATUS_OK : error_errno(err, errno, "look for %s", path);
}

enum status marks_read_pinned(int directory, const char *name, bool *pinned, struct error *err)
{
	return look_for(directory, name, CKPT_PIN, pinned, err);
}

enum status marks_read(int directory, struct marks *marks, struct error *err)
{
	struct json_object *record = NULL;
	*marks = (struct marks){0};
	enum status status = look_for(directory, ".", CKPT_PIN, &marks->pinned, err);
	if (status == STATUS_OK)
		status = look_for(directory, ".", CKPT_BAD, &marks->bad, err);
	/* Whatever its content is, if that can be read. */
	if (status == STATUS_OK && marks->bad)
		status = format_read_json(directory, CKPT_BAD, &record, err);
	(void)json_copy_text(record, "reason", marks->reason, sizeof(marks->reason));
	json_object_put(record);
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status marks_clear(int directory, struct error *err)
{
	static const char *const names[] = {CKPT_BAD, CKPT_PIN};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (unlinkat(directory, names[i], 0) < 0 && errno != ENOENT)
			return error_errno(err, errno, "remove %s", names[i]);
	return STATUS_OK;
}

void checkpoint_conclude(
	struct checkpoint *found, enum checkpoint_state state, const struct error *why)
{
	found->state = state;
	found->status = state == CHECKPOINT_UNREADABLE ? why->status : STATUS_OK;
	snprintf(found->why, sizeof(found->why), "%.255s",
		state == CHECKPOINT_COMPLETE ? "" : why->text);
}

/* Check a published checkpoint, which is open as root; why: see the state. */
static enum checkpoint_state check(const char *path, int root, bool contents,
	struct checkpoint *found, struct manifest *manifest, struct error *why)
{
	struct stat st = {0};
	struct marks marks;
	enum status status = marks_read(root, &marks, why);
	bool there = fstatat(root, CKPT_MANIFEST, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno == ENOENT) {
		error_set(why, STATUS_NO, "it has no manifest, so it is not ours");
		return CHECKPOINT_UNKNOWN_FORM;
	}
	char *file = ckpt_directory_path(path, CKPT_MANIFEST);
	if (status == STATUS_OK)
		status = there && !S_ISREG(st.st_mode)
				 ? error_set(why, STATUS_NO, "the manifest is not a file")
				 : manifest_load(file, manifest, why);
	free(file);
	if (status == STATUS_OK && manifest->step != found->step)
		status = error_set(
			why, STATUS_NO, "its manifest is of step %" PRIu64, manifest->step);
	found->pinned = marks.pinned;
	found->bad = marks.bad;
	if (status == STATUS_OK) {
		found->attempt = manifest->attempt;
		memcpy(found->life, manifest->life, sizeof(found->life));
		found->tasks = manifest->tasks;
		found->sharded = manifest->sharded;
		found->files = manifest->count;
		found->bytes = manifest_bytes(manifest);
		found->utc = manifest->utc;
		found->metrics = manifest->metrics;
		status = tree_compare(root, manifest, contents, why);
	}
	if (status != STATUS_OK)
		return status == STATUS_NO ? CHECKPOINT_DAMAGED : CHECKPOINT_UNREADABLE;
	error_set(why, STATUS_NO, "%s", *marks.reason ? marks.reason : "marked");
	return marks.bad ? CHECKPOINT_BAD : CHECKPOINT_COMPLETE;
}

enum status inspect_step(const char *directory, uint64_t step, bool contents,
	struct checkpoint *found, struct manifest *manifest, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	bool again = true;
	ckpt_name_step(name, step);
	char *path = ckpt_directory_path(directory, name);
	for (int tries = 0; again && tries < TRIES; tries++) {
		struct stat held = {0}, named;
		struct error why;
		struct manifest own = {0};
		enum checkpoint_state state = CHECKPOINT_UNREADABLE;
		*found = (struct checkpoint){.step = step};
		memcpy(found->name, name, sizeof(name));
		int root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (root < 0 && errno == ENOENT) {
			free(path);
			return error_set(err, STATUS_NO, "there is no %s/%s", directory, name);
		}
		if (root < 0 && (errno == ENOTDIR || errno == ELOOP)) {
			error_set(&why, STATUS_NO, "it is not a directory");
			state = CHECKPOINT_UNKNOWN_FORM;
		} else if (root < 0 || fstat(root, &held) < 0) {
			error_errno(&why, errno, "open %s", path);
		} else {
			state = check(path, root, contents, found, &own, &why);
		}
		found->inode = held.st_ino;
		checkpoint_conclude(found, state, &why);
		bool whole = state == CHECKPOINT_COMPLETE || state == CHECKPOINT_BAD;
		if (whole && manifest)
			*manifest = own;
		else
			manifest_release(&own);
		/* It may only have seemed damaged because it was replaced or removed meanwhile. */
		again = !whole && root >= 0 &&
			(lstat(path, &named) < 0 || named.st_ino != held.st_ino);
		if (root >= 0)
			close(root);
	}
	free(path);
	return STATUS_OK;
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
		*changed = clock_later(*changed, file_changed(st));
	return STATUS_OK;
}

/* Say what an unfinished one waits for. */
static void explain(
	struct checkpoint *found, const struct ckpt_name *name, const struct staging *staging)
{
	struct text absent = {0}, why = {0};
	uint64_t missing = staging_absent(staging, &absent);
	if (name->kind == CKPT_NAME_SCRATCH)
		text_addf(&why, "task %" PRIu64 "'s own copy, which is discarded", name->task);
	else if (name->kind == CKPT_NAME_COPY)
		text_add(&why, "a copy");
	else if (missing)
		text_addf(&why, "missing %" PRIu64 " of %" PRIu64 " tasks: %s", missing,
			staging->tasks, text_string(&absent));
	else if (staging->tasks)
		text_addf(&why,
			"all %" PRIu64 " shards are there, not published: run the commit of one "
			"task again",
			staging->tasks);
	else
		text_add(&why, "not committed");
	text_addf(&why, "%s%s; unchanged for ", *name->life ? "; life " : "", name->life);
	text_add_age(&why, clock_utc() - found->changed);
	snprintf(found->why, sizeof(found->why), "%s", text_string(&why));
	text_release(&why);
	text_release(&absent);
}

static enum status inspect_unfinished(
	const char *directory, const char *entry, struct checkpoint *found, struct error *err)
{
	const struct ckpt_name name = ckpt_name_read(entry);
	struct checkpoint look = {.state = CHECKPOINT_INCOMPLETE,
		.step = name.step,
		.attempt = name.attempt,
		.unfinished = true};
	struct staging staging = {.root = -1};
	struct error why;
	snprintf(look.name, sizeof(look.name), "%s", entry);
	memcpy(look.life, name.life, sizeof(look.life));
	char *path = ckpt_directory_path(directory, entry);
	enum status status = staging_open(path, NULL, &staging, &why);
	if (status == STATUS_OK)
		status = tree_walk(staging.root, "", note_change, &look.changed, &why);
	look.inode = staging.inode;
	look.tasks = staging.tasks;
	look.sharded = staging.tasks > 0;
	if (status == STATUS_OK)
		explain(&look, &name, &staging);
	else if (status != STATUS_NO)
		checkpoint_conclude(&look, CHECKPOINT_UNREADABLE, &why);
	staging_close(&staging);
	free(path);
	if (status == STATUS_NO)
		return error_set(err, STATUS_NO, "%s", why.text);
	*found = look;
	return STATUS_OK;
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
