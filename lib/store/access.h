/* SPDX-License-Identifier: MIT */
/*
 * Whether a file or directory of the store can be trusted: it belongs to us or root, and no
 * other user can write it. A user who can write a directory can put a journal or a lock file beside
 * the database: so a directory that others can write is refused even where it is sticky, like /tmp.
 */
#ifndef STORE_ACCESS_H
#define STORE_ACCESS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * shared_group: one of our groups may write it, and its members may own it. STATUS_PERMISSION, or
 * STATUS_DAMAGED where it is neither a directory nor a regular file.
 */
enum status access_check(
	const char *path, const struct stat *st, bool shared_group, struct error *err);

/*
 * Let the group write the directory, whatever the umask is, and keep the setgid bit that it got, so
 * that what is made in it belongs to the group, too. 0, or -1 with errno.
 */
int access_share_directory(const char *path);

#endif
