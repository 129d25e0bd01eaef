/* SPDX-License-Identifier: MIT */
#include "ckpt/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mounts.h"
#include "base/xalloc.h"
#include "ckpt/commit/marks.h"
#include "ckpt/delete.h"

char *ckpt_directory_path(const char *directory, const char *name)
{
	return xprintf("%s/%s", directory, name);
}

/* DIR cannot be opened because some part of the way is missing: which? */
static enum status judge_absence(const char *directory, struct error *err)
{
	struct stat st;
	if (lstat(directory, &st) == 0)
		return error_set(err, STATUS_TEMPORARY,
			"%s is a symbolic link whose target does not exist; is its filesystem "
			"mounted?",
			directory);
	if (errno != ENOENT)
		return error_errno(err, errno, "look for %s", directory);
	size_t length = strlen(directory);
	char *copy = xstrdup(directory);
	while (length > 1 && copy[length - 1] == '/')
		copy[--length] = '\0';
	char *parent = xneeded(file_directory_of(copy));
	const char *name = strrchr(copy, '/') ? strrchr(copy, '/') + 1 : copy;
	enum status status;
	int descriptor = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0 && errno == ENOENT)
		status = error_set(err, STATUS_TEMPORARY,
			"neither %s nor %s exists; is the filesystem mounted?", directory, parent);
	else if (descriptor < 0)
		status = error_errno(err, errno, "read %s", parent);
	else if (mounts_confirm(directory, descriptor, err) != STATUS_OK)
		status = err ? err->status : STATUS_TEMPORARY;
	else if (fstatat(descriptor, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		status = error_set(err, STATUS_TEMPORARY,
			"%s appeared and disappeared while it "
			"was opened; try again",
			directory);
	else if (errno != ENOENT)
		status = error_errno(err, errno, "look for %s", directory);
	else
		status = error_set(err, STATUS_NO, "there is no directory %s", directory);
	if (descriptor >= 0)
		close(descriptor);
	free(parent);
	free(copy);
	return status;
}

enum status ckpt_directory_open(const char *directory, int *descriptor, struct error *err)
{
	/* An empty name is most likely an unset variable in a script, not a run that has not
	 * started. */
	if (!*directory)
		return error_set(err, STATUS_USAGE, "the name of the directory is empty");
	int opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opened < 0) {
		int number = errno;
		if (number == ENOENT)
			return judge_absence(directory, err);
		/* An empty mount point may be closed to us, too. */
		if (mounts_check(directory, -1, err) == STATUS_NO)
			return mounts_confirm(directory, -1, err);
		if (number == ENOTDIR)
			return error_set(err, STATUS_USAGE, "%s is not a directory", directory);
		return error_errno(err, number, "open directory %s", directory);
	}
	enum status status = mounts_confirm(directory, opened, err);
	if (status == STATUS_OK)
		*descriptor = opened;
	else
		close(opened);
	return status;
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
	return mounts_confirm(directory, descriptor, err);
}

static int by_kind_and_step(const void *a, const void *b)
{
	const struct ckpt_name *x = &((const struct ckpt_directory_entry *)a)->read;
	const struct ckpt_name *y = &((const struct ckpt_directory_entry *)b)->read;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->attempt != y->attempt)
		return x->attempt < y->attempt ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

enum status ckpt_directory_list(const char *directory, int descriptor,
	struct ckpt_directory_entries *entries, struct error *err)
{
	struct ckpt_directory_entries read = {0};
	struct file_names names = {0};
	enum status status = file_read_names(descriptor, directory, &names, err);
	if (status == STATUS_OK)
		read.items = xcalloc(names.count + 1, sizeof(*read.items));
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		struct ckpt_directory_entry *item = &read.items[read.count];
		item->read = ckpt_name_read(names.names[i]);
		if (item->read.kind == CKPT_NAME_FOREIGN)
			continue;
		snprintf(item->name, sizeof(item->name), "%.*s", (int)sizeof(item->name) - 1,
			names.names[i]);
		read.count++;
	}
	file_names_release(&names);
	if (status != STATUS_OK)
		return status;
	if (read.count)
		qsort(read.items, read.count, sizeof(*read.items), by_kind_and_step);
	*entries = read;
	return STATUS_OK;
}

enum status ckpt_directory_remove_begin(
	const char *directory, const char *name, uint64_t inode, char **removed, struct error *err)
{
	struct stat st;
	char gone[CKPT_NAME_SIZE];
	enum status status = STATUS_OK;
	ckpt_name_removed(gone, name, inode);
	char *from = ckpt_directory_path(directory, name);
	char *to = ckpt_directory_path(directory, gone);
	if (lstat(from, &st) < 0)
		status = errno == ENOENT ? STATUS_NO : error_errno(err, errno, "look at %s", from);
	else if (!S_ISDIR(st.st_mode) || st.st_ino != inode)
		status = STATUS_NO;
	else if (rename(from, to) < 0)
		status = errno == ENOENT || errno == EEXIST || errno == ENOTEMPTY
				 ? STATUS_NO
				 : error_errno(err, errno, "rename %s", from);
	else if (lstat(to, &st) == 0 && st.st_ino != inode) {
		/* Another process put a different directory there in that moment: give it back
		 * its name. */
		(void)file_rename_new(AT_FDCWD, to, AT_FDCWD, from);
		status = STATUS_NO;
	}
	if (status == STATUS_NO)
		error_set(err, STATUS_NO, "%s is gone already", name);
	free(from);
	if (status == STATUS_OK)
		*removed = to;
	else
		free(to);
	return status;
}

/*
 * Whether what is on its way to deletion is there by mistake: another directory than was meant, or
 * one that was pinned in that moment. Who renamed it looks, too, but may have been killed. Then it
 * gets its name back, unless another has it.
 */
static enum status give_back(int descriptor, const char *gone, bool *given, struct error *err)
{
	struct stat st;
	bool pinned = false;
	const char *name = ckpt_name_of_removed(gone);
	enum status status = STATUS_OK;
	*given = false;
	if (fstatat(descriptor, gone, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? STATUS_OK : error_errno(err, errno, "look at %s", gone);
	if (ckpt_name_read(name).kind == CKPT_NAME_STEP)
		status = marks_read_pinned(descriptor, gone, &pinned, err);
	if (status != STATUS_OK || (st.st_ino == ckpt_name_inode_of_removed(gone) && !pinned))
		return status;
	int number = file_rename_new(descriptor, gone, descriptor, name);
	*given = number == 0 || number == ENOENT;
	if (number && number != ENOENT && number != EEXIST && number != ENOTEMPTY)
		return error_errno(err, number, "give back %s", gone);
	return STATUS_OK;
}

enum status ckpt_directory_remove_finish(
	const char *directory, const char *name, size_t *deleted, struct error *err)
{
	struct ckpt_directory_entries entries = {0};
	const char **names = NULL;
	enum status *statuses = NULL;
	size_t count = 0;
	int descriptor;
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = ckpt_directory_list(directory, descriptor, &entries, err);
	if (status != STATUS_OK)
		goto out;
	names = xcalloc(entries.count + 1, sizeof(*names));
	statuses = xcalloc(entries.count + 1, sizeof(*statuses));
	for (size_t i = 0; i < entries.count; i++) {
		const struct ckpt_directory_entry *entry = &entries.items[i];
		struct error one;
		bool given;
		if (entry->read.kind != CKPT_NAME_REMOVED ||
			(name && strcmp(ckpt_name_of_removed(entry->name), name) != 0))
			continue;
		enum status looked = give_back(descriptor, entry->name, &given, &one);
		if (looked == STATUS_OK && !given)
			names[count++] = entry->name;
		else if (looked != STATUS_OK && status == STATUS_OK)
			status = error_set(err, looked, "%s", one.text);
	}
	struct error why;
	/* Otherwise a crash of the machine could show the old name with half the files. */
	enum status removed = count ? file_sync_directory(directory, &why) : STATUS_OK;
	if (removed == STATUS_OK)
		removed = delete_all(descriptor, names, count, statuses, &why);
	else
		count = 0;
	if (removed != STATUS_OK && status == STATUS_OK)
		status = error_set(err, removed, "%s", why.text);
	if (status != STATUS_OK)
		error_prefix(err, "%s", directory);
	for (size_t i = 0; i < count && deleted; i++)
		*deleted += statuses[i] == STATUS_OK;
out:
	close(descriptor);
	free(names);
	free(statuses);
	free(entries.items);
	return status;
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
	status = mounts_allow_new(directory, err);
	if (status == STATUS_OK)
		status = mounts_make_directory(directory, 0777, &made, err);
	if (status != STATUS_OK || !made)
		return status;
	char *parent = ckpt_directory_path(directory, "..");
	status = file_sync_directory(parent, err);
	free(parent);
	return status;
}
