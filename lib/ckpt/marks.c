/* SPDX-License-Identifier: MIT */
#include "ckpt/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "ckpt/directory.h"
#include "ckpt/list.h"

#define RECORD_LIMIT 4096
#define REASON_MAX   180 /* bytes; a cut character becomes another one of 3 bytes */

enum status marks_read_pinned(int directory, const char *name, bool *pinned, struct error *err)
{
	char path[2 * CKPT_GONE_SIZE];
	snprintf(path, sizeof(path), "%s/%s", name, CKPT_PIN);
	*pinned = faccessat(directory, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	return *pinned || errno == ENOENT ? STATUS_OK
					  : error_errno(err, errno, "look for %s", path);
}

enum status marks_read(int directory, struct marks *marks, struct error *err)
{
	struct marks look = {0};
	struct text text = {0};
	enum status status = marks_read_pinned(directory, ".", &look.pinned, err);
	if (status != STATUS_OK)
		return status;
	int descriptor = openat(
		directory, CKPT_BAD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	look.bad = descriptor >= 0 || errno == ELOOP;
	if (!look.bad && errno != ENOENT)
		return error_errno(err, errno, "open %s", CKPT_BAD);
	if (descriptor >= 0) {
		status = file_read_descriptor(descriptor, CKPT_BAD, RECORD_LIMIT, &text, err);
		close(descriptor);
	}
	struct json_object *object = json_parse(text_string(&text), text.length);
	(void)json_copy_text(object, "reason", look.reason, sizeof(look.reason));
	json_object_put(object);
	text_release(&text);
	if (status != STATUS_OK && status != STATUS_DAMAGED)
		return status;
	*marks = look;
	return STATUS_OK;
}

enum status marks_clear(int directory, struct error *err)
{
	static const char *const names[] = {CKPT_BAD, CKPT_PIN};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (unlinkat(directory, names[i], 0) < 0 && errno != ENOENT)
			return error_errno(err, errno, "remove %s", names[i]);
	return STATUS_OK;
}

/* Write a mark in its place: a half-written one is a mark, too. One that was set stays set. */
static enum status write_mark(const char *path, const char *reason, struct error *err)
{
	struct text line = {0};
	enum status status = STATUS_OK;
	bool again = faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	int descriptor = open(
		path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
	if (descriptor < 0)
		return error_errno(err, errno, "create %s", path);
	text_add(&line, "{\"reason\": ");
	text_add_json_bytes(&line, reason, reason ? strnlen(reason, REASON_MAX) : 0);
	text_add(&line, "}\n");
	if (file_write_all(descriptor, line.data, line.length) < 0 || fsync(descriptor) < 0)
		status = error_errno(err, errno, "write %s", path);
	if (status != STATUS_OK && !again)
		(void)unlink(path);
	close(descriptor);
	text_release(&line);
	return status;
}

/* Set or remove the mark in this file of DIR, durably. */
static enum status put_mark(
	const char *directory, const char *name, bool set, const char *reason, struct error *err)
{
	enum status status = STATUS_OK;
	char *path = ckpt_directory_path(directory, name), *parent = file_directory_of(path);
	if (set)
		status = write_mark(path, reason, err);
	else if (unlink(path) < 0 && errno != ENOENT)
		status = error_errno(err, errno, "remove %s", path);
	if (status == STATUS_OK)
		status = file_sync_directory(parent, err);
	free(path);
	free(parent);
	return status;
}

enum status checkpoint_mark(const char *directory, const struct layout *layout, uint64_t step,
	enum checkpoint_mark mark, const char *reason, struct error *err)
{
	const struct list_request request = {.directory = directory, .layout = layout};
	char name[2 * CKPT_GONE_SIZE], other[CKPT_NAME_SIZE];
	struct list list;
	const struct checkpoint *found = NULL;
	bool ours = layout_is_native(layout), bad = mark == CKPT_MARK_BAD;
	bool pin = mark == CKPT_MARK_PINNED || mark == CKPT_MARK_UNPINNED;
	enum status status = list_read(&request, &list, err);
	for (size_t i = 0; i < list.count; i++) {
		const struct checkpoint *one = &list.items[i].checkpoint;
		if (one->step == step && !one->own && !one->unfinished)
			found = one;
	}
	if (status == STATUS_OK && !found)
		status = error_set(err, STATUS_NO,
			"there is no checkpoint of step %" PRIu64 " in %s", step, directory);
	else if (status == STATUS_OK && ours && found->state == CHECKPOINT_UNKNOWN_FORM)
		status = error_set(err, STATUS_NO, "%s/%s: %s", directory, found->name, found->why);
	if (ours)
		snprintf(name, sizeof(name), "%s/%s", found ? found->name : "",
			pin ? CKPT_PIN : CKPT_BAD);
	else
		ckpt_name_beside(name, pin ? CKPT_BESIDE_PIN : CKPT_BESIDE_BAD, step);
	if (status == STATUS_OK)
		status = put_mark(directory, name, bad || mark == CKPT_MARK_PINNED, reason, err);
	/* A framework's that is doubtful becomes complete by a mark of its own. */
	bool good = mark == CKPT_MARK_GOOD && found && found->state == CHECKPOINT_DOUBTFUL;
	ckpt_name_beside(other, CKPT_BESIDE_GOOD, step);
	if (status == STATUS_OK && (good || (bad && !ours)))
		status = put_mark(directory, other, good, NULL, err);
	list_release(&list);
	return status;
}
