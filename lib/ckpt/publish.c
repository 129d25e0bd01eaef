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
#include "ckpt/gone.h"

/* We give up when other processes have changed the link this number of times. */
#define TRIES 100

/* Rename a damaged checkpoint away; publish_settle deletes it. */
static enum status replace(
	const char *directory, const char *name, uint64_t inode, struct error *err)
{
	char gone[CKPT_GONE_SIZE];
	int descriptor;
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = gone_rename(descriptor, directory, name, inode, gone, err);
	close(descriptor);
	return status;
}

enum status publish_rename(const char *directory, const char *staging, uint64_t inode,
	uint64_t step, uint64_t damaged, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct stat st;
	ckpt_name_step(name, step);
	enum status status = damaged ? replace(directory, name, damaged, err) : STATUS_OK;
	if (status != STATUS_OK)
		return status;
	if (lstat(staging, &st) < 0 ? errno == ENOENT : st.st_ino != inode)
		return error_set(err, STATUS_NO, "%s is gone", staging);
	/* An existing checkpoint is not replaced: it is not empty, because it has a manifest. */
	char *to = ckpt_directory_path(directory, name);
	int number = file_rename_new(AT_FDCWD, staging, AT_FDCWD, to);
	if (number)
		status = error_errno(err, number, "rename %s to %s", staging, to);
	free(to);
	return number == ENOENT || number == EEXIST || number == ENOTEMPTY ? STATUS_NO : status;
}

/* Remove the records in path that were only needed for writing. */
static void sweep(const char *path, struct text *warning)
{
	struct file_names names = {0};
	struct error why;
	int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Another process may have removed it. */
	if (descriptor < 0 && errno == ENOENT)
		return;
	enum status status = descriptor < 0 ? error_errno(&why, errno, "open %s", path)
					    : file_read_names(descriptor, path, &names, &why);
	for (size_t i = 0; i < names.count; i++)
		if (ckpt_name_is_transient(names.names[i]) &&
			unlinkat(descriptor, names.names[i], 0) < 0 && errno != ENOENT)
			status = error_errno(&why, errno, "remove %s/%s", path, names.names[i]);
	file_names_release(&names);
	if (descriptor >= 0)
		close(descriptor);
	if (status != STATUS_OK)
		text_addf(warning,
			"not all records of the writing were removed: %s; the same command does it "
			"when run again\n",
			why.text);
}

/* The highest step that has a manifest. False: there is none, or DIR is not readable. */
static bool find_highest(const char *directory, int descriptor, char name[CKPT_NAME_SIZE])
{
	struct file_names names = {0};
	struct ckpt_name highest = {0};
	bool read = file_read_names(descriptor, directory, &names, NULL) == STATUS_OK;
	for (size_t i = 0; i < names.count && read; i++) {
		char manifest[CKPT_NAME_SIZE + sizeof(CKPT_MANIFEST) + 1];
		struct ckpt_name one = ckpt_name_read(names.names[i]);
		if (one.kind != CKPT_NAME_STEP || (highest.kind && one.step <= highest.step))
			continue;
		ckpt_name_step(name, one.step);
		snprintf(manifest, sizeof(manifest), "%s/%s", name, CKPT_MANIFEST);
		if (faccessat(descriptor, manifest, F_OK, 0) == 0)
			highest = one;
	}
	file_names_release(&names);
	ckpt_name_step(name, highest.step);
	return highest.kind == CKPT_NAME_STEP;
}

/*
 * After changing the link, check it again. If several processes publish at the same time, the last
 * one to change the link then leaves it correct.
 */
void publish_latest(const char *directory, int descriptor, struct text *warning)
{
	char want[CKPT_NAME_SIZE], have[CKPT_NAME_SIZE];
	for (int tries = 0; tries < TRIES; tries++) {
		bool any = find_highest(directory, descriptor, want);
		ssize_t n = readlinkat(descriptor, CKPT_LATEST, have, sizeof(have) - 1);
		bool none = n < 0 && errno == ENOENT;
		have[n < 0 ? 0 : n] = '\0';
		if (!none && ckpt_name_read(have).kind != CKPT_NAME_STEP) {
			text_addf(warning,
				"%s/%s was not made by ckpt-rotate and was left unchanged\n",
				directory, CKPT_LATEST);
			break;
		}
		if (any ? strcmp(want, have) == 0
			: none || faccessat(descriptor, have, F_OK, 0) == 0)
			break;
		int result;
		(void)unlinkat(descriptor, CKPT_LATEST_ONGOING, 0);
		if (!any)
			result = unlinkat(descriptor, CKPT_LATEST, 0);
		else if ((result = symlinkat(want, descriptor, CKPT_LATEST_ONGOING)) == 0)
			result = renameat(descriptor, CKPT_LATEST_ONGOING, descriptor, CKPT_LATEST);
		if (result < 0 && errno != EEXIST && errno != ENOENT) {
			text_addf(warning, "cannot set the link %s/%s: %s\n", directory,
				CKPT_LATEST, strerror(errno));
			break;
		}
	}
	/* A killed process may have left it; a live one makes its link again. */
	(void)unlinkat(descriptor, CKPT_LATEST_ONGOING, 0);
}

static bool is_it(const void *context, const char *entry)
{
	return strcmp(entry, context) == 0;
}

enum status publish_settle(
	const char *directory, uint64_t step, struct text *warning, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	int descriptor;
	struct error why;
	ckpt_name_step(name, step);
	char *path = ckpt_directory_path(directory, name);
	char *parent = ckpt_directory_path(directory, "..");
	sweep(path, warning);
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status == STATUS_OK) {
		publish_latest(directory, descriptor, warning);
		status = file_sync_directory(directory, err);
		/* Do this after our own sync of DIR: deleting syncs DIR, too, and the kernel
		 * reports an error of the disk only to one of two syncs. */
		if (status == STATUS_OK)
			(void)gone_settle(descriptor, directory, false, is_it, name, NULL);
		close(descriptor);
	}
	/* The begin that made DIR may have been killed before it could sync the parent. If we must
	 * not read the parent, another user has made DIR. */
	if (status == STATUS_OK && file_sync_directory(parent, &why) != STATUS_OK &&
		why.status != STATUS_PERMISSION)
		status = error_set(err, why.status, "%s", why.text);
	free(path);
	free(parent);
	return status;
}
