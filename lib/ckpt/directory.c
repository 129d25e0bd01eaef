/* SPDX-License-Identifier: MIT */
#include "ckpt/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mounts.h"
#include "base/xalloc.h"

char *ckpt_directory_path(const char *directory, const char *name)
{
	return xprintf("%s/%s", directory, name);
}

/* DIR was not found: say what is missing. STATUS_OK: nothing is, by now. */
static enum status explain_absence(const char *directory, struct error *err)
{
	struct stat st;
	char *path = xstrdup(directory);
	for (size_t length = strlen(path); length > 1 && path[length - 1] == '/';)
		path[--length] = '\0';
	char *parent = file_directory_of(path);
	/* Opening the parent makes a network filesystem ask its server. */
	int unread = file_ask_for_names(AT_FDCWD, parent);
	int absent = unread == 0 && lstat(path, &st) < 0 ? errno : 0;
	enum status status = STATUS_OK;
	if (unread == ENOENT)
		status = error_set(err, STATUS_TEMPORARY,
			"neither %s nor %s exists; is the filesystem mounted?", directory, parent);
	else if (unread)
		status = error_errno(err, unread, "read %s", parent);
	else if (absent == ENOENT)
		status = error_set(err, STATUS_NO, "there is no directory %s", directory);
	else if (absent)
		status = error_errno(err, absent, "look for %s", directory);
	else if (S_ISLNK(st.st_mode))
		status = error_set(err, STATUS_TEMPORARY,
			"%s is a symbolic link whose target does not exist; is its filesystem "
			"mounted?",
			directory);
	free(parent);
	free(path);
	return status;
}

enum status ckpt_directory_open(const char *directory, int *descriptor, struct error *err)
{
	/* Most likely an unset variable in a script, not a run that has not started. */
	if (!*directory)
		return error_set(err, STATUS_USAGE, "the name of the directory is empty");
	enum status status = mounts_check(err);
	if (status != STATUS_OK)
		return status;
	int opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opened < 0 && errno == ENOENT) {
		status = explain_absence(directory, err);
		if (status != STATUS_OK)
			return status;
		opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (opened < 0 && errno == ENOTDIR)
		return error_set(err, STATUS_USAGE, "%s is not a directory", directory);
	if (opened < 0)
		return error_errno(err, errno, "open directory %s", directory);
	*descriptor = opened;
	return STATUS_OK;
}

enum status ckpt_directory_confirm(const char *directory, int descriptor, struct error *err)
{
	struct stat held, named;
	if (descriptor >= 0) {
		if (fstat(descriptor, &held) < 0 || stat(directory, &named) < 0)
			return error_set(err, STATUS_TEMPORARY, "%s vanished while it was read: %s",
				directory, strerror(errno));
		if (held.st_dev != named.st_dev || held.st_ino != named.st_ino)
			return error_set(err, STATUS_TEMPORARY, "%s was replaced while it was read",
				directory);
	}
	return mounts_check(err);
}

enum status ckpt_directory_make(const char *directory, struct error *err)
{
	bool made;
	int descriptor;
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status == STATUS_OK)
		close(descriptor);
	if (status != STATUS_NO)
		return status;
	status = file_make_directory(directory, 0777, &made, err);
	if (status != STATUS_OK || !made)
		return status;
	char *parent = ckpt_directory_path(directory, "..");
	status = file_sync_directory(parent, err);
	free(parent);
	return status;
}
