/* SPDX-License-Identifier: MIT */
#include "ckpt/gone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/manifest.h"
#include "ckpt/marks.h"
#include "ckpt/parallel.h"
#include "ckpt/tree.h"

#define THREADS_MAX 4
/* Up to this number of entries, more threads are not worth it. */
#define FEW 32

enum status gone_lock(int directory, const char *path, int64_t wait, struct error *err)
{
	int64_t deadline = clock_after(wait);
	while (flock(directory, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return STATUS_OK;
		if (clock_now() >= deadline)
			return error_set(err, STATUS_TEMPORARY,
				"another prune of %s is still at work; try again later", path);
		clock_sleep_until(clock_now() + clock_jitter(50));
	}
	return STATUS_OK;
}

enum status gone_rename(int directory, const char *entry, uint64_t inode, char gone[CKPT_GONE_SIZE],
	struct error *err)
{
	struct stat st;
	int number = fstatat(directory, entry, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
	if (number && number != ENOENT)
		return error_errno(err, number, "look at %s", entry);
	if (number || st.st_ino != inode)
		return error_set(err, STATUS_NO, "%s is gone already", entry);
	if (!ckpt_name_gone(gone, entry))
		return error_set(err, STATUS_USAGE, "the name of %s is too long", entry);
	if (renameat(directory, entry, directory, gone) < 0)
		return errno == ENOENT ? error_set(err, STATUS_NO, "%s is gone already", entry)
				       : error_errno(err, errno, "rename %s", entry);
	if (fstatat(directory, gone, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino != inode) {
		/* Another process has just put a different one there. */
		(void)file_rename_new(directory, gone, directory, entry);
		return error_set(err, STATUS_NO, "%s is gone already", entry);
	}
	return STATUS_OK;
}

enum status gone_give_back(int directory, const char *path, const char *gone, struct error *err)
{
	const char *entry = ckpt_name_read_gone(gone);
	int number = file_rename_new(directory, gone, directory, entry);
	return number ? error_set(err, STATUS_TEMPORARY,
				"%s: cannot rename %s back to %s: %s; the next prune tries it again",
				path, gone, entry, strerror(number))
		      : STATUS_OK;
}

/* Delete an entry, and of a checkpoint of ours the files first, then the marks. */
static enum status delete_entry(int directory, const char *gone, struct error *err)
{
	struct file_names names = {0};
	int root = openat(directory, gone, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum status status = root < 0 ? STATUS_OK : file_read_names(root, gone, &names, err);
	for (int marks = 0; marks < 2; marks++)
		for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
			if (ckpt_name_is_reserved(names.names[i]) == marks &&
				strcmp(names.names[i], CKPT_MANIFEST) != 0)
				status = file_remove_tree_at(root, names.names[i], err);
	file_names_release(&names);
	if (root >= 0)
		close(root);
	return status == STATUS_OK ? file_remove_tree_at(directory, gone, err)
				   : error_prefix(err, "%s", gone);
}

struct deleting {
	int directory;
	const char *const *gone;
	enum status *statuses;
};

static enum status delete_one(void *context, size_t i, struct error *err)
{
	const struct deleting *work = context;
	return work->statuses[i] = delete_entry(work->directory, work->gone[i], err);
}

enum status gone_delete(int directory, const char *path, const char *const *gone, size_t count,
	enum status *statuses, struct error *err)
{
	struct deleting work = {directory, gone, statuses};
	struct error why;
	/* Without this, after a crash the old name could be there with half the files. EINVAL: this
	 * filesystem cannot sync a directory, and need not. */
	if (count && fsync(directory) < 0 && errno != EINVAL) {
		enum status status = error_errno(err, errno, "sync directory %s", path);
		for (size_t i = 0; i < count; i++)
			statuses[i] = status;
		return status;
	}
	enum status status =
		parallel(count, count > FEW ? THREADS_MAX : 1, delete_one, &work, &why);
	return status == STATUS_OK ? STATUS_OK : error_set(err, status, "%s: %s", path, why.text);
}

/* Whether a hidden checkpoint of ours is worth its name. STATUS_NO: it is not whole, nor pinned. */
static enum status check_whole(int directory, const char *path, const char *gone, struct error *err)
{
	struct manifest manifest = {0};
	bool pinned = false;
	char *file = xprintf("%s/%s/%s", path, gone, CKPT_MANIFEST);
	int root = openat(directory, gone, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum status status = root < 0 ? error_errno(err, errno, "open %s", gone)
				      : marks_read_pinned(directory, gone, &pinned, err);
	if (status == STATUS_OK && !pinned)
		status = manifest_load(file, &manifest, err);
	if (status == STATUS_OK && !pinned)
		status = tree_compare(root, &manifest, false, err);
	manifest_release(&manifest);
	if (root >= 0)
		close(root);
	free(file);
	return status;
}

/* Give a hidden entry its name back, if that is allowed. *deleting: it is to be deleted. */
static enum status settle_one(int directory, const char *path, const char *gone, bool locked,
	bool *deleting, struct error *err)
{
	const char *entry = ckpt_name_read_gone(gone);
	enum ckpt_name_kind kind = ckpt_name_read(entry).kind;
	*deleting = kind > CKPT_NAME_STEP ||
		    faccessat(directory, entry, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	/* What is empty was deleted but for itself. */
	if (*deleting || !locked || unlinkat(directory, gone, AT_REMOVEDIR) == 0)
		return STATUS_OK;
	enum status status =
		kind == CKPT_NAME_STEP ? check_whole(directory, path, gone, err) : STATUS_OK;
	*deleting = status == STATUS_NO;
	if (status != STATUS_OK)
		return *deleting ? STATUS_OK : error_prefix(err, "%s/%s", path, gone);
	int number = file_rename_new(directory, gone, directory, entry);
	*deleting = number == EEXIST || number == ENOTEMPTY;
	return number == 0 || number == ENOENT || *deleting
		       ? STATUS_OK
		       : error_errno(err, number, "rename %s/%s back to %s", path, gone, entry);
}

enum status gone_settle(int directory, const char *path, bool locked,
	bool (*is_wanted)(const void *context, const char *entry), const void *context,
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
		const char *entry = ckpt_name_read_gone(names.names[i]);
		bool deleting;
		if (!entry || !is_wanted(context, entry))
			continue;
		enum status status =
			settle_one(directory, path, names.names[i], locked, &deleting, &one);
		if (status != STATUS_OK && first == STATUS_OK)
			first = error_set(err, status, "%s", one.text);
		if (status == STATUS_OK && deleting)
			gone[count++] = names.names[i];
	}
	enum status status = gone_delete(directory, path, gone, count, statuses, &one);
	if (status != STATUS_OK && first == STATUS_OK)
		first = error_set(err, status, "%s", one.text);
	for (size_t i = 0; i < count && deleted; i++)
		*deleted += statuses[i] == STATUS_OK;
	file_names_release(&names);
	free(gone);
	free(statuses);
	return first;
}
