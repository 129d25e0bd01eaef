/* SPDX-License-Identifier: MIT */
/*
 * Whether a file or directory of the store can be trusted: it belongs to us or root, and no other
 * user can write to it. A user who can write to a directory can put a journal or a lock file beside
 * the database, so a directory that others can write to is refused even if it is sticky, like /tmp.
 */
#ifndef STORE_ACCESS_H
#define STORE_ACCESS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * shared_group: its group may write to it, and if that is a group of ours, any user may own it.
 * STATUS_PERMISSION: not to be trusted. STATUS_DAMAGED: neither a directory nor a regular file.
 */
enum status access_check(
	const char *path, const struct stat *st, bool shared_group, struct error *err);

/*
 * Let the group write to the directory, whatever the umask is. Its setgid bit stays, so files that
 * are made in it belong to the group, too. Returns 0, or -1 with errno.
 */
int access_share_directory(const char *path);

#endif
