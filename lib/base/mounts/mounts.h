/* SPDX-License-Identifier: MIT */
/*
 * Whether the filesystems that belong on a path are mounted. An empty mount point looks like an
 * empty directory, so callers ask here before they answer "there is none", and before they make a
 * store or a directory. Lists by administrators and users tell the two cases apart: /etc/fstab;
 * systemd's *.mount and *.automount; the automounter's maps in /etc; and directories that hold a
 * marker file while their filesystem is mounted. Those are listed in /etc/preempt/mounts, in
 * ~/.config/preempt/mounts and in $PREEMPT_MOUNTS. A mount point that none of them names cannot be
 * checked.
 */
#ifndef BASE_MOUNTS_MOUNTS_H
#define BASE_MOUNTS_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/mounts/mount_tables.h"
#include "base/text.h"

/* The marker file, and the list of root. */
#define MOUNTS_MARKER ".preempt-mounted"
#define MOUNTS_LIST   "/etc/preempt/mounts"

/*
 * STATUS_OK: every filesystem that should be mounted on the way to path is, and descriptor is on
 * it: a file or directory that was opened at path or above; -1: the deepest directory on the way
 * that is there. STATUS_NO: one is not mounted. Other answers: that could not be found out.
 */
enum status mounts_check(const char *path, int descriptor, struct error *err);
/* The same, but marker files are ignored. */
enum status mounts_check_tables(const char *path, int descriptor, struct error *err);
/* As mounts_check, for a caller that wants to use path: STATUS_TEMPORARY where a filesystem is not
 * mounted. */
enum status mounts_confirm(const char *path, int descriptor, struct error *err);

/*
 * Open a directory for reading, confirmed. What is then made through the descriptor is made on that
 * filesystem, also if it is unmounted in the meantime. Fails by the errno of opening it.
 */
enum status mounts_open(const char *directory, int *descriptor, struct error *err);

/*
 * Make one directory in a confirmed parent, which must exist. made: it was not there before.
 * STATUS_DAMAGED: something else has the name.
 */
enum status mounts_make_directory(const char *path, mode_t mode, bool *made, struct error *err);
/*
 * Make path and its missing parents, each with mode, all below base, which must exist:
 * STATUS_TEMPORARY where it does not.
 */
enum status mounts_make_directories(
	const char *path, const char *base, mode_t mode, struct error *err);

/*
 * Whether a new store or checkpoint directory may be made at path. STATUS_TEMPORARY: no, the
 * environment says that this is a restart, so what was there should still be there.
 */
enum status mounts_allow_new(const char *path, struct error *err);

/* The mount that a descriptor is on. False: the kernel does not say, or it is out of reach. */
bool mounts_find(int descriptor, struct mount_entry *entry);

/* The list of this user, in its home. False: there is none, or its path is too long. */
bool mounts_own_list(char path[PATH_MAX]);

/*
 * Write the marker file into directory, and the directory into the list of this user (of root: the
 * machine's). list: the list's path. STATUS_OK also if both were there. STATUS_TEMPORARY: nothing
 * is mounted there. STATUS_NO: marked, but the list lies on the same filesystem and would go away
 * with it, so the directory was not written into it.
 */
enum status mounts_mark(const char *directory, struct text *list, struct error *err);

#endif
