/* SPDX-License-Identifier: MIT */
/* Write the marker file and the list of marked directories. */
#include "base/mounts/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mounts/path.h"

static enum status write_marker(int directory, const char *path, struct error *err)
{
	static const char content[] =
		"preempt-tools: this file shows that the filesystem is mounted; see preempt(7).\n";
	struct stat st;
	int descriptor = openat(directory, MOUNTS_MARKER,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (descriptor < 0 && errno == EEXIST &&
		fstatat(directory, MOUNTS_MARKER, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISREG(st.st_mode))
		return STATUS_OK;
	int number = errno;
	/* The umask must not change the mode. This may fail: some filesystems have no modes. */
	if (descriptor >= 0)
		(void)fchmod(descriptor, 0644);
	bool written = descriptor >= 0 &&
		       file_write_all(descriptor, content, sizeof(content) - 1) == 0 &&
		       fsync(descriptor) == 0 && fsync(directory) == 0;
	if (descriptor >= 0) {
		number = errno;
		close(descriptor);
	}
	return written ? STATUS_OK
		       : error_errno(err, number, "write " MOUNTS_MARKER " into %s", path);
}

struct search {
	const char *point;
	bool found;
};

static void compare(void *context, const char *point)
{
	struct search *search = context;
	search->found |= strcmp(point, search->point) == 0;
}

/* Add point to the list, unless the list has it. */
static enum status add_to_list(const char *list, const char *point, struct error *err)
{
	struct text text = {0}, line = {0};
	struct search search = {.point = point};
	enum status status = file_read_whole(list, TEXT_LIMIT - 1, &text, err);
	if (status != STATUS_OK && status != STATUS_NO)
		return status;
	mount_tables_list(text_string(&text), compare, &search);
	bool torn = text.length && text.data[text.length - 1] != '\n';
	text_addf(&line, "%s%s\n", torn ? "\n" : "", point);
	text_release(&text);
	if (!search.found) {
		/* One write, so that processes that mark at the same time lose no line. */
		int descriptor = open(list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
		bool written = descriptor >= 0 &&
			       file_write_all(descriptor, text_string(&line), line.length) == 0 &&
			       fsync(descriptor) == 0;
		status = written ? STATUS_OK : error_errno(err, errno, "write %s", list);
		if (descriptor >= 0)
			close(descriptor);
	}
	text_release(&line);
	return search.found || status == STATUS_NO ? STATUS_OK : status;
}

/* All users must be able to read the list of the machine, whatever the umask of root is. */
static enum status let_all_read(const char *path, mode_t bits, struct error *err)
{
	struct stat st;
	if (stat(path, &st) == 0 &&
		((st.st_mode & bits) == bits || chmod(path, (st.st_mode | bits) & 07777) == 0))
		return STATUS_OK;
	return error_errno(err, errno, "let all users read %s", path);
}

/* True if path is on this mount, or would be if it were made. */
static bool is_on_mount(const char *path, const struct mount_entry *mount)
{
	char real[PATH_MAX];
	size_t length;
	struct mount_entry its;
	int descriptor = path_resolve(path, real) ? path_open_deepest(real, &length) : -1;
	bool same = descriptor >= 0 && mounts_find(descriptor, &its) && its.number == mount->number;
	if (descriptor >= 0)
		close(descriptor);
	return same;
}

static enum status mark(const char *real, int descriptor, struct text *list, struct error *err)
{
	char path[PATH_MAX] = MOUNTS_LIST;
	bool for_all = geteuid() == 0;
	struct mount_entry mount;
	bool made;
	enum status status = mounts_check_tables(real, descriptor, err);
	if (status == STATUS_NO)
		return error_set(
			err, STATUS_TEMPORARY, "%s: mount the filesystem, then mark it", real);
	if (status != STATUS_OK)
		return status;
	if (!mounts_find(descriptor, &mount) || strcmp(mount.point, "/") == 0)
		return error_set(err, STATUS_TEMPORARY,
			"nothing is mounted on %s or above it: mount the filesystem, then mark it",
			real);
	if (!for_all && !mounts_own_list(path))
		return error_set(err, STATUS_USAGE,
			"HOME is not set, so there is no place for the list of marked directories");
	text_add(list, path);
	status = write_marker(descriptor, real, err);
	if (status != STATUS_OK)
		return status;
	if (is_on_mount(path, &mount))
		return error_set(err, STATUS_NO,
			"%s is marked, but the list %s lies on the same filesystem and goes away with "
			"it: set PREEMPT_MOUNTS=%s where the jobs start, or list it in " MOUNTS_LIST
			" on every machine",
			real, path, real);
	/* Make ~/.config if it is missing, but not the home or the parent of XDG_CONFIG_HOME. */
	char *directory = file_directory_of(path);
	char *base = file_directory_of(directory);
	char *above = file_directory_of(base);
	if (for_all)
		status = mounts_make_directory(directory, 0755, &made, err);
	else
		status = mounts_make_directories(directory, above, 0700, err);
	if (status == STATUS_OK)
		status = add_to_list(path, real, err);
	if (status == STATUS_OK && for_all)
		status = let_all_read(path, 0444, err);
	if (status == STATUS_OK && for_all)
		status = let_all_read(directory, 0555, err);
	free(above);
	free(base);
	free(directory);
	return status;
}

enum status mounts_mark(const char *directory, struct text *list, struct error *err)
{
	char real[PATH_MAX];
	if (!path_resolve(directory, real) || strpbrk(real, "\n"))
		return error_set(err, STATUS_USAGE, "%.200s: the path is too long or has a newline",
			directory);
	int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0)
		return error_errno(err, errno, "open directory %s", directory);
	enum status status = mark(real, descriptor, list, err);
	close(descriptor);
	return status;
}
