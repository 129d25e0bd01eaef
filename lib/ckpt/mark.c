/* SPDX-License-Identifier: MIT */
/* Setting and removing marks of published checkpoints. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/list.h"
#include "ckpt/marks.h"

/* We give up when another process has removed our unfinished file this number of times. */
#define TRIES 16

/* Remove unfinished files of killed processes. A live process writes its file again. */
static void sweep(const char *path)
{
	struct file_names names = {0};
	int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0)
		return;
	(void)file_read_names(descriptor, path, &names, NULL);
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.names[i];
		bool ours = strncmp(name, CKPT_BAD ".", sizeof(CKPT_BAD)) == 0 ||
			    strncmp(name, CKPT_PIN ".", sizeof(CKPT_PIN)) == 0;
		if (ours && ckpt_name_is_transient(name))
			(void)unlinkat(descriptor, name, 0);
	}
	file_names_release(&names);
	close(descriptor);
}

static enum status write_mark(
	const char *path, const char *mark, const char *reason, struct error *err)
{
	char utc[32], host[65] = "";
	struct json_object *object = json_object_new_object();
	char *file = ckpt_directory_path(path, mark);
	clock_format_utc(clock_utc(), utc);
	if (gethostname(host, sizeof(host) - 1) < 0)
		strcpy(host, "unknown");
	json_put_text(object, "utc", utc);
	json_put_text(object, "host", host);
	json_put_unsigned(object, "uid", geteuid());
	if (reason) {
		char cut[MARK_REASON_SIZE];
		size_t length = strlen(reason) < sizeof(cut) ? strlen(reason) : sizeof(cut) - 1;
		while (!text_is_utf8(reason, length) && length > 0)
			length--; /* do not cut within a character */
		snprintf(cut, sizeof(cut), "%.*s", (int)length, reason);
		json_put_text(object, "reason", cut);
	}
	const char *line = json_line(object);
	enum status status = file_write_whole(file, line, strlen(line), 0644, true, err);
	json_object_put(object);
	free(file);
	return status;
}

static enum status remove_mark(const char *path, const char *mark, struct error *err)
{
	char *file = ckpt_directory_path(path, mark);
	enum status status = STATUS_OK;
	if (unlink(file) < 0 && errno != ENOENT)
		status = error_errno(err, errno, "remove %s", file);
	free(file);
	return status == STATUS_OK ? file_sync_directory(path, err) : status;
}

static enum status mark_ours(const char *directory, uint64_t step, enum checkpoint_mark mark,
	const char *reason, struct error *err)
{
	const char *name = mark == CKPT_MARK_BAD || mark == CKPT_MARK_GOOD ? CKPT_BAD : CKPT_PIN;
	bool set = mark == CKPT_MARK_BAD || mark == CKPT_MARK_PINNED;
	struct checkpoint found;
	enum status status = STATUS_TEMPORARY;
	for (int tries = 0; tries < TRIES; tries++) {
		status = checkpoint_inspect(directory, step, false, &found, err);
		if (status != STATUS_OK)
			return status;
		if (found.state == CHECKPOINT_UNREADABLE || found.state == CHECKPOINT_UNKNOWN_FORM)
			return error_set(err, checkpoint_status(&found), "%s/%s: %s", directory,
				found.name, found.why);
		char *path = ckpt_directory_path(directory, found.name);
		status = set ? write_mark(path, name, reason, err) : remove_mark(path, name, err);
		if (status == STATUS_OK)
			sweep(path);
		/* A pruner or another save may have replaced the checkpoint after we looked. */
		struct checkpoint now;
		bool same = status == STATUS_OK &&
			    checkpoint_inspect(directory, step, false, &now, NULL) == STATUS_OK &&
			    now.inode == found.inode;
		free(path);
		if (same)
			return STATUS_OK;
		if (status == STATUS_PERMISSION)
			return status;
	}
	if (status == STATUS_OK)
		status = error_set(err, STATUS_TEMPORARY, "%s/%s was replaced again and again",
			directory, found.name);
	return status;
}

/* A framework's checkpoint has its marks beside it; they are files, and their times count. */
static enum status mark_beside(const char *directory, const struct layout *layout, uint64_t step,
	enum checkpoint_mark mark, const char *reason, struct error *err)
{
	const struct list_request request = {.directory = directory, .layout = layout};
	char name[CKPT_NAME_SIZE], other[CKPT_NAME_SIZE];
	struct list list;
	const struct checkpoint *found = NULL;
	enum status status = list_read(&request, &list, err);
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].checkpoint.step == step && !list.items[i].checkpoint.own)
			found = &list.items[i].checkpoint;
	if (status == STATUS_OK && !found)
		status = error_set(err, STATUS_NO,
			"there is no checkpoint of step %" PRIu64 " in %s", step, directory);
	bool pin = mark == CKPT_MARK_PINNED || mark == CKPT_MARK_UNPINNED;
	bool good = mark == CKPT_MARK_GOOD && found && found->state == CHECKPOINT_DOUBTFUL;
	ckpt_name_beside(name, pin ? CKPT_BESIDE_PIN : CKPT_BESIDE_BAD, step);
	ckpt_name_beside(other, CKPT_BESIDE_GOOD, step);
	if (status == STATUS_OK && (mark == CKPT_MARK_PINNED || mark == CKPT_MARK_BAD))
		status = write_mark(directory, name, reason, err);
	else if (status == STATUS_OK)
		status = remove_mark(directory, name, err);
	if (status == STATUS_OK && good)
		status = write_mark(directory, other, NULL, err);
	else if (status == STATUS_OK && mark == CKPT_MARK_BAD)
		status = remove_mark(directory, other, err);
	list_release(&list);
	return status;
}

enum status checkpoint_mark(const char *directory, const struct layout *layout, uint64_t step,
	enum checkpoint_mark mark, const char *reason, struct error *err)
{
	return layout_is_native(layout) ? mark_ours(directory, step, mark, reason, err)
					: mark_beside(directory, layout, step, mark, reason, err);
}

enum status checkpoint_is_bad_in(const char *const *directories, size_t count,
	const struct checkpoint *checkpoint, bool *bad, struct error *err)
{
	*bad = false;
	for (size_t i = 0; i < count && !*bad; i++) {
		struct checkpoint other;
		enum status status =
			checkpoint_inspect(directories[i], checkpoint->step, false, &other, err);
		if (status != STATUS_OK && status != STATUS_NO)
			return status;
		*bad = status == STATUS_OK && other.bad && other.attempt == checkpoint->attempt &&
		       other.utc == checkpoint->utc;
	}
	return STATUS_OK;
}
