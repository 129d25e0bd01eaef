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
#include "ckpt/parallel.h"

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

enum status gone_rename(int directory, const char *path, const char *entry, uint64_t inode,
	char gone[CKPT_GONE_SIZE], struct error *err)
{
	struct stat st;
	int number = fstatat(directory, entry, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
	if (number && number != ENOENT)
		return error_errno(err, number, "look at %s/%s", path, entry);
	if (number || st.st_ino != inode)
		return error_set(err, STATUS_NO, "%s is gone already", entry);
	if (!ckpt_name_gone(gone, entry))
		return error_set(err, STATUS_USAGE, "the name of %s/%s is too long", path, entry);
	if (renameat(directory, entry, directory, gone) < 0)
		return errno == ENOENT ? error_set(err, STATUS_NO, "%s is gone already", entry)
				       : error_errno(err, errno, "rename %s/%s", path, entry);
	if (fstatat(directory, gone, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino == inode)
		return STATUS_OK;
	/* Another process has just put a different one there. */
	enum status status = gone_give_back(directory, path, gone, err);
	return status == STATUS_OK ? error_set(err, STATUS_NO, "%s is gone already", entry)
				   : status;
}

enum status gone_give_back(int directory, const char *path, const char *gone, struct error *err)
{
	const char *entry = ckpt_name_read_gone(gone);
	int number = file_rename_new(directory, gone, directory, entry);
	return number && number != ENOENT
		       ? error_set(err, STATUS_TEMPORARY,
				 "cannot rename %s/%s back to %s: %s; the next prune tries it again",
				 path, gone, entry, strerror(number))
		       : STATUS_OK;
}

struct deleting {
	int directory;
	char (*names)[CKPT_GONE_SIZE]; /* "": it was gone already, or could not be renamed */
	enum status *statuses;
};

/* Rename an entry, so that it is only deleted from now on. name: its new name; "": it is gone. */
static enum status condemn(
	int directory, const char *gone, char name[CKPT_GONE_SIZE], struct error *err)
{
	snprintf(name, CKPT_GONE_SIZE, "%s", gone);
	ckpt_name_condemn(name);
	if (renameat(directory, gone, directory, name) == 0)
		return STATUS_OK;
	name[0] = '\0';
	return errno == ENOENT ? STATUS_OK : error_errno(err, errno, "rename %s", gone);
}

static enum status delete_one(void *context, size_t i, struct error *err)
{
	const struct deleting *work = context;
	return *work->names[i] ? work->statuses[i] =
					 file_remove_tree_at(work->directory, work->names[i], err)
			       : STATUS_OK;
}

enum status gone_delete(int directory, const char *path, const char *const *gone, size_t count,
	enum status *statuses, struct error *err)
{
	struct deleting work = {directory, xcalloc(count + 1, sizeof(*work.names)), statuses};
	struct error why;
	enum status first = STATUS_OK;
	for (size_t i = 0; i < count; i++) {
		statuses[i] = condemn(directory, gone[i], work.names[i], &why);
		if (statuses[i] != STATUS_OK && first == STATUS_OK)
			first = error_set(err, statuses[i], "%s: %s", path, why.text);
	}
	/* Without this, after a crash an entry could have its own name and half the files. EINVAL:
	 * this filesystem cannot sync a directory, and need not. */
	enum status status = STATUS_OK;
	if (count && fsync(directory) < 0 && errno != EINVAL) {
		status = error_errno(err, errno, "sync directory %s", path);
		for (size_t i = 0; i < count; i++) {
			statuses[i] = status;
			if (*work.names[i])
				(void)renameat(directory, work.names[i], directory, gone[i]);
		}
	} else if (parallel(count, count > FEW ? THREADS_MAX : 1, delete_one, &work, &why) !=
		   STATUS_OK) {
		status = first == STATUS_OK ? error_set(err, why.status, "%s: %s", path, why.text)
					    : first;
	}
	free(work.names);
	return status == STATUS_OK ? first : status;
}

/* Give a hidden entry its name back, if that is allowed. *deleting: it is to be deleted. */
static enum status settle_one(int directory, const char *path, const char *gone, bool locked,
	bool *deleting, struct error *err)
{
	const char *entry = ckpt_name_read_gone(gone);
	*deleting = ckpt_name_is_condemned(gone) || ckpt_name_read(entry).kind > CKPT_NAME_STEP ||
		    faccessat(directory, entry, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (*deleting || !locked)
		return STATUS_OK;
	int number = file_rename_new(directory, gone, directory, entry);
	*deleting = number == EEXIST || number == ENOTEMPTY;
	return number == 0 || number == ENOENT || *deleting
		       ? STATUS_OK
		       : error_errno(err, number, "rename %s/%s back to %s", path, gone, entry);
}

enum status gone_settle(int directory, const char *path, bool locked,
	bool (*is_wanted)(const void *context, const char *entry), const void *context,
	struct error *err)
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
		bool deleting = false;
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
	file_names_release(&names);
	free(gone);
	free(statuses);
	return first;
}
