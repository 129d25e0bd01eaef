/* SPDX-License-Identifier: MIT */
#include "ckpt/content/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"

/* At most so much between two looks at the clock. */
#define CHUNK	    ((size_t)8 << 20)
#define CHUNK_LEAST ((size_t)64 << 10)

/* Some eighths of a second at the wanted speed. */
static size_t chunk_of(const struct transfer_pace *pace, uint64_t left)
{
	uint64_t chunk = CHUNK;
	if (pace->bytes_per_second && pace->bytes_per_second / 8 < chunk)
		chunk = pace->bytes_per_second / 8;
	if (chunk < CHUNK_LEAST)
		chunk = CHUNK_LEAST;
	return (size_t)(left < chunk ? left : chunk);
}

/* So many more bytes are through: tell, and wait until they may be. */
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

/* Bytes of a range that has data. *by_kernel: the kernel may do it; turned off when it cannot. */
static enum status copy_range(int in, int out, const char *name, uint64_t from, uint64_t to,
	bool *by_kernel, void *buffer, struct transfer_pace *pace, struct error *err)
{
	while (from < to) {
		size_t chunk = chunk_of(pace, to - from);
		ssize_t n = 0;
		if (*by_kernel) {
			off_t at_in = (off_t)from, at_out = (off_t)from;
			n = copy_file_range(in, &at_in, out, &at_out, chunk, 0);
			if (n <= 0 && (n == 0 || (errno != ENOSPC && errno != EDQUOT &&
							 errno != EINTR && errno != EFBIG))) {
				*by_kernel = false;
				continue;
			}
		} else {
			n = pread(in, buffer, chunk, (off_t)from);
			if (n == 0)
				return error_set(err, STATUS_NO, "%s became shorter", name);
			if (n < 0 && errno != EINTR)
				return error_errno(err, errno, "read %s", name);
			for (ssize_t done = 0; done < n;) {
				ssize_t w = pwrite(out, (char *)buffer + done, (size_t)(n - done),
					(off_t)from + done);
				if (w < 0 && errno == EINTR)
					continue;
				if (w < 0)
					return error_errno(
						err, errno, "write the copy of %s", name);
				done += w;
			}
		}
		if (n < 0 && errno != EINTR)
			return error_errno(err, errno, "write the copy of %s", name);
		if (n < 0)
			continue;
		from += (uint64_t)n;
		keep_pace(pace, (uint64_t)n);
	}
	return STATUS_OK;
}

static enum status copy_contents(int in, int out, const char *name, uint64_t bytes,
	struct transfer_pace *pace, struct error *err)
{
	bool by_kernel = true;
	enum status status = STATUS_OK;
	if (bytes && ioctl(out, FICLONE, in) == 0) {
		if (pace->progress)
			pace->progress(bytes);
		return STATUS_OK;
	}
	void *buffer = xmalloc(CHUNK);
	for (uint64_t at = 0; at < bytes && status == STATUS_OK;) {
		off_t data = lseek(in, (off_t)at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		off_t hole = data < 0 ? -1 : lseek(in, data, SEEK_HOLE);
		uint64_t from = data < 0 ? at : (uint64_t)data;
		uint64_t to = hole < 0 || (uint64_t)hole > bytes ? bytes : (uint64_t)hole;
		status = copy_range(in, out, name, from, to, &by_kernel, buffer, pace, err);
		at = to;
	}
	free(buffer);
	if (status == STATUS_OK && ftruncate(out, (off_t)bytes) < 0)
		status = error_errno(err, errno, "write the copy of %s", name);
	return status;
}

/* The directories on the way to name. 0, or errno. */
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

/* Give part its name, unless something has it. 0, or errno. */
static int place(int directory, const char *part, int to, const char *name)
{
	int number = make_parents(to, name);
	if (number)
		return number;
	return file_rename_new(directory, part, to, name);
}

int transfer_move(int from, int directory, const char *name)
{
	return place(from, name, directory, name);
}

enum status transfer_file(int from, int directory, const char *name, uint64_t bytes,
	const char *part, struct transfer_pace *pace, struct error *err)
{
	struct stat st;
	enum status status = STATUS_OK;
	int out = -1;
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (in < 0 && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, STATUS_NO, "%s is missing", name);
	if (in < 0 && (errno == ELOOP || errno == ENXIO))
		return error_set(err, STATUS_NO, "%s is no longer a file", name);
	if (in < 0 || fstat(in, &st) < 0) {
		status = error_errno(err, errno, "read %s", name);
		goto out;
	}
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != bytes) {
		status = error_set(err, STATUS_NO, "%s has %jd bytes instead of %" PRIu64, name,
			(intmax_t)st.st_size, bytes);
		goto out;
	}
	if (!pace->began)
		pace->began = clock_now();
	out = openat(directory, part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		st.st_mode & 0777);
	if (out < 0) {
		status = error_errno(err, errno, "make the copy of %s", name);
		goto out;
	}
	status = copy_contents(in, out, name, bytes, pace, err);
	/* Start the writing; it is waited for when all is there. */
	if (status == STATUS_OK)
		(void)sync_file_range(out, 0, 0, SYNC_FILE_RANGE_WRITE);
	if (close(out) < 0 && status == STATUS_OK)
		status = error_errno(err, errno, "write the copy of %s", name);
	int number = status == STATUS_OK ? place(directory, part, directory, name) : 0;
	if (number && number != EEXIST)
		status = error_errno(err, number, "rename the copy of %s", name);
	if (status != STATUS_OK || number == EEXIST)
		(void)unlinkat(directory, part, 0);
out:
	if (in >= 0)
		close(in);
	return status;
}
