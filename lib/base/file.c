/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

/* The most EINTR and EAGAIN in a row: a filesystem that returns nothing else must not hang us. */
#define INTERRUPTIONS	1000
#define TEMPORARY_TRIES 100

int file_write_all(int descriptor, const void *bytes, size_t length)
{
	const char *at = bytes;
	struct pollfd polled = {.fd = descriptor, .events = POLLOUT};
	int interrupted = 0;
	while (length) {
		ssize_t n = write(descriptor, at, length);
		if (n < 0 && (errno == EINTR || errno == EAGAIN) && ++interrupted < INTERRUPTIONS) {
			if (errno == EAGAIN)
				(void)poll(&polled, 1, -1);
			continue;
		}
		if (n < 0)
			return -1;
		if (n == 0) {
			errno = ENOSPC;
			return -1;
		}
		at += n;
		length -= (size_t)n;
		interrupted = 0;
	}
	return 0;
}

int file_stat(int directory, const char *path, int flags, struct stat *st)
{
	int result, tries = 100; /* with 1 ms between two */
	while ((result = fstatat(directory, path, st, flags)) < 0 && errno == EBADFD && --tries > 0)
		poll(NULL, 0, 1);
	return result;
}

int64_t file_changed(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

int file_fstat(int descriptor, struct stat *st)
{
	return file_stat(descriptor, "", AT_EMPTY_PATH, st);
}

char *file_directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

int file_ask_for_names(int outer, const char *directory)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
	    descriptor = openat(outer, directory, flags);
	int number = descriptor < 0 ? errno : 0;
	/* ENOENT may come from a stale cache entry of the directory, too: refresh its parent. */
	if (number == ENOENT && strspn(directory, "./") < strlen(directory)) {
		char *parent = file_directory_of(directory);
		if (file_ask_for_names(outer, parent) == 0) {
			descriptor = openat(outer, directory, flags);
			number = descriptor < 0 ? errno : 0;
		}
		free(parent);
	}
	if (descriptor >= 0)
		close(descriptor);
	return number;
}

enum status file_make_directory(const char *path, mode_t mode, bool *made, struct error *err)
{
	struct stat st;
	*made = mkdirat(AT_FDCWD, path, mode) == 0;
	int number = errno;
	if (*made)
		return STATUS_OK;
	if (stat(path, &st) < 0)
		return number == EEXIST ? error_errno(err, errno, "look at %s", path)
					: error_errno(err, number, "make directory %s", path);
	return S_ISDIR(st.st_mode) ? STATUS_OK
				   : error_set(err, STATUS_DAMAGED, "%s is not a directory", path);
}

enum status file_sync_directory(const char *path, struct error *err)
{
	int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0)
		return error_errno(err, errno, "open directory %s", path);
	/* Some filesystems cannot sync a directory (EINVAL) and need not. */
	int result = fsync(descriptor);
	int number = errno;
	close(descriptor);
	return result == 0 || number == EINVAL
		       ? STATUS_OK
		       : error_errno(err, number, "sync directory %s", path);
}

mode_t file_new_mode(void)
{
	mode_t mask = umask(077);
	umask(mask);
	return 0666 & ~mask;
}

enum status file_write_whole(const char *path, const void *bytes, size_t length, mode_t mode,
	bool durable, struct error *err)
{
	enum status status = STATUS_TEMPORARY;
	char *directory = file_directory_of(path);
	char *temporary = xprintf("%s.XXXXXX", path);
	int descriptor = mkostemp(temporary, O_CLOEXEC);
	if (descriptor < 0) {
		status = error_errno(err, errno, "create %s", temporary);
		goto out;
	}
	if (fchmod(descriptor, mode) < 0 || file_write_all(descriptor, bytes, length) < 0 ||
		(durable && fsync(descriptor) < 0)) {
		status = error_errno(err, errno, "write %s", path);
		goto remove;
	}
	if (close(descriptor) < 0) {
		descriptor = -1;
		status = error_errno(err, errno, "write %s", path);
		goto remove;
	}
	descriptor = -1;
	if (rename(temporary, path) < 0) {
		status = error_errno(err, errno, "rename to %s", path);
		goto remove;
	}
	status = durable ? file_sync_directory(directory, err) : STATUS_OK;
	goto out;
remove:
	unlink(temporary);
out:
	if (descriptor >= 0)
		close(descriptor);
	free(temporary);
	free(directory);
	return status;
}

enum status file_read_descriptor(
	int descriptor, const char *name, size_t limit, struct text *text, struct error *err)
{
	char buffer[4096];
	size_t total = 0;
	enum status status = STATUS_OK;
	for (;;) {
		ssize_t n = read(descriptor, buffer, sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			status = error_errno(err, errno, "read %s", name);
		if (n <= 0)
			break;
		total += (size_t)n;
		if (total <= limit)
			text_add_bytes(text, buffer, (size_t)n);
		if (total > limit || text->too_long) {
			status = error_set(
				err, STATUS_DAMAGED, "%s is larger than %zu bytes", name, limit);
			break;
		}
	}
	return status;
}

enum status file_read_whole(const char *path, size_t limit, struct text *text, struct error *err)
{
	struct stat st;
	/* Other users may be able to write in that directory: do not block on a pipe that they
	 * put there. */
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (descriptor < 0) {
		int number = errno;
		error_errno(err, number, "open %s", path);
		if (number == ENOENT)
			return error_set(err, STATUS_NO, "%s does not exist", path);
		if (number == ENXIO)
			return error_set(err, STATUS_DAMAGED, "%s is not a file", path);
		return error_status_of_errno(number);
	}
	enum status status = STATUS_OK;
	if (fstat(descriptor, &st) < 0)
		status = error_errno(err, errno, "look at %s", path);
	else if (!S_ISREG(st.st_mode))
		status = error_set(err, STATUS_DAMAGED, "%s is not a file", path);
	else
		status = file_read_descriptor(descriptor, path, limit, text, err);
	close(descriptor);
	return status;
}

enum status file_read_names(
	int directory, const char *path, struct file_names *names, struct error *err)
{
	size_t capacity = 0;
	int descriptor = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
	int number = stream ? 0 : errno;
	while (stream) {
		errno = 0;
		struct dirent *entry = readdir(stream);
		if (!entry) {
			number = errno;
			break;
		}
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		names->names = xgrow(names->names, names->count, &capacity, sizeof(*names->names));
		names->names[names->count++] = xstrdup(entry->d_name);
	}
	if (stream)
		closedir(stream);
	else if (descriptor >= 0)
		close(descriptor);
	return number ? error_errno(err, number, "read directory %s", path) : STATUS_OK;
}

void file_names_release(struct file_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct file_names){0};
}

int file_make_temporary(int directory, char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	char *end = name + strlen(name) - 6;
	unsigned char random[6];
	for (int tries = 0; tries < TEMPORARY_TRIES; tries++) {
		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -1;
		for (int i = 0; i < 6; i++)
			end[i] = letters[random[i] % (sizeof(letters) - 1)];
		int descriptor = openat(
			directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (descriptor >= 0 || errno != EEXIST)
			return descriptor;
	}
	return -1;
}

static int remove_at(int parent, const char *name)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	int descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (descriptor < 0)
		return errno == ENOENT ? 0 : -1;
	DIR *directory = fdopendir(descriptor);
	if (!directory) {
		close(descriptor);
		return -1;
	}
	int result = 0;
	while (result == 0) {
		errno = 0;
		struct dirent *entry = readdir(directory);
		if (!entry) {
			result = errno ? -1 : 0;
			break;
		}
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			result = remove_at(descriptor, entry->d_name);
	}
	int number = errno;
	closedir(directory);
	errno = number;
	if (result == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		result = -1;
	return result;
}

enum status file_remove_tree(const char *path, struct error *err)
{
	return remove_at(AT_FDCWD, path) == 0 ? STATUS_OK
					      : error_errno(err, errno, "remove %s", path);
}

enum status file_remove_tree_at(int directory, const char *name, struct error *err)
{
	return remove_at(directory, name) == 0 ? STATUS_OK
					       : error_errno(err, errno, "remove %s", name);
}

int file_rename_new(int from, const char *name, int to, const char *new_name)
{
	if (renameat2(from, name, to, new_name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return errno;
	if (linkat(from, name, to, new_name, 0) == 0) {
		(void)unlinkat(from, name, 0);
		return 0;
	}
	/* Directories cannot have hard links, and some filesystems have none: replace new_name. */
	if (errno != EPERM && errno != EOPNOTSUPP)
		return errno;
	return renameat(from, name, to, new_name) < 0 ? errno : 0;
}
