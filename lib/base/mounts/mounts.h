/* SPDX-License-Identifier: MIT */
/*
 * Checks whether the filesystems that should be mounted on a path are mounted. An empty mount point
 * looks like an empty directory, so callers ask here before they answer "there is none", and before
 * they make a store or a directory. These lists tell the two cases apart: /etc/fstab; systemd's
 * *.mount and *.automount; the automounter's maps in /etc; and directories that hold a marker file
 * while their filesystem is mounted, which are listed in /etc/preempt/mounts,
 * ~/.config/preempt/mounts and $PREEMPT_MOUNTS. Other mount points cannot be checked.
 */
#ifndef BASE_MOUNTS_MOUNTS_H
#define BASE_MOUNTS_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/mounts/mount_tables.h"
#include "base/text.h"

/* The marker file, and the machine's list of marked directories. */
#define MOUNTS_MARKER ".preempt-mounted"
#define MOUNTS_LIST   "/etc/preempt/mounts"

/*
 * STATUS_OK: every filesystem that should be mounted on the way to path is mounted, and descriptor
 * is on the last of them. descriptor: a file or directory that was opened at path or above; -1:
 * use the deepest existing directory of path. STATUS_NO: a filesystem is not mounted. Others: the
 * check has failed.
 */
enum status mounts_check(const char *path, int descriptor, struct error *err);
/* The same, but marker files are ignored. */
enum status mounts_check_tables(const char *path, int descriptor, struct error *err);
/* As mounts_check, for a caller that wants to use path: STATUS_TEMPORARY in place of STATUS_NO. */
enum status mounts_confirm(const char *path, int descriptor, struct error *err);

/*
 * Open a directory for reading, and confirm it. All that is made through the descriptor is then on
 * that filesystem, even if it is unmounted afterwards. If it cannot be opened, the status is that
 * of error_status_of_errno.
 */
enum status mounts_open(const char *directory, int *descriptor, struct error *err);

/*
 * Make one directory in a confirmed parent, which must exist. *made: it did not exist before.
 * STATUS_DAMAGED: path exists, but is no directory.
 */
enum status mounts_make_directory(const char *path, mode_t mode, bool *made, struct error *err);
/*
 * Make path and its missing parents, each with mode, all below base. STATUS_TEMPORARY: base does
 * not exist.
 */
enum status mounts_make_directories(
	const char *path, const char *base, mode_t mode, struct error *err);

/*
 * STATUS_OK: a new store or checkpoint directory may be made at path. STATUS_TEMPORARY: the
 * environment says that this is a restart, so it should exist already.
 */
enum status mounts_allow_new(const char *path, struct error *err);

/* The mount that a descriptor is on. False: not known, or this process cannot reach it. */
bool mounts_find(int descriptor, struct mount_entry *entry);

/* The path of this user's list. False: no XDG_CONFIG_HOME and no HOME, or it is too long. */
bool mounts_own_list(char path[PATH_MAX]);

/*
 * Write the marker file into directory, and add directory to the list of this user (for root: of
 * the machine). *list gets the path of the list. STATUS_OK also if both were done before.
 * STATUS_TEMPORARY: nothing is mounted there. STATUS_NO: directory is marked but not listed,
 * because the list lies on the same filesystem and would go away with it.
 */
enum status mounts_mark(const char *directory, struct text *list, struct error *err);

#endif
