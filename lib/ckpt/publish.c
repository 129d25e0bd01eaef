/* SPDX-License-Identifier: MIT */
#include "ckpt/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/directory.h"
#include "ckpt/names.h"
#include "ckpt/remove.h"

/* We give up when other processes have changed the link this number of times. */
#define TRIES 100

enum status publish_rename(const char *directory, const char *staging, uint64_t inode,
	uint64_t step, uint64_t damaged, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct stat st;
	enum status status = STATUS_OK;
	ckpt_name_step(name, step);
	char *from = ckpt_directory_path(directory, staging);
	char *to = ckpt_directory_path(directory, name);
	if (damaged) {
		status = remove_begin_ours(directory, name, damaged, err);
		if (status != STATUS_OK)
			goto out;
	}
	if (lstat(from, &st) < 0 ? errno == ENOENT : st.st_ino != inode) {
		status = STATUS_NO;
		goto out;
	}
	/* An existing checkpoint is not replaced: it is not empty, because it has a manifest. */
	int number = file_rename_new(AT_FDCWD, from, AT_FDCWD, to);
	if (number) {
		bool lost = number == ENOENT || number == EEXIST || number == ENOTEMPTY;
		status = lost ? STATUS_NO : error_errno(err, number, "rename %s to %s", from, to);
	}
out:
	free(from);
	free(to);
	return status;
}

/* Remove the records in path that were only needed for writing. */
static enum status sweep(const char *path, struct error *err)
{
	struct file_names names = {0};
	int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Another process may have removed it. */
	if (descriptor < 0)
		return errno == ENOENT ? STATUS_OK : error_errno(err, errno, "open");
	enum status status = file_read_names(descriptor, path, &names, err);
	for (size_t i = 0; i < names.count; i++)
		if (ckpt_name_is_transient(names.names[i]) &&
			unlinkat(descriptor, names.names[i], 0) < 0 && errno != ENOENT)
			status =
				error_set(err, error_status_of_errno(errno), "%s", strerror(errno));
	file_names_release(&names);
	close(descriptor);
	return status;
}

/*
 * The name of the highest step that has a manifest. False: there is none, or DIR is not readable.
 */
static bool highest_step(const char *directory, int descriptor, char name[CKPT_NAME_SIZE])
{
	struct file_names names = {0};
	uint64_t highest = 0;
	bool found = false;
	bool read = file_read_names(descriptor, directory, &names, NULL) == STATUS_OK;
	for (size_t i = 0; i < names.count && read; i++) {
		char manifest[CKPT_NAME_SIZE + sizeof(CKPT_MANIFEST) + 1];
		struct ckpt_name one = ckpt_name_read(names.names[i]);
		if (one.kind != CKPT_NAME_STEP || (found && one.step <= highest))
			continue;
		snprintf(manifest, sizeof(manifest), "%.*s/%s", CKPT_NAME_SIZE - 1, names.names[i],
			CKPT_MANIFEST);
		if (faccessat(descriptor, manifest, F_OK, 0) < 0)
			continue;
		found = true;
		highest = one.step;
		ckpt_name_step(name, highest);
	}
	file_names_release(&names);
	return found;
}

/* Read the link. Returns 1: it names a step; 0: there is no link; -1: something else is there. */
static int read_link(int descriptor, char target[CKPT_NAME_SIZE])
{
	ssize_t n = readlinkat(descriptor, CKPT_LATEST, target, CKPT_NAME_SIZE - 1);
	if (n < 0)
		return errno == ENOENT ? 0 : -1;
	target[n] = '\0';
	return ckpt_name_read(target).kind == CKPT_NAME_STEP ? 1 : -1;
}

/*
 * After changing the link, check it again. If several processes publish at the same time, the last
 * one to change the link then leaves it correct.
 */
void publish_latest(const char *directory, int descriptor, char *warning, size_t size)
{
	char want[CKPT_NAME_SIZE] = "", have[CKPT_NAME_SIZE];
	int number = 0;
	for (int tries = 0; tries < TRIES; tries++) {
		if (!highest_step(directory, descriptor, want))
			break;
		int kind = read_link(descriptor, have);
		if (kind < 0) {
			snprintf(warning, size,
				"%s/%s was not made by ckpt-rotate and was left "
				"unchanged",
				directory, CKPT_LATEST);
			break;
		}
		if (kind == 1 && strcmp(want, have) == 0)
			break;
		(void)unlinkat(descriptor, CKPT_LATEST_ONGOING, 0);
		if (symlinkat(want, descriptor, CKPT_LATEST_ONGOING) < 0 && errno != EEXIST)
			number = errno;
		else if (renameat(descriptor, CKPT_LATEST_ONGOING, descriptor, CKPT_LATEST) < 0 &&
			 errno != ENOENT)
			number = errno;
		if (number) {
			snprintf(warning, size, "cannot set the link %s/%s: %s", directory,
				CKPT_LATEST, strerror(number));
			break;
		}
	}
	/* A killed process may have left it; a live one makes its link again. */
	(void)unlinkat(descriptor, CKPT_LATEST_ONGOING, 0);
}

enum status publish_settle(
	const char *directory, uint64_t step, char *warning, size_t size, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	int descriptor;
	struct error ignored;
	ckpt_name_step(name, step);
	char *path = ckpt_directory_path(directory, name);
	char *parent = ckpt_directory_path(directory, "..");
	enum status status;
	if (sweep(path, &ignored) != STATUS_OK)
		snprintf(warning, size,
			"cannot remove all records of the writing in %s: %s; the same command does "
			"it when run again",
			path, ignored.text);
	status = ckpt_directory_open(directory, &descriptor, err);
	if (status != STATUS_OK)
		goto out;
	publish_latest(directory, descriptor, warning, size);
	close(descriptor);
	status = file_sync_directory(directory, err);
	if (status != STATUS_OK)
		goto out;
	/*
	 * Delete a damaged checkpoint that had this name. Do it after our own sync of DIR: deleting
	 * syncs DIR, too, and the kernel reports an error of the disk only to one of two syncs.
	 */
	(void)remove_finish_ours(directory, name, NULL);
	/* The begin that made DIR may have been killed before it could sync the parent. If we must
	 * not read the parent, another user has made DIR. */
	if (file_sync_directory(parent, &ignored) != STATUS_OK &&
		ignored.status != STATUS_PERMISSION)
		status = error_set(err, ignored.status, "%s", ignored.text);
out:
	free(path);
	free(parent);
	return status;
}
