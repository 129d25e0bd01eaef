/* SPDX-License-Identifier: MIT */
/*
 * Parses the tables in which administrators list mount points, and the kernel's list of mounts.
 * Pure functions of the text of those files; mounts.c reads the files.
 */
#ifndef BASE_MOUNTS_MOUNT_TABLES_H
#define BASE_MOUNTS_MOUNT_TABLES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Called for each mount point, an absolute path as it is written, in the order of the table. */
typedef void mount_point_found(void *context, const char *point);

/*
 * /etc/fstab: the directories of all lines, including noauto and bind mounts, except "/", which is
 * always mounted.
 */
void mount_tables_fstab(const char *text, mount_point_found *found, void *context);

/* A list of absolute directories, one per line. Other lines, such as comments, are ignored. */
void mount_tables_list(const char *text, mount_point_found *found, void *context);

/*
 * The mount point of a systemd unit, as its name gives it: "mnt-a\x2db.mount" is /mnt/a-b. False:
 * not the name of a mount or automount unit, or that of the root.
 */
bool mount_tables_unit(const char *name, char point[PATH_MAX]);

/* One line of an automounter's master map. */
enum autofs_kind {
	AUTOFS_POINT,	  /* name: a directory in which the automounter mounts */
	AUTOFS_DIRECT,	  /* name: the map that lists the mount points, as it is written */
	AUTOFS_INCLUDE,	  /* name: another master map */
	AUTOFS_DIRECTORY, /* name: a directory of further master maps, NAME.autofs */
};
typedef void autofs_found(void *context, enum autofs_kind kind, const char *name);
void mount_tables_autofs_master(const char *text, autofs_found *found, void *context);
/* A direct map: its keys are mount points. */
void mount_tables_autofs_direct(const char *text, mount_point_found *found, void *context);

/* One line of /proc/self/mountinfo; options are those of the mount and of its filesystem. */
struct mount_entry {
	long number;
	char point[PATH_MAX];
	char type[64];
	char options[2048];
};
/* Find the mount with this number. False: this process can reach no such mount. */
bool mount_tables_find(const char *mountinfo, long number, struct mount_entry *entry);
/* Whether something is mounted on exactly this directory. */
bool mount_tables_has(const char *mountinfo, const char *point);

/* Whether path, both absolute and without "." and "..", is top or lies below it. */
bool mount_tables_is_below(const char *path, const char *top);

#endif
