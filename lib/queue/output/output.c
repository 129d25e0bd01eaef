/* SPDX-License-Identifier: MIT */
#include "queue/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "queue/output/files.h"

#define LAST_LINES 4096 /* bytes at the end in which to look for the last line */

static const char *stream_name(enum output_stream stream)
{
	return stream == OUTPUT_OUT ? "out" : "err";
}

/* ---- While the command runs ---- */

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

static int open_named(const char *directory)
{
	char *path = xprintf("%s/preempt-output.XXXXXX", directory);
	int descriptor = mkostemp(path, O_CLOEXEC | O_APPEND);
	int number = errno;
	if (descriptor >= 0)
		unlink(path);
	free(path);
	errno = number;
	return descriptor;
}

int output_open(struct error *err)
{
	const char *directory = getenv("TMPDIR");
	if (!directory || !*directory)
		directory = "/tmp";
	int flags = O_TMPFILE | O_EXCL | O_RDWR | O_APPEND | O_CLOEXEC;
	int descriptor = open(directory, flags, 0600);
	/* O_TMPFILE is not supported by this filesystem or kernel. */
	if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
		descriptor = open_named(directory);
	descriptor = raise_descriptor(descriptor);
	if (descriptor < 0)
		error_errno(err, errno, "make a file for output in %s", directory);
	return descriptor;
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

/* ---- When the command has ended ---- */

/* FILES/out/ID.TOKEN.out or .err, then suffix. */
static char *file_path(const struct output *output, const char *suffix)
{
	return xprintf("%s/out/%" PRIu64 ".%s.%s%s", output->queue->files, output->id,
		output->token, stream_name(output->stream), suffix);
}

int output_copy(int from, int to, uint64_t at, uint64_t until, bool *read_failed)
{
	char bytes[64 * 1024];
	*read_failed = false;
	while (at < until) {
		uint64_t left = until - at;
		ssize_t n = pread(from, bytes, left < sizeof(bytes) ? (size_t)left : sizeof(bytes),
			(off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		*read_failed = n <= 0;
		if (n <= 0)
			return n < 0 ? errno : ENODATA;
		if (file_write_all(to, bytes, (size_t)n) < 0)
			return errno;
		at += (uint64_t)n;
	}
	return 0;
}

/* Write the whole output under a temporary name, and sync it. */
static enum status write_file(const char *path, const struct output *output, struct error *err)
{
	bool read_failed;
	int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
	int to = open(path, flags, 0600);
	if (to < 0)
		return error_errno(err, errno, "make %s", path);
	int number = output_copy(output->descriptor, to, 0, output->length, &read_failed);
	if (!number && fsync(to) < 0)
		number = errno;
	/* A network filesystem may report a failed write only at close. */
	if (close(to) < 0 && !number)
		number = errno;
	if (!number)
		return STATUS_OK;
	unlink(path);
	return read_failed ? error_set(err, STATUS_TEMPORARY,
				     "cannot read what a command wrote in $TMPDIR: %s",
				     number == ENODATA ? "it became shorter" : strerror(number))
			   : error_errno(err, number, "write %s", path);
}

static enum status file_it(const struct output *output, struct error *err)
{
	char *directory = NULL, *path = NULL, *temporary = NULL;
	enum status status = files_make(output->queue, "out", true, &directory, err);
	if (status != STATUS_OK)
		return status;
	path = file_path(output, "");
	temporary = file_path(output, ".new");
	status = write_file(temporary, output, err);
	if (status == STATUS_OK && rename(temporary, path) < 0) {
		status = error_errno(err, errno, "rename to %s", path);
		unlink(temporary);
	}
	if (status == STATUS_OK) {
		status = file_sync_directory(directory, err);
		if (status != STATUS_OK)
			unlink(path);
	}
	free(temporary);
	free(path);
	free(directory);
	return status;
}

enum status output_keep(struct output *output, struct error *err)
{
	struct stat st;
	if (fstat(output->descriptor, &st) < 0)
		return error_errno(err, errno, "look at what a command wrote");
	output->length = (uint64_t)st.st_size;
	output->filed = output->length > QUEUE_OUTPUT_SHORT;
	output->bytes = NULL;
	if (output->filed)
		return file_it(output, err);
	/* Its background processes may still append to the file, or truncate it. */
	ssize_t n;
	char *all = xmalloc(output->length + 1);
	do
		n = pread(output->descriptor, all, output->length, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		free(all);
		return error_errno(err, errno, "read what a command wrote");
	}
	all[n] = '\0';
	output->bytes = all;
	output->length = (uint64_t)n;
	return STATUS_OK;
}

void output_remove(
	const struct queue *queue, uint64_t id, const char *token, enum output_stream stream)
{
	static const char *const suffixes[] = {"", ".new"};
	const struct output output = {.queue = queue, .id = id, .token = token, .stream = stream};
	for (int i = 0; i < 2; i++) {
		char *path = file_path(&output, suffixes[i]);
		unlink(path);
		free(path);
	}
}

void output_remove_both(const struct queue *queue, uint64_t id, const char *token)
{
	output_remove(queue, id, token, OUTPUT_OUT);
	output_remove(queue, id, token, OUTPUT_ERR);
}

/* ---- Printing it later ---- */

static enum status say_gone(uint64_t id, struct error *err)
{
	return error_set(err, STATUS_NO,
		"the output of command %" PRIu64 " is gone: the command was forgotten or put back",
		id);
}

/*
 * The file of an output is missing. It is removed after the store has forgotten the result, so it
 * is damage only if the store still has the result.
 */
static enum status explain_missing(
	struct queue *queue, const struct output *output, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct queue_result now;
	queue_key_at(queue, key, "done", output->id);
	enum status status = queue_get(queue, key, &queue_result_record, &now, NULL, err);
	if (status == STATUS_OK && !strcmp(now.token, output->token)) {
		char *path = file_path(output, "");
		status = error_set(err, STATUS_DAMAGED,
			"%s, the output of command %" PRIu64 ", is not there", path, output->id);
		free(path);
		return status;
	}
	return status == STATUS_OK || status == STATUS_NO ? say_gone(output->id, err) : status;
}

static enum status print_file(
	struct queue *queue, const struct output *output, int to, struct error *err)
{
	enum status status = STATUS_OK;
	bool read_failed;
	char *path = file_path(output, "");
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (from < 0) {
		status = errno == ENOENT ? explain_missing(queue, output, err)
					 : error_errno(err, errno, "open %s", path);
		goto out;
	}
	int number = output_copy(from, to, 0, output->length, &read_failed);
	if (number == ENODATA)
		status = error_set(err, STATUS_DAMAGED,
			"%s is shorter than the %" PRIu64 " bytes that command %" PRIu64 " wrote",
			path, output->length, output->id);
	else if (number)
		status = error_errno(
			err, number, "%s %s", read_failed ? "read" : "write the output of", path);
	close(from);
out:
	free(path);
	return status;
}

enum status output_print(struct queue *queue, uint64_t id, const struct queue_result *result,
	enum output_stream stream, int to, struct error *err)
{
	bool filed = stream == OUTPUT_OUT ? result->out_filed : result->err_filed;
	uint64_t length = stream == OUTPUT_OUT ? result->out : result->err;
	char key[QUEUE_KEY_MAX];
	struct store_entry entry = {0};
	if (length == 0)
		return STATUS_OK;
	if (filed)
		return print_file(queue,
			&(struct output){queue, id, result->token, stream, .length = length}, to,
			err);
	queue_key_at(queue, key, stream_name(stream), id);
	enum status status = store_get(queue->store, key, &entry, err);
	if (status == STATUS_OK && entry.length != length)
		status = error_set(err, STATUS_NO, "command %" PRIu64 " has run again since", id);
	else if (status == STATUS_OK && file_write_all(to, entry.value, entry.length) < 0)
		status = error_errno(err, errno, "write the output");
	else if (status == STATUS_NO)
		status = say_gone(id, err);
	store_entry_release(&entry);
	return status;
}
