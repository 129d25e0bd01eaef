/* SPDX-License-Identifier: MIT */
/* Make directories only if their filesystem is mounted. */
#include "base/mounts/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mounts/path.h"
#include "base/xalloc.h"

enum status mounts_make_directory(const char *path, mode_t mode, bool *made, struct error *err)
{
	struct stat st;
	int parent;
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	char *copy = xstrndup(path, length), *above = file_directory_of(copy);
	*made = false;
	enum status status = mounts_open(above, &parent, err);
	if (status == STATUS_OK) {
		const char *name = strrchr(copy, '/') ? strrchr(copy, '/') + 1 : copy;
		*made = *name && mkdirat(parent, name, mode) == 0;
		int number = errno;
		bool there = *made || !*name || fstatat(parent, name, &st, 0) == 0;
		if (!there)
			status = error_errno(err, number, "make directory %s", path);
		else if (!*made && *name && !S_ISDIR(st.st_mode))
			status = error_set(err, STATUS_DAMAGED, "%s is not a directory", path);
		close(parent);
	}
	free(above);
	free(copy);
	return status;
}

/* Make the directories of the relative path `missing` below descriptor. Cuts up `missing`. */
static enum status make_below(
	int descriptor, const char *path, char *missing, mode_t mode, struct error *err)
{
	enum status status = STATUS_OK;
	int at = dup(descriptor);
	for (char *name; status == STATUS_OK && (name = strsep(&missing, "/"));) {
		if (!*name)
			continue;
		int result = mkdirat(at, name, mode), number = errno;
		int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (next < 0)
			status = error_errno(
				err, result < 0 ? number : errno, "make directory %s", path);
		close(at);
		at = next;
	}
	if (at >= 0)
		close(at);
	return status;
}

enum status mounts_make_directories(
	const char *path, const char *base, mode_t mode, struct error *err)
{
	char real[PATH_MAX];
	struct stat st;
	size_t there;
	if (stat(base, &st) < 0 || !S_ISDIR(st.st_mode)) {
		int number = errno;
		if (number != ENOENT && number != ENOTDIR)
			return error_errno(err, number, "look at %s", base);
		return error_set(err, STATUS_TEMPORARY,
			"cannot make %s: there is no directory %s; is its filesystem mounted?",
			path, base);
	}
	if (!path_resolve(path, real))
		return error_set(err, STATUS_USAGE, "%.200s: the path is too long", path);
	int descriptor = path_open_deepest(real, &there);
	if (descriptor < 0)
		return error_errno(err, errno, "look at %s", path);
	enum status status = mounts_confirm(path, descriptor, err);
	if (status == STATUS_OK)
		status = make_below(descriptor, path, real + there, mode, err);
	close(descriptor);
	return status;
}

enum status mounts_allow_new(const char *path, struct error *err)
{
	static const struct {
		const char *name;
		unsigned long first; /* its value at the first start, if it is set */
	} counts[] = {{"SLURM_RESTART_COUNT", 0}, {"PREEMPT_ATTEMPT", 1}};
	const char *meant = getenv("PREEMPT_NEW");
	if (meant && strcmp(meant, "1") == 0)
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const char *value = getenv(counts[i].name);
		if (value && strtoul(value, NULL, 10) > counts[i].first)
			return error_set(err, STATUS_TEMPORARY,
				"%s does not exist, but $%s (%.20s) says that this is a "
				"restart, so it should exist: check that its filesystem is "
				"mounted and that the path is the same as before; nothing was "
				"created; to create it, set PREEMPT_NEW=1",
				path, counts[i].name, value);
	}
	return STATUS_OK;
}
