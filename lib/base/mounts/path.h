/* SPDX-License-Identifier: MIT */
/* Paths of which a part may be missing. */
#ifndef BASE_MOUNTS_PATH_H
#define BASE_MOUNTS_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Like realpath, but a missing part stays as it is written: make path absolute, without "." and
 * "..", and follow all symbolic links. False: too long, too many links, or no current directory.
 */
bool path_resolve(const char *path, char real[PATH_MAX]);

/*
 * Open (O_PATH) the deepest existing directory on the absolute path. *length: the length of its
 * path. -1 and errno on failure.
 */
int path_open_deepest(const char *path, size_t *length);

#endif
