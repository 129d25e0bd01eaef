/* SPDX-License-Identifier: MIT */
#include "queue/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mounts.h"
#include "base/xalloc.h"
#include "store/access.h"

#define ITEMS 1000 /* in one directory */

static enum status failed(struct error *err, const char *action, const char *path, int number)
{
	return error_set(err, error_status_of_errno(number), "cannot %s %s: %s%s", action, path,
		strerror(number), number == ENOSPC || number == EDQUOT ? "; free space there" : "");
}

bool files_shared(const struct queue *queue)
{
	struct stat st;
	return stat(store_where(queue->store), &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_mode & S_IWGRP);
}

static enum status check_directory(
	const char *path, const struct stat *st, bool shared, struct error *err)
{
	if (!S_ISDIR(st->st_mode))
		return error_set(err, STATUS_DAMAGED, "%s is not a directory", path);
	return access_check(path, st, shared, err);
}

static enum status make_directory(const char *path, bool shared, bool durable, struct error *err)
{
	struct stat st;
	bool made;
	/* Asked first: a network filesystem may remember that, but not what mkdir says. */
	if (stat(path, &st) == 0)
		return check_directory(path, &st, shared, err);
	enum status status = mounts_make_directory(path, shared ? 0770 : 0700, &made, err);
	if (status != STATUS_OK)
		return status;
	if (stat(path, &st) < 0)
		return failed(err, "look at", path, errno);
	/* What is made in it shall be of the group, too. */
	if (shared && st.st_uid == geteuid() && chmod(path, 0770 | (st.st_mode & S_ISGID)) < 0)
		return failed(err, "make", path, errno);
	if (durable) {
		char *above = file_directory_of(path);
		status = file_sync_directory(above, err);
		free(above);
		if (status != STATUS_OK)
			return status;
	}
	return stat(path, &st) < 0 ? failed(err, "look at", path, errno)
				   : check_directory(path, &st, shared, err);
}

/* FILES, and the one above it where that is missing. */
static enum status make_top(const struct queue *queue, bool shared, bool durable, struct error *err)
{
	struct stat st;
	char *above = file_directory_of(queue->files);
	enum status status = stat(above, &st) < 0 && errno == ENOENT
				     ? make_directory(above, shared, durable, err)
				     : STATUS_OK;
	if (status == STATUS_OK)
		status = make_directory(queue->files, shared, durable, err);
	free(above);
	return status;
}

enum status files_make(
	const struct queue *queue, const char *below, bool durable, char **path, struct error *err)
{
	char *made = xprintf("%s%s%s", queue->files, below ? "/" : "", below ? below : "");
	bool shared = files_shared(queue);
	enum status status = make_top(queue, shared, durable, err);
	for (char *end = made + strlen(queue->files); status == STATUS_OK && *end;) {
		end = strchrnul(end + 1, '/');
		char kept = *end;
		*end = '\0';
		status = make_directory(made, shared, durable, err);
		*end = kept;
	}
	if (status == STATUS_OK)
		*path = made;
	else
		free(made);
	return status;
}

/* "item/THOUSANDS/ID" */
static void name_item(char name[64], uint64_t id)
{
	snprintf(name, 64, "item/%" PRIu64 "/%" PRIu64, id / ITEMS, id);
}

enum status files_make_item(const struct queue *queue, uint64_t id, char **path, struct error *err)
{
	char name[64];
	name_item(name, id);
	return files_make(queue, name, false, path, err);
}

static char *item_path(const struct queue *queue, uint64_t id)
{
	char name[64];
	name_item(name, id);
	return xprintf("%s/%s", queue->files, name);
}

void files_remove_item(const struct queue *queue, uint64_t id)
{
	char *path = item_path(queue, id);
	(void)rmdir(path);
	free(path);
}

void files_forget_item(const struct queue *queue, uint64_t id)
{
	char *path = item_path(queue, id);
	(void)file_remove_tree(path, NULL);
	free(path);
}
