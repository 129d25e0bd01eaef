/* SPDX-License-Identifier: MIT */
#include "ckpt/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "ckpt/names.h"

#define RECORD_LIMIT 4096

static enum status is_there(int directory, const char *name, bool *there, struct error *err)
{
	struct stat st;
	*there = fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	return *there || errno == ENOENT ? STATUS_OK : error_errno(err, errno, "look for %s", name);
}

static enum status read_reason(int directory, struct marks *marks, struct error *err)
{
	struct text text = {0};
	int descriptor = openat(
		directory, CKPT_BAD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (descriptor < 0)
		return errno == ENOENT || errno == ELOOP
			       ? STATUS_OK
			       : error_errno(err, errno, "open %s", CKPT_BAD);
	enum status status = file_read_descriptor(descriptor, CKPT_BAD, RECORD_LIMIT, &text, err);
	close(descriptor);
	if (status == STATUS_OK) {
		struct json_object *object = json_parse(text_string(&text), text.length);
		(void)json_copy_text(object, "reason", marks->reason, sizeof(marks->reason));
		json_object_put(object);
	}
	text_release(&text);
	return status == STATUS_DAMAGED ? STATUS_OK : status;
}

enum status marks_read(int directory, struct marks *marks, struct error *err)
{
	struct marks look = {0};
	enum status status = is_there(directory, CKPT_BAD, &look.bad, err);
	if (status == STATUS_OK)
		status = is_there(directory, CKPT_PIN, &look.pinned, err);
	if (status == STATUS_OK && look.bad)
		status = read_reason(directory, &look, err);
	if (status == STATUS_OK)
		*marks = look;
	return status;
}

enum status marks_read_pinned(int directory, const char *name, bool *pinned, struct error *err)
{
	char path[2 * CKPT_NAME_SIZE];
	snprintf(path, sizeof(path), "%s/%s", name, CKPT_PIN);
	return is_there(directory, path, pinned, err);
}

enum status marks_clear(int directory, struct error *err)
{
	static const char *const names[] = {CKPT_BAD, CKPT_PIN};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (unlinkat(directory, names[i], 0) < 0 && errno != ENOENT)
			return error_errno(err, errno, "remove %s", names[i]);
	return STATUS_OK;
}
