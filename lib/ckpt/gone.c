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
#include "ckpt/layouts.h"

enum status gone_lock(int directory, const char *path, int64_t wait, struct error *err)
{
	int64_t deadline = clock_after(wait);
	while (flock(directory, LOCK_EX | LOCK_NB) < 0 &&
		(errno == EWOULDBLOCK || errno == EINTR)) {
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
	if (number == 0 && st.st_ino != inode)
		number = ENOENT;
	if (number == 0 && !ckpt_name_gone(gone, entry))
		number = ENAMETOOLONG;
	if (number == 0 && renameat(directory, entry, directory, gone) < 0)
		number = errno;
	if (number && number != ENOENT)
		return error_errno(err, number, "rename %s/%s", path, entry);
	if (number == 0 &&
		(fstatat(directory, gone, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino == inode))
		return STATUS_OK;
	/* Another process may just have put a different one there. */
	enum status status = number ? STATUS_OK : gone_give_back(directory, path, gone, err);
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

enum status gone_delete(int directory, const char *path, char (*gone)[CKPT_GONE_SIZE], size_t count,
	enum status *statuses, struct error *err)
{
	enum status first = STATUS_OK;
	struct error why;
	const char *what = "sync";
	int number = 0;
	for (size_t i = 0; i < count; i++) {
		char before[CKPT_GONE_SIZE];
		memcpy(before, gone[i], sizeof(before));
		if (*before)
			ckpt_name_condemn(gone[i]);
		if (*before && renameat(directory, before, directory, gone[i]) < 0 &&
			errno != ENOENT) {
			number = errno;
			what = "rename in";
			memcpy(gone[i], before, sizeof(before));
		}
	}
	/* EINVAL: this filesystem cannot sync a directory, and need not. */
	if (count && number == 0 && fsync(directory) < 0 && errno != EINVAL)
		number = errno;
	for (size_t i = 0; i < count; i++) {
		if (!*gone[i])
			continue;
		statuses[i] = number ? error_errno(&why, number, "%s directory %s", what, path)
				     : file_remove_tree_at(directory, gone[i], &why);
		if (number == 0)
			*gone[i] = '\0';
		if (statuses[i] != STATUS_OK && first == STATUS_OK)
			first = error_set(err, statuses[i], "%s: %s", path, why.text);
	}
	return first;
}

bool gone_is_known(const struct layout *layout, const char *entry)
{
	uint64_t step;
	bool inside;
	return ckpt_name_read(entry).kind != CKPT_NAME_FOREIGN ||
	       layout_reads(layout, entry, &step, &inside);
}

enum status gone_settle(int directory, const char *path, const struct layout *layout,
	const char *only, size_t *count, struct error *err)
{
	struct file_names names = {0};
	struct error why;
	size_t dead = 0;
	enum status first = file_read_names(directory, path, &names, err);
	char(*gone)[CKPT_GONE_SIZE] = xcalloc(names.count + 1, sizeof(*gone));
	enum status *statuses = xcalloc(names.count + 1, sizeof(*statuses));
	for (size_t i = 0; i < names.count && first == STATUS_OK; i++) {
		const char *name = names.names[i], *entry = ckpt_name_read_gone(name);
		if (!entry || (only ? strcmp(entry, only) != 0 : !gone_is_known(layout, entry)))
			continue;
		if (count)
			++*count;
		if (ckpt_name_is_condemned(name) || ckpt_name_read(entry).kind > CKPT_NAME_STEP ||
			faccessat(directory, entry, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			snprintf(gone[dead++], sizeof(*gone), "%s", name);
		else if (!only)
			first = gone_give_back(directory, path, name, err);
	}
	enum status status = gone_delete(directory, path, gone, dead, statuses, &why);
	if (first == STATUS_OK && status != STATUS_OK)
		first = error_set(err, status, "%s", why.text);
	file_names_release(&names);
	free(gone);
	free(statuses);
	return first;
}
