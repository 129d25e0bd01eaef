/* SPDX-License-Identifier: MIT */
/* The way to a path, also where a part of it is missing. */
#ifndef BASE_MOUNTS_PATH_H
#define BASE_MOUNTS_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Path as an absolute one without "." and "..", with all symbolic links followed that are there;
 * what is missing stays as it is written. (realpath fails where anything is missing.) False: too
 * long, too many links, or no current directory.
 */
bool path_resolve(const char *path, char real[PATH_MAX]);

/*
 * Open (O_PATH) the deepest directory on the way to path that is there; path is absolute. *length:
 * of that directory's path. -1 and errno where it cannot be told.
 */
int path_open_deepest(const char *path, size_t *length);

#endif
