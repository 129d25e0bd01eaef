/* SPDX-License-Identifier: MIT */
#include "queue/output/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"

#define ITEMS 1000 /* directories of commands in one FILES/item/THOUSANDS */

static enum status check_directory(const char *path, struct error *err)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return error_errno(err, errno, "look at %s", path);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, STATUS_DAMAGED, "%s is not a directory", path);
	return access_check(path, &st, false, err);
}

static enum status make_directory(const char *path, bool durable, struct error *err)
{
	bool made;
	/* Asking before mkdir is faster: a network filesystem may cache the answer. */
	if (access(path, F_OK) == 0)
		return check_directory(path, err);
	enum status status = file_make_directory(path, 0700, &made, err);
	if (status == STATUS_OK && durable) {
		char *above = file_directory_of(path);
		status = file_sync_directory(above, err);
		free(above);
	}
	return status == STATUS_OK ? check_directory(path, err) : status;
}

enum status files_make(
	const struct queue *queue, const char *below, bool durable, char **path, struct error *err)
{
	char *above = file_directory_of(queue->files);
	char *made = xprintf("%s/%s", queue->files, below);
	enum status status = STATUS_OK;
	/* Make FILES, and its parent directory if that is missing; those above must exist. Both are
	 * always durable: a later caller that needs this does not make them again. */
	if (access(above, F_OK) < 0 && errno == ENOENT)
		status = make_directory(above, true, err);
	if (status == STATUS_OK)
		status = make_directory(queue->files, true, err);
	for (char *end = made + strlen(queue->files); status == STATUS_OK && *end;) {
		end = strchrnul(end + 1, '/');
		char kept = *end;
		*end = '\0';
		status = make_directory(made, durable, err);
		*end = kept;
	}
	free(above);
	if (status == STATUS_OK)
		*path = made;
	else
		free(made);
	return status;
}

/* "item/THOUSANDS/ID" */
static char *name_item(uint64_t id)
{
	return xprintf("item/%" PRIu64 "/%" PRIu64, id / ITEMS, id);
}

enum status files_make_item(const struct queue *queue, uint64_t id, char **path, struct error *err)
{
	char *name = name_item(id);
	enum status status = files_make(queue, name, false, path, err);
	free(name);
	return status;
}

void files_remove_item(const struct queue *queue, uint64_t id, bool whole)
{
	char *name = name_item(id), *path = xprintf("%s/%s", queue->files, name);
	if (whole)
		(void)file_remove_tree(path, NULL);
	else
		(void)rmdir(path);
	free(path);
	free(name);
}
