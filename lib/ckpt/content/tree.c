/* SPDX-License-Identifier: MIT */
#include "ckpt/content/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "ckpt/commit/names.h"

static const char *kind_of(mode_t mode)
{
	return S_ISLNK(mode)	? "a symbolic link"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISSOCK(mode) ? "a socket"
				: "a device file";
}

static enum status find(int directory, struct text *path, int depth, bool sync,
	struct manifest *manifest, struct error *err);

static enum status find_entry(int directory, const char *name, struct text *path, int depth,
	bool sync, struct manifest *manifest, struct error *err)
{
	struct stat st;
	size_t length = path->length;
	if (length)
		text_add(path, "/");
	text_add(path, name);
	if (path->failed)
		xalloc_failed();
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return error_set(err, STATUS_NO, "%s vanished while it was being committed",
				text_string(path));
		return error_errno(err, errno, "look at %s", text_string(path));
	}
	enum status status = STATUS_OK;
	if (S_ISDIR(st.st_mode)) {
		int below =
			openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		status = below < 0 ? error_errno(err, errno, "open directory %s", text_string(path))
				   : find(below, path, depth + 1, sync, manifest, err);
	} else if (!S_ISREG(st.st_mode)) {
		status = error_set(err, STATUS_NO,
			"%s is %s: a checkpoint holds only files and directories",
			text_string(path), kind_of(st.st_mode));
	} else {
		struct manifest_file *file =
			manifest_add(manifest, text_string(path), (uint64_t)st.st_size);
		file->inode = st.st_ino;
		file->modified = st.st_mtim;
	}
	path->length = length;
	path->data[length] = '\0';
	return status;
}

/* Closes directory. */
static enum status find(int directory, struct text *path, int depth, bool sync,
	struct manifest *manifest, struct error *err)
{
	enum status status = STATUS_OK;
	const char *name = path->length ? text_string(path) : ".";
	if (depth > TREE_DEPTH_MAX) {
		close(directory);
		return error_set(err, STATUS_NO, "%s lies more than %d directories deep", name,
			TREE_DEPTH_MAX);
	}
	if (sync && fsync(directory) < 0 && errno != EINVAL) {
		status = error_errno(err, errno, "sync directory %s", name);
		close(directory);
		return status;
	}
	DIR *stream = fdopendir(directory);
	if (!stream) {
		status = error_errno(err, errno, "read directory %s", name);
		close(directory);
		return status;
	}
	while (status == STATUS_OK) {
		errno = 0;
		struct dirent *entry = readdir(stream);
		if (!entry) {
			if (errno)
				status = error_errno(err, errno, "read directory %s", name);
			break;
		}
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			(path->length == 0 && ckpt_name_is_reserved(entry->d_name)))
			continue;
		status = find_entry(directory, entry->d_name, path, depth, sync, manifest, err);
	}
	closedir(stream);
	return status;
}

enum status tree_find(
	int root, const char *below, bool sync, struct manifest *manifest, struct error *err)
{
	struct text path = {0};
	text_add(&path, below);
	int directory =
		openat(root, *below ? below : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum status status;
	if (directory < 0 && errno == ENOENT)
		status = error_set(err, STATUS_NO, "there is no directory %s", below);
	else if (directory < 0)
		status = error_errno(err, errno, "open directory %s", *below ? below : ".");
	else
		status = find(directory, &path, 0, sync, manifest, err);
	text_release(&path);
	manifest_sort(manifest);
	return status;
}

/* Whether one directory, on the way to a file, is one. */
static enum status check_directory(int root, const char *name, struct error *err)
{
	struct stat st;
	if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? error_set(err, STATUS_NO, "%s is missing", name)
			       : error_errno(err, errno, "look at %s", name);
	if (S_ISDIR(st.st_mode))
		return STATUS_OK;
	return error_set(err, STATUS_NO, "%s is %s instead of a directory", name,
		S_ISREG(st.st_mode) ? "a file" : kind_of(st.st_mode));
}

enum status tree_check_directories(int root, const struct manifest *manifest, struct error *err)
{
	const char *last = "";
	enum status status = STATUS_OK;
	for (size_t i = 0; i < manifest->count && status == STATUS_OK; i++) {
		char *name = xstrdup(manifest->files[i].name);
		for (char *at = strchr(name, '/'); at && status == STATUS_OK;
			at = strchr(at + 1, '/')) {
			/* The file before lies in it, too: looked at already. */
			if (strncmp(last, name, (size_t)(at - name) + 1) == 0)
				continue;
			*at = '\0';
			status = check_directory(root, name, err);
			*at = '/';
		}
		free(name);
		last = manifest->files[i].name;
	}
	return status;
}

static enum status search(
	int directory, const char *part, int depth, struct text *path, struct error *err);

/* Whether an entry is a directory, and if so, of such a name, or holds one. */
static enum status search_entry(int directory, const struct dirent *entry, const char *part,
	int depth, struct text *path, struct error *err)
{
	struct stat st;
	const char *name = entry->d_name;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		(entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
		return STATUS_NO;
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? STATUS_NO : error_errno(err, errno, "look at %s", name);
	if (!S_ISDIR(st.st_mode))
		return STATUS_NO;
	size_t length = path->length;
	text_addf(path, "%s%s", length ? "/" : "", name);
	if (path->failed)
		xalloc_failed();
	if (strstr(name, part))
		return STATUS_OK;
	int below = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum status status = below >= 0	       ? search(below, part, depth + 1, path, err)
			     : errno == ENOENT ? STATUS_NO
					       : error_errno(err, errno, "open directory %s", name);
	if (status == STATUS_NO) {
		path->length = length;
		path->data[length] = '\0';
	}
	return status;
}

/* Closes directory. */
static enum status search(
	int directory, const char *part, int depth, struct text *path, struct error *err)
{
	enum status status = STATUS_NO;
	DIR *stream = depth > TREE_DEPTH_MAX ? NULL : fdopendir(directory);
	if (!stream) {
		int number = errno;
		close(directory);
		return depth > TREE_DEPTH_MAX
			       ? STATUS_NO
			       : error_errno(err, number, "read directory %s", text_string(path));
	}
	while (status == STATUS_NO) {
		errno = 0;
		struct dirent *entry = readdir(stream);
		if (!entry) {
			if (errno)
				status = error_errno(
					err, errno, "read directory %s", text_string(path));
			break;
		}
		status = search_entry(directory, entry, part, depth, path, err);
	}
	closedir(stream);
	return status;
}

enum status tree_find_directory(int root, const char *part, struct text *path, struct error *err)
{
	int copy = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return copy < 0 ? error_errno(err, errno, "open directory %s", ".")
			: search(copy, part, 0, path, err);
}

bool tree_is_unchanged(
	const struct manifest *before, const struct manifest *after, struct error *err)
{
	for (size_t i = 0; i < before->count || i < after->count; i++) {
		const struct manifest_file *a = i < before->count ? &before->files[i] : NULL;
		const struct manifest_file *b = i < after->count ? &after->files[i] : NULL;
		if (a && b && strcmp(a->name, b->name) == 0 && a->inode == b->inode &&
			a->bytes == b->bytes && a->modified.tv_sec == b->modified.tv_sec &&
			a->modified.tv_nsec == b->modified.tv_nsec)
			continue;
		error_set(err, STATUS_NO,
			"%s changed while it was being committed; commit when all is written",
			a ? a->name : b->name);
		return false;
	}
	return true;
}
