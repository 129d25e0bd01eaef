/* SPDX-License-Identifier: MIT */
#include "ckpt/format_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"

#define READ_BYTES ((uint64_t)16 << 10) /* at least */

enum status file_wrong(struct file *file, const char *format, ...)
{
	char text[128];
	va_list arguments;
	if (file->status != STATUS_OK)
		return file->status;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	file->status = error_set(file->why, STATUS_NO, "%s %s", file->name, text);
	return file->status;
}

enum status file_open(int root, const char *name, struct file *file, struct error *why)
{
	struct stat st;
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	const char *ending = strrchr(base, '.');
	int descriptor = openat(root, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*file = (struct file){.name = name, .descriptor = descriptor, .why = why};
	if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return file_wrong(file, "is missing");
	if (descriptor < 0 && errno == ENXIO)
		return file_wrong(file, "is not a file");
	if (descriptor < 0)
		return error_errno(why, errno, "open %s", name);
	snprintf(file->ending, sizeof(file->ending), " %s%s ", ending == base ? "/" : "",
		ending ? ending : "");
	if (file_fstat(descriptor, &st) < 0)
		file->status = error_errno(why, errno, "look at %s", name);
	else if (!S_ISREG(st.st_mode))
		file_wrong(file, "is not a file");
	else
		file->bytes = (uint64_t)st.st_size;
	if (file->status != STATUS_OK)
		close(descriptor);
	return file->status;
}

enum status file_close(struct file *file)
{
	close(file->descriptor);
	free(file->part);
	return file->status;
}

const unsigned char *file_bytes(struct file *file, uint64_t offset, uint64_t length)
{
	if (offset > file->bytes || length > file->bytes - offset)
		file_wrong(file, "is cut short");
	if (file->status != STATUS_OK)
		return NULL;
	uint64_t skip = offset - file->start, size = length > READ_BYTES ? length : READ_BYTES;
	if (offset >= file->start && skip <= file->filled && length <= file->filled - skip)
		return file->part + skip;
	if (size > file->bytes - offset)
		size = file->bytes - offset;
	file->part = xrealloc(file->part, size + 1, 1);
	file->start = offset;
	for (file->filled = 0; file->filled < length;) {
		ssize_t n = pread(file->descriptor, file->part + file->filled, size - file->filled,
			(off_t)(offset + file->filled));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			file->status = error_errno(file->why, errno, "read %s", file->name);
		if (n == 0)
			file_wrong(file, "is cut short");
		if (n <= 0)
			return NULL;
		file->filled += (uint64_t)n;
	}
	return file->part;
}

uint64_t little_endian(const unsigned char *bytes, size_t count)
{
	uint64_t value = 0;
	while (count-- > 0)
		value = value << 8 | bytes[count];
	return value;
}

uint64_t file_number(struct file *file, uint64_t offset, size_t width)
{
	const unsigned char *bytes = file_bytes(file, offset, width);
	return bytes ? little_endian(bytes, width) : 0;
}

bool file_has(struct file *file, uint64_t offset, const void *bytes, size_t length)
{
	bool fits = offset <= file->bytes && length <= file->bytes - offset;
	const unsigned char *there = fits ? file_bytes(file, offset, length) : NULL;
	return there && memcmp(there, bytes, length) == 0;
}
