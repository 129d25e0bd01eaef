/* SPDX-License-Identifier: MIT */
#include "base/mounts/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mounts/path.h"
#include "base/xalloc.h"

#define TABLE_LIMIT ((size_t)8 << 20)
#define MAPS_DEEP   4 /* levels of master maps that include each other, at most */

/* A unit in an earlier directory overrides the one of the same name in a later directory. Left
 * out: /usr/lib/systemd/system, for the kernel's own filesystems, which hold no stores. */
static const char *const unit_directories[] = {"/etc/systemd/system", "/run/systemd/system",
	"/run/systemd/generator", "/usr/local/lib/systemd/system", "/run/systemd/generator.late"};
static const char *const master_maps[] = {"/etc/auto.master", "/etc/autofs/auto.master"};

struct check {
	const char *path;	 /* as it was given */
	char real[PATH_MAX];	 /* absolute, its symbolic links followed */
	struct text mountinfo;	 /* empty: not known */
	struct mount_entry here; /* the mount of the checked descriptor; point "": not known */
	const char *table;	 /* the path of the table that is read now */
	int depth;		 /* of included maps */
	enum status status;
	struct error *err;
};

/* The number of the mount that a descriptor is on; -1: not known. */
static long mount_number(int descriptor)
{
	char path[64];
	struct text text = {0};
	long number = -1;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", descriptor);
	if (file_read_whole(path, 4096, &text, NULL) == STATUS_OK) {
		const char *at = strstr(text_string(&text), "mnt_id:");
		if (at)
			number = strtol(at + strlen("mnt_id:"), NULL, 10);
	}
	text_release(&text);
	return number;
}

static void read_mountinfo(struct text *mountinfo)
{
	mountinfo->limit = TABLE_LIMIT;
	if (file_read_whole("/proc/self/mountinfo", TABLE_LIMIT - 1, mountinfo, NULL) != STATUS_OK)
		text_release(mountinfo);
}

bool mounts_find(int descriptor, struct mount_entry *entry)
{
	struct text mountinfo = {0};
	long number = mount_number(descriptor);
	if (number >= 0)
		read_mountinfo(&mountinfo);
	bool found = number >= 0 && mount_tables_find(text_string(&mountinfo), number, entry);
	text_release(&mountinfo);
	return found;
}

/* If path is below the listed mount point, return the mount point's path without symbolic links:
 * point itself, or real, which is then set. NULL: path is not below it. */
static const char *is_on_the_way(const struct check *check, const char *point, char real[PATH_MAX])
{
	if (mount_tables_is_below(check->real, point))
		return point;
	/* Do not resolve the path of another mount: its server may hang. */
	if (mount_tables_has(text_string(&check->mountinfo), point) || !path_resolve(point, real))
		return NULL;
	return mount_tables_is_below(check->real, real) ? real : NULL;
}

/* A table lists point: refuse if path is below it and nothing is mounted on it. */
static void expect_mount(void *context, const char *point)
{
	struct check *check = context;
	char real[PATH_MAX];
	if (check->status != STATUS_OK || !check->mountinfo.length)
		return;
	const char *top = is_on_the_way(check, point, real);
	/* Path is below top and on the mount `here`. If `here` is at top or deeper, top is mounted,
	 * or a mount below it holds path. */
	if (!top || strlen(top) <= strlen(check->here.point) || strcmp(top, "/") == 0)
		return;
	check->status = error_set(check->err, STATUS_NO,
		"the filesystem that %s lists for %s is not mounted, so %s cannot be read or "
		"created: mount it, then try again",
		check->table, top, check->path);
}

/* A list has point: refuse if path is below it and it has no marker file. */
static void expect_marker(void *context, const char *point)
{
	struct check *check = context;
	struct mount_entry root = {0};
	struct stat st;
	char real[PATH_MAX];
	const char *top = check->status == STATUS_OK ? is_on_the_way(check, point, real) : NULL;
	if (!top)
		return;
	int descriptor = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int number = descriptor < 0 ? errno : 0;
	if (!number && fstatat(descriptor, MOUNTS_MARKER, &st, AT_SYMLINK_NOFOLLOW) < 0)
		number = errno;
	/* If top was mounted after the caller had opened its descriptor, `here` is above top. */
	bool there = !number && S_ISREG(st.st_mode) &&
		     (!mounts_find(descriptor, &root) ||
			     strlen(check->here.point) >= strlen(root.point));
	if (descriptor >= 0)
		close(descriptor);
	if (number && number != ENOENT && number != ENOTDIR)
		check->status =
			error_errno(check->err, number, "look for " MOUNTS_MARKER " in %s", top);
	else if (!there)
		check->status = error_set(check->err, STATUS_NO,
			"%s is not mounted: %s lists it, but the marker file " MOUNTS_MARKER
			" is missing, so %s cannot be read or created: mount it, then try again "
			"(if the marker file was deleted: preempt-store doctor --mark %s)",
			top, check->table, check->path, top);
}

/*
 * Read a table. False: skip it, because it is missing or unreadable. An unreadable MOUNTS_LIST is
 * an error.
 */
static bool read_table(struct check *check, const char *path, struct text *text)
{
	text->limit = TABLE_LIMIT;
	check->table = path;
	int number = access(path, R_OK) < 0 ? errno : 0;
	if (number == EACCES && strcmp(path, MOUNTS_LIST) == 0)
		check->status = error_set(check->err, STATUS_TEMPORARY,
			"cannot read " MOUNTS_LIST
			": %s; it must be readable to check the mounts that it lists: as root, "
			"chmod a+rX /etc/preempt " MOUNTS_LIST,
			strerror(number));
	if (number == ENOENT || number == ENOTDIR || number == EACCES)
		return false;
	enum status status = file_read_whole(path, TABLE_LIMIT - 1, text, check->err);
	if (status != STATUS_OK && status != STATUS_NO)
		check->status = status;
	return status == STATUS_OK;
}

static void check_table(struct check *check, const char *path,
	void (*read)(const char *text, mount_point_found *found, void *context),
	mount_point_found *found)
{
	struct text text = {0};
	if (check->status == STATUS_OK && read_table(check, path, &text))
		read(text_string(&text), found, check);
	text_release(&text);
}

/* Check the mount units of a directory. A unit that is empty or a link to /dev/null is masked. */
static void check_units(struct check *check, size_t which)
{
	char path[PATH_MAX], point[PATH_MAX];
	struct stat st;
	DIR *directory = opendir(unit_directories[which]);
	if (!directory)
		return;
	check->table = path;
	for (struct dirent *entry; check->status == STATUS_OK && (entry = readdir(directory));) {
		bool overruled = false;
		if (!mount_tables_unit(entry->d_name, point))
			continue;
		for (size_t i = 0; i < which && !overruled; i++) {
			snprintf(path, sizeof(path), "%s/%s", unit_directories[i], entry->d_name);
			overruled = lstat(path, &st) == 0;
		}
		snprintf(path, sizeof(path), "%s/%s", unit_directories[which], entry->d_name);
		if (!overruled && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size)
			expect_mount(check, point);
	}
	closedir(directory);
}

static void check_master_map(struct check *check, const char *path);

/* Find a map by its path, or by its name in /etc and /etc/autofs, as the automounter does. */
static void check_map(
	struct check *check, const char *name, void (*read)(struct check *check, const char *path))
{
	static const char *const places[] = {"/etc", "/etc/autofs"};
	char path[PATH_MAX];
	if (*name == '/') {
		read(check, name);
		return;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", places[i], name);
		if (!strchr(name, '/') && access(path, F_OK) == 0)
			read(check, path);
	}
}

static void check_direct_map(struct check *check, const char *path)
{
	struct stat st;
	/* An executable map is a program that answers for one key at a time: no list to read. */
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & S_IXUSR))
		check_table(check, path, mount_tables_autofs_direct, expect_mount);
}

static void check_map_directory(struct check *check, const char *name)
{
	char path[PATH_MAX];
	DIR *directory = opendir(name);
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		const char *end = strrchr(entry->d_name, '.');
		if (!end || strcmp(end, ".autofs") != 0 || *entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
		check_master_map(check, path);
	}
	if (directory)
		closedir(directory);
}

static void check_master_line(void *context, enum autofs_kind kind, const char *name)
{
	struct check *check = context;
	const char *table = check->table;
	if (check->status != STATUS_OK)
		return;
	switch (kind) {
	case AUTOFS_POINT: expect_mount(check, name); break;
	case AUTOFS_DIRECT: check_map(check, name, check_direct_map); break;
	case AUTOFS_INCLUDE: check_map(check, name, check_master_map); break;
	case AUTOFS_DIRECTORY: check_map_directory(check, name); break;
	}
	check->table = table;
}

static void check_master_map(struct check *check, const char *path)
{
	struct text text = {0};
	if (check->depth == MAPS_DEEP || check->status != STATUS_OK)
		return;
	check->depth++;
	if (read_table(check, path, &text))
		mount_tables_autofs_master(text_string(&text), check_master_line, check);
	text_release(&text);
	check->depth--;
}

bool mounts_own_list(char path[PATH_MAX])
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	int length = PATH_MAX;
	if (config && *config == '/')
		length = snprintf(path, PATH_MAX, "%s/preempt/mounts", config);
	else if (home && *home == '/')
		length = snprintf(path, PATH_MAX, "%s/.config/preempt/mounts", home);
	return length < PATH_MAX;
}

static void check_markers(struct check *check)
{
	char own[PATH_MAX];
	const char *given = getenv("PREEMPT_MOUNTS");
	check_table(check, MOUNTS_LIST, mount_tables_list, expect_marker);
	if (mounts_own_list(own))
		check_table(check, own, mount_tables_list, expect_marker);
	char *copy = given ? xstrdup(given) : NULL, *rest = copy, *point;
	check->table = "PREEMPT_MOUNTS";
	while (check->status == STATUS_OK && (point = strsep(&rest, ":"))) {
		if (*point && *point != '/')
			check->status = error_set(check->err, STATUS_USAGE,
				"PREEMPT_MOUNTS: \"%.200s\" is not an absolute path", point);
		else
			mount_tables_list(point, expect_marker, check);
	}
	free(copy);
}

static enum status check_tables(struct check *check, int descriptor)
{
	long number = mount_number(descriptor);
	if (number >= 0)
		read_mountinfo(&check->mountinfo);
	if (!mount_tables_find(text_string(&check->mountinfo), number, &check->here))
		check->here = (struct mount_entry){0};
	if (strcmp(check->here.type, "autofs") == 0)
		check->status = error_set(check->err, STATUS_NO,
			"the automounter mounted nothing at %s, so %s cannot be read or "
			"created: check that its server is up",
			check->real, check->path);
	check_table(check, "/etc/fstab", mount_tables_fstab, expect_mount);
	for (size_t i = 0; i < sizeof(unit_directories) / sizeof(unit_directories[0]); i++)
		if (check->status == STATUS_OK)
			check_units(check, i);
	for (size_t i = 0; i < sizeof(master_maps) / sizeof(master_maps[0]); i++)
		check_master_map(check, master_maps[i]);
	return check->status;
}

static enum status check_path(const char *path, int descriptor, bool markers, struct error *err)
{
	struct check check = {.path = path, .err = err};
	size_t length;
	if (!path_resolve(path, check.real))
		return error_set(err, STATUS_USAGE,
			"%.200s: the path is too long, or has too many symbolic links", path);
	int own = descriptor < 0 ? path_open_deepest(check.real, &length) : -1;
	if (descriptor < 0 && own < 0)
		return error_errno(err, errno, "look at %s", path);
	if (check_tables(&check, own < 0 ? descriptor : own) == STATUS_OK && markers)
		check_markers(&check);
	text_release(&check.mountinfo);
	if (own >= 0)
		close(own);
	return check.status;
}

enum status mounts_check_tables(const char *path, int descriptor, struct error *err)
{
	return check_path(path, descriptor, false, err);
}

enum status mounts_check(const char *path, int descriptor, struct error *err)
{
	return check_path(path, descriptor, true, err);
}

enum status mounts_confirm(const char *path, int descriptor, struct error *err)
{
	enum status status = check_path(path, descriptor, true, err);
	if (status == STATUS_NO && err)
		err->status = STATUS_TEMPORARY;
	return status == STATUS_NO ? STATUS_TEMPORARY : status;
}

enum status mounts_open(const char *directory, int *descriptor, struct error *err)
{
	int opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opened < 0)
		return error_errno(err, errno, "open directory %s", directory);
	enum status status = mounts_confirm(directory, opened, err);
	if (status == STATUS_OK)
		*descriptor = opened;
	else
		close(opened);
	return status;
}
