/* SPDX-License-Identifier: MIT */
#include "ckpt/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"

/* Bytes between two looks at the clock: at most CHUNK, at least CHUNK_LEAST. */
#define CHUNK	    ((size_t)8 << 20)
#define CHUNK_LEAST ((size_t)64 << 10)

/* The bytes to copy next: an eighth of a second at the wanted speed, within the limits above. */
static size_t chunk_of(const struct transfer_pace *pace, uint64_t left)
{
	uint64_t chunk = CHUNK;
	if (pace->bytes_per_second && pace->bytes_per_second / 8 < chunk)
		chunk = pace->bytes_per_second / 8;
	if (chunk < CHUNK_LEAST)
		chunk = CHUNK_LEAST;
	return (size_t)(left < chunk ? left : chunk);
}

/* Report bytes that were copied, and wait until the limit allows them. */
static void keep_pace(struct transfer_pace *pace, uint64_t bytes)
{
	pace->bytes += bytes;
	if (pace->progress)
		pace->progress(bytes);
	if (!pace->bytes_per_second)
		return;
	int64_t due = pace->began +
		      (int64_t)((double)pace->bytes * 1000 / (double)pace->bytes_per_second);
	while (clock_now() < due)
		clock_sleep_until(due);
}

/* One file that is being copied. */
struct copying {
	const char *name;
	int in, out;
	bool by_kernel; /* by copy_file_range, until that fails */
	void *buffer;	/* of CHUNK bytes */
};

static enum status cannot_write(const struct copying *file, int number, struct error *err)
{
	return error_errno(err, number, "write the copy of %s", file->name);
}

/* Copy at most chunk bytes at offset `at`. *done: the bytes that were copied; 0: call it again. */
static enum status copy_chunk(
	struct copying *file, uint64_t at, size_t chunk, ssize_t *done, struct error *err)
{
	off_t at_in = (off_t)at, at_out = (off_t)at;
	ssize_t n = *done = 0;
	if (file->by_kernel) {
		n = copy_file_range(file->in, &at_in, file->out, &at_out, chunk, 0);
		file->by_kernel = n > 0 || (n < 0 && (errno == ENOSPC || errno == EDQUOT ||
							     errno == EINTR || errno == EFBIG));
		if (n < 0 && file->by_kernel && errno != EINTR)
			return cannot_write(file, errno, err);
		*done = n > 0 ? n : 0;
		return STATUS_OK;
	}
	n = pread(file->in, file->buffer, chunk, at_in);
	if (n == 0)
		return error_set(err, STATUS_NO, "%s became shorter", file->name);
	if (n < 0)
		return errno == EINTR ? STATUS_OK : error_errno(err, errno, "read %s", file->name);
	while (*done < n) {
		ssize_t w = pwrite(file->out, (char *)file->buffer + *done, (size_t)(n - *done),
			at_out + *done);
		if (w < 0 && errno != EINTR)
			return cannot_write(file, errno, err);
		*done += w > 0 ? w : 0;
	}
	return STATUS_OK;
}

static enum status copy_contents(
	struct copying *file, uint64_t bytes, struct transfer_pace *pace, struct error *err)
{
	enum status status = STATUS_OK;
	file->buffer = xmalloc(CHUNK);
	for (uint64_t at = 0; at < bytes && status == STATUS_OK;) {
		off_t data = lseek(file->in, (off_t)at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		off_t hole = data < 0 ? -1 : lseek(file->in, data, SEEK_HOLE);
		uint64_t to = hole < 0 || (uint64_t)hole > bytes ? bytes : (uint64_t)hole;
		at = data < 0 ? at : (uint64_t)data;
		while (at < to && status == STATUS_OK) {
			ssize_t n;
			status = copy_chunk(file, at, chunk_of(pace, to - at), &n, err);
			at += (uint64_t)n;
			if (n)
				keep_pace(pace, (uint64_t)n);
		}
	}
	free(file->buffer);
	if (status == STATUS_OK && ftruncate(file->out, (off_t)bytes) < 0)
		status = cannot_write(file, errno, err);
	return status;
}

/* Make the directories above name that are missing. Returns 0 or an errno. */
static int make_parents(int directory, const char *name)
{
	char *path = xstrdup(name);
	int number = 0;
	for (char *slash = strchr(path, '/'); slash && number == 0;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(directory, path, 0777) < 0 && errno != EEXIST)
			number = errno;
		*slash = '/';
	}
	free(path);
	return number;
}

int transfer_move(int from, const char *part, int to, const char *name)
{
	int number = make_parents(to, name);
	return number ? number : file_rename_new(from, part, to, name);
}

enum status transfer_file(
	struct transfer *transfer, const char *name, uint64_t bytes, struct error *err)
{
	struct stat st;
	struct copying file = {.name = name, .out = -1, .by_kernel = true};
	enum status status = STATUS_OK;
	file.in = openat(
		transfer->from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file.in < 0 && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, STATUS_NO, "%s is missing", name);
	if (file.in < 0 && (errno == ELOOP || errno == ENXIO))
		return error_set(err, STATUS_NO, "%s is no longer a file", name);
	if (file.in < 0)
		return error_errno(err, errno, "read %s", name);
	if (fstat(file.in, &st) < 0)
		status = error_errno(err, errno, "read %s", name);
	else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != bytes)
		status = error_set(err, STATUS_NO, "%s has %jd bytes instead of %" PRIu64, name,
			(intmax_t)st.st_size, bytes);
	if (status != STATUS_OK)
		goto out;
	if (!transfer->pace.began)
		transfer->pace.began = clock_now();
	file.out = openat(transfer->to, transfer->part,
		O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, st.st_mode & 0777);
	if (file.out < 0) {
		status = error_errno(err, errno, "make the copy of %s", name);
		goto out;
	}
	status = copy_contents(&file, bytes, &transfer->pace, err);
	/* Let the kernel begin to write; the sync of all files waits for it. */
	if (status == STATUS_OK)
		(void)sync_file_range(file.out, 0, 0, SYNC_FILE_RANGE_WRITE);
	if (close(file.out) < 0 && status == STATUS_OK)
		status = cannot_write(&file, errno, err);
	int number = status == STATUS_OK
			     ? transfer_move(transfer->to, transfer->part, transfer->to, name)
			     : 0;
	if (number && number != EEXIST)
		status = error_errno(err, number, "rename the copy of %s", name);
	if (status != STATUS_OK || number == EEXIST)
		(void)unlinkat(transfer->to, transfer->part, 0);
out:
	close(file.in);
	return status;
}
