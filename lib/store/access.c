/* SPDX-License-Identifier: MIT */
#include "store/access.h"

#include <unistd.h>

enum status access_check(
	const char *path, const struct stat *st, bool shared_group, struct error *err)
{
	bool directory = S_ISDIR(st->st_mode);
	if (!directory && !S_ISREG(st->st_mode))
		return error_set(err, STATUS_DAMAGED,
			"%s is neither a directory nor a regular file: not used", path);
	if (st->st_uid != geteuid() && st->st_uid != 0 &&
		!(shared_group && (st->st_gid == getegid() || group_member(st->st_gid))))
		return error_set(err, STATUS_PERMISSION,
			"%s belongs to user %u and we are user %u: not used; run as its owner%s",
			path, (unsigned)st->st_uid, (unsigned)geteuid(),
			shared_group ? " or as a member of its group" : "");
	if (st->st_mode & S_IWOTH)
		return error_set(err, STATUS_PERMISSION,
			directory ? "the directory %s is writable by everyone: not used for a "
				    "store; make a directory of your own in it (mkdir -m "
				    "700)"
				  : "%s is writable by everyone: not used; run: chmod o-w",
			path);
	if ((st->st_mode & S_IWGRP) && !shared_group)
		return error_set(err, STATUS_PERMISSION,
			"group %u can write %s: not used; run: chmod g-w, or add ?shared-group to the "
			"store's URL if the group is trusted",
			(unsigned)st->st_gid, path);
	return STATUS_OK;
}

int access_share_directory(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 ? chmod(path, 0770 | (st.st_mode & S_ISGID)) : -1;
}
