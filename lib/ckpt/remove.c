/* SPDX-License-Identifier: MIT */
#include "ckpt/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/directory.h"
#include "ckpt/marks.h"
#include "ckpt/names.h"
#include "ckpt/parallel.h"

#define THREADS_MAX 4
/* Up to this number of entries, more threads are not worth it. */
#define FEW 32

enum status remove_begin(int directory, const char *entry, uint64_t inode,
	char name[CKPT_REMOVED_SIZE], struct error *err)
{
	struct stat st;
	if (fstatat(directory, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? error_set(err, STATUS_NO, "%s is gone already", entry)
				       : error_errno(err, errno, "look at %s", entry);
	if (st.st_ino != inode)
		return error_set(err, STATUS_NO, "%s is gone already", entry);
	if (!ckpt_name_removed(name, entry, inode))
		return error_set(err, STATUS_USAGE, "the name of %s is too long", entry);
	if (renameat(directory, entry, directory, name) < 0)
		return errno == ENOENT || errno == EEXIST || errno == ENOTEMPTY
			       ? error_set(err, STATUS_NO, "%s is gone already", entry)
			       : error_errno(err, errno, "rename %s", entry);
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino != inode) {
		/* Another process has just put a different one there: rename it back. */
		(void)file_rename_new(directory, name, directory, entry);
		return error_set(err, STATUS_NO, "%s is gone already", entry);
	}
	return STATUS_OK;
}

struct deleting {
	int directory;
	char (*names)[CKPT_REMOVED_SIZE];
	enum status *statuses;
};

static enum status delete_one(void *context, size_t i, struct error *err)
{
	const struct deleting *work = context;
	return work->statuses[i] = file_remove_tree_at(work->directory, work->names[i], err);
}

enum status remove_delete(int directory, const char *path, const char *const *names, size_t count,
	enum status *statuses, struct error *err)
{
	struct error why;
	/* Without this, after a crash the old name could be there with half the files. EINVAL: this
	 * filesystem cannot sync a directory, and need not. */
	if (count && fsync(directory) < 0 && errno != EINVAL) {
		enum status status = error_errno(err, errno, "sync directory %s", path);
		for (size_t i = 0; i < count; i++)
			statuses[i] = status;
		return status;
	}
	struct deleting work = {directory, xcalloc(count + 1, sizeof(*work.names)), statuses};
	for (size_t i = 0; i < count; i++) {
		ckpt_name_deleting(work.names[i], names[i]);
		if (renameat(directory, names[i], directory, work.names[i]) < 0)
			strcpy(work.names[i], names[i]);
	}
	enum status status =
		parallel(count, count > FEW ? THREADS_MAX : 1, delete_one, &work, &why);
	free(work.names);
	return status == STATUS_OK ? STATUS_OK : error_set(err, status, "%s: %s", path, why.text);
}

/*
 * Whether an entry was renamed away by mistake: it has another inode, or was pinned at the same
 * time. If so, rename it back, unless its name is in use. The process that renamed it checks this,
 * too, but may have been killed.
 */
static enum status give_back(
	int directory, const char *name, bool ours, bool *given, struct error *err)
{
	struct stat st;
	uint64_t inode = 0;
	bool pinned = false;
	enum status status = STATUS_OK;
	const char *entry = ckpt_name_read_removed(name, &inode);
	*given = false;
	if (inode == 0) /* it may be half deleted */
		return STATUS_OK;
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		*given = errno == ENOENT;
		return *given ? STATUS_OK : error_errno(err, errno, "look at %s", name);
	}
	if (ours && ckpt_name_read(entry).kind == CKPT_NAME_STEP)
		status = marks_read_pinned(directory, name, &pinned, err);
	if (status != STATUS_OK || (st.st_ino == inode && !pinned))
		return status;
	int number = file_rename_new(directory, name, directory, entry);
	*given = number == 0 || number == ENOENT;
	if (number && number != ENOENT && number != EEXIST && number != ENOTEMPTY)
		return error_errno(err, number, "give back %s", name);
	return STATUS_OK;
}

/* The entry whose hidden name this is, if it is in scope; otherwise NULL. */
static const char *entry_in(const struct remove_scope *scope, const char *name)
{
	struct layout_name read;
	uint64_t inode;
	const char *entry = ckpt_name_read_removed(name, &inode);
	if (!entry || (scope->entry && strcmp(entry, scope->entry) != 0))
		return NULL;
	return scope->entry || layout_reads(scope->choice, entry, &read) ? entry : NULL;
}

enum status remove_finish(int directory, const char *path, const struct remove_scope *scope,
	size_t *deleted, struct error *err)
{
	struct file_names names = {0};
	size_t count = 0;
	struct error one;
	enum status first = file_read_names(directory, path, &names, err);
	size_t all = first == STATUS_OK ? names.count : 0;
	const char **gone = xcalloc(names.count + 1, sizeof(*gone));
	enum status *statuses = xcalloc(names.count + 1, sizeof(*statuses));
	for (size_t i = 0; i < all; i++) {
		bool given;
		const char *entry = entry_in(scope, names.names[i]);
		if (!entry)
			continue;
		enum status status = give_back(
			directory, names.names[i], layout_is_native(scope->choice), &given, &one);
		if (status == STATUS_OK && !given)
			gone[count++] = names.names[i];
		else if (status != STATUS_OK && first == STATUS_OK)
			first = error_set(err, status, "%s: %s", path, one.text);
	}
	enum status status = remove_delete(directory, path, gone, count, statuses, &one);
	if (status != STATUS_OK && first == STATUS_OK)
		first = error_set(err, status, "%s", one.text);
	for (size_t i = 0; i < count && deleted; i++)
		*deleted += statuses[i] == STATUS_OK;
	file_names_release(&names);
	free(gone);
	free(statuses);
	return first;
}

enum status remove_begin_ours(
	const char *path, const char *entry, uint64_t inode, struct error *err)
{
	char name[CKPT_REMOVED_SIZE];
	int descriptor;
	enum status status = ckpt_directory_open(path, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = remove_begin(descriptor, entry, inode, name, err);
	close(descriptor);
	return status;
}

enum status remove_finish_ours(const char *path, const char *entry, struct error *err)
{
	const struct remove_scope scope = {&layout_ours, entry};
	int descriptor;
	enum status status = ckpt_directory_open(path, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = remove_finish(descriptor, path, &scope, NULL, err);
	close(descriptor);
	return status;
}
