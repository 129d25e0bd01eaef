/* SPDX-License-Identifier: MIT */
#include "queue/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"

#define ITEMS	   1000 /* directories of commands in one FILES/item/THOUSANDS */
#define LAST_LINES 4096 /* bytes at the end in which to look for the last line */
#define ROOM	   4096 /* bytes that must still fit */

static char *output_path(
	const struct queue *queue, uint64_t id, const char *token, enum output_stream stream)
{
	return xprintf("%s/%" PRIu64 ".%s.%s", queue->files, id, token,
		stream == OUTPUT_OUT ? "out" : "err");
}

static char *item_path(const struct queue *queue, uint64_t id)
{
	return xprintf("%s/item/%" PRIu64 "/%" PRIu64, queue->files, id / ITEMS, id);
}

/* ---- The directories ---- */

static enum status check_directory(const char *path, struct error *err)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return error_errno(err, errno, "look at %s", path);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, STATUS_DAMAGED, "%s is not a directory", path);
	return access_check(path, &st, false, err);
}

/* Make FILES/item/THOUSANDS/ID, and what is missing above it, up to the parent of FILES. */
static enum status make_directories(const struct queue *queue, const char *item, struct error *err)
{
	char *const paths[] = {file_directory_of(queue->files), xstrdup(queue->files),
		xprintf("%s/item", queue->files), file_directory_of(item), xstrdup(item)};
	enum status status = STATUS_OK;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char *above = file_directory_of(paths[i]);
		bool made = false;
		if (status == STATUS_OK)
			status = file_make_directory(paths[i], 0700, &made, err);
		/* The outputs in FILES are to be there after a crash. */
		if (status == STATUS_OK && made && i < 2)
			status = file_sync_directory(above, err);
		free(above);
		free(paths[i]);
	}
	return status;
}

enum status output_prepare(const struct queue *queue, uint64_t id, char **item, struct error *err)
{
	char *path = item_path(queue, id);
	enum status status = STATUS_OK;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		status = make_directories(queue, path, err);
	if (status == STATUS_OK)
		status = check_directory(queue->files, err);
	/* Absolute: the command may run in another directory. */
	if (status == STATUS_OK && *path == '/') {
		*item = path;
		return STATUS_OK;
	}
	if (status == STATUS_OK) {
		*item = realpath(path, NULL);
		if (!*item)
			status = error_errno(err, errno, "find %s", path);
	}
	free(path);
	return status;
}

void output_remove_item(const struct queue *queue, uint64_t id)
{
	char *path = item_path(queue, id);
	(void)rmdir(path);
	free(path);
}

/* ---- While the command runs, and when it has ended ---- */

/* Raise it above 2: if our stdin was closed, open(2) returns 0, which the command would use. */
static int raise_descriptor(int descriptor)
{
	if (descriptor < 0 || descriptor > STDERR_FILENO)
		return descriptor;
	int raised = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int number = errno;
	close(descriptor);
	errno = number;
	return raised;
}

enum status output_open(const struct queue *queue, uint64_t id, const char *token,
	enum output_stream stream, int *descriptor, struct error *err)
{
	enum status status = STATUS_OK;
	char *path = output_path(queue, id, token, stream);
	int flags = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
	int opened = raise_descriptor(open(path, flags, 0600));
	if (opened < 0)
		status = error_errno(err, errno, "make %s", path);
	else
		*descriptor = opened;
	free(path);
	return status;
}

enum status output_keep(int descriptor, uint64_t *length, struct error *err)
{
	struct stat st;
	if (fstat(descriptor, &st) < 0)
		return error_errno(err, errno, "look at what a command wrote");
	if (st.st_size && fsync(descriptor) < 0)
		return error_errno(err, errno, "sync what a command wrote");
	*length = (uint64_t)st.st_size;
	return STATUS_OK;
}

/* A new file each time: one that is emptied has its blocks allocated and freed on the disk, which
 * takes ten times as long. */
enum status output_room(const struct queue *queue, struct error *err)
{
	static const char block[ROOM];
	char *path = xprintf("%s/room.XXXXXX", queue->files);
	int descriptor = mkostemp(path, O_CLOEXEC);
	int number =
		descriptor < 0 || file_write_all(descriptor, block, sizeof(block)) < 0 ? errno : 0;
	if (descriptor >= 0) {
		/* A network filesystem may report a failed write only at close. */
		if (close(descriptor) < 0 && !number)
			number = errno;
		unlink(path);
	}
	free(path);
	if (number)
		error_errno(err, number, "write in %s", queue->files);
	if (number == ENOSPC || number == EDQUOT || number == EFBIG)
		return STATUS_NO;
	return number ? err->status : STATUS_OK;
}

void output_remove(
	const struct queue *queue, uint64_t id, const char *token, enum output_stream stream)
{
	char *path = output_path(queue, id, token, stream);
	unlink(path);
	free(path);
}

void output_last_line(int descriptor, char *line, size_t size)
{
	char bytes[LAST_LINES];
	struct stat st;
	*line = '\0';
	if (fstat(descriptor, &st) < 0)
		return;
	off_t from = st.st_size > LAST_LINES ? st.st_size - LAST_LINES : 0;
	ssize_t length = pread(descriptor, bytes, sizeof(bytes), from);
	while (length > 0 && strchr(" \t\r\n", bytes[length - 1]) && bytes[length - 1])
		length--;
	ssize_t begin = length;
	while (begin > 0 && bytes[begin - 1] != '\n' && bytes[begin - 1] != '\r')
		begin--;
	if (length > begin)
		text_escape(line, size, bytes + begin, (size_t)(length - begin));
}

/* ---- Reading ---- */

/* Copy from *at up to until, which may be more than there is. */
static enum status copy(int from, int to, uint64_t *at, uint64_t until, struct error *err)
{
	char bytes[64 * 1024];
	while (*at < until) {
		uint64_t left = until - *at;
		ssize_t n = pread(from, bytes, left < sizeof(bytes) ? (size_t)left : sizeof(bytes),
			(off_t)*at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, errno, "read the output of a command");
		if (n == 0)
			return STATUS_OK;
		if (file_write_all(to, bytes, (size_t)n) < 0)
			return error_errno(err, errno, "write the output");
		*at += (uint64_t)n;
	}
	return STATUS_OK;
}

enum status output_print(const struct queue *queue, const struct queue_view *view,
	enum output_stream stream, uint64_t *at, int to, struct error *err)
{
	bool runs = view->state == QUEUE_RUNNING;
	uint64_t length = stream == OUTPUT_OUT ? view->result.out : view->result.err;
	if (!runs && *at >= length)
		return STATUS_OK;
	enum status status = STATUS_OK;
	char *path = output_path(queue, view->item.id, view->token, stream);
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (from >= 0)
		status = copy(from, to, at, runs ? UINT64_MAX : length, err);
	else if (errno != ENOENT)
		status = error_errno(err, errno, "open %s", path);
	if (from >= 0)
		close(from);
	if (status == STATUS_OK && !runs && *at < length)
		status = error_set(err, STATUS_DAMAGED,
			"%s has less than command %" PRIu64
			" wrote: it was changed or removed, or the command was forgotten meanwhile",
			path, view->item.id);
	free(path);
	return status;
}

/* ---- Forgetting ---- */

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

void output_forget(const struct queue *queue, const uint64_t *ids, size_t count)
{
	DIR *directory = count ? opendir(queue->files) : NULL;
	struct dirent *entry;
	while (directory && (entry = readdir(directory))) {
		char *end;
		uint64_t id = strtoull(entry->d_name, &end, 10);
		if (end > entry->d_name && *end == '.' &&
			bsearch(&id, ids, count, sizeof(*ids), compare_ids))
			(void)unlinkat(dirfd(directory), entry->d_name, 0);
	}
	if (directory)
		closedir(directory);
	for (size_t i = 0; i < count; i++) {
		char *path = item_path(queue, ids[i]);
		(void)file_remove_tree(path, NULL);
		free(path);
	}
}
