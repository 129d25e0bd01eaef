/* SPDX-License-Identifier: MIT */
#include "ckpt/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ckpt/names.h"

static const char *kind_of(mode_t mode)
{
	return S_ISLNK(mode)	? "a symbolic link"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISSOCK(mode) ? "a socket"
				: "a device file";
}

/*
 * Whether an NFS client made this name: ".nfs" and 24 hexadecimal digits. The file was removed
 * while a process of this machine has it open, and its name vanishes when that process closes it.
 */
static bool is_removed(const char *name)
{
	size_t length = strlen(name);
	return length == 4 + 24 && strncmp(name, ".nfs", 4) == 0 &&
	       strspn(name + 4, "0123456789abcdef") == length - 4;
}

/* A walk through a tree. */
struct walk {
	struct text path; /* of the directory that is being read */
	int depth;
	bool sync;
	struct manifest *manifest;
	struct tree_notes *notes; /* NULL: none are wanted */
};

static enum status find(struct walk *walk, int directory, struct error *err);

static enum status find_entry(struct walk *walk, int directory, const char *name, struct error *err)
{
	struct stat st;
	struct text *path = &walk->path;
	size_t length = path->length;
	if (length)
		text_add(path, "/");
	text_add(path, name);
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* A writer must not change what it commits. What is only looked at (with notes)
		 * may change: look again. */
		if (errno == ENOENT)
			return error_set(err, walk->notes ? STATUS_TEMPORARY : STATUS_NO,
				"%s vanished while its directory was read", text_string(path));
		return error_errno(err, errno, "look at %s", text_string(path));
	}
	enum status status = STATUS_OK;
	if (S_ISDIR(st.st_mode)) {
		struct tree_notes *notes = walk->notes;
		if (notes && notes->part && !*notes->found && strstr(name, notes->part))
			snprintf(notes->found, sizeof(notes->found), "%s", text_string(path));
		int below =
			openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		walk->depth++;
		status = below < 0 ? error_errno(err, errno, "open directory %s", text_string(path))
				   : find(walk, below, err);
		walk->depth--;
	} else if (!S_ISREG(st.st_mode)) {
		status = error_set(err, STATUS_NO,
			"%s is %s: a checkpoint holds only files and directories",
			text_string(path), kind_of(st.st_mode));
	} else {
		struct manifest_file *file =
			manifest_add(walk->manifest, text_string(path), (uint64_t)st.st_size);
		file->inode = st.st_ino;
		file->modified = st.st_mtim;
	}
	path->length = length;
	path->data[length] = '\0';
	return status;
}

/* Note when a directory changed last, after reading it: if a file was renamed to its place, only
 * this shows it. */
static enum status note_time(struct walk *walk, int directory, struct error *err)
{
	struct stat st;
	if (fstat(directory, &st) < 0)
		return error_errno(err, errno, "look at %s", text_string(&walk->path));
	struct timespec *last = &walk->notes->changed;
	if (st.st_mtim.tv_sec > last->tv_sec ||
		(st.st_mtim.tv_sec == last->tv_sec && st.st_mtim.tv_nsec > last->tv_nsec))
		*last = st.st_mtim;
	return STATUS_OK;
}

/* Closes directory. */
static enum status find(struct walk *walk, int directory, struct error *err)
{
	enum status status = STATUS_OK;
	const char *name = walk->path.length ? text_string(&walk->path) : ".";
	if (walk->depth > TREE_DEPTH_MAX) {
		close(directory);
		return error_set(err, STATUS_NO, "%s lies more than %d directories deep", name,
			TREE_DEPTH_MAX);
	}
	if (walk->sync && fsync(directory) < 0 && errno != EINVAL) {
		status = error_errno(err, errno, "sync directory %s", name);
		close(directory);
		return status;
	}
	struct file_names names = {0};
	status = file_read_names(directory, name, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
		if ((walk->path.length || !ckpt_name_is_reserved(names.names[i])) &&
			!is_removed(names.names[i]))
			status = find_entry(walk, directory, names.names[i], err);
	if (status == STATUS_OK && walk->notes)
		status = note_time(walk, directory, err);
	file_names_release(&names);
	close(directory);
	return status;
}

enum status tree_find(int root, const char *below, bool sync, struct manifest *manifest,
	struct tree_notes *notes, struct error *err)
{
	struct walk walk = {.sync = sync, .manifest = manifest, .notes = notes};
	text_add(&walk.path, below);
	int directory =
		openat(root, *below ? below : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum status status;
	if (directory < 0 && errno == ENOENT)
		status = error_set(err, STATUS_NO, "there is no directory %s", below);
	else if (directory < 0)
		status = error_errno(err, errno, "open directory %s", *below ? below : ".");
	else
		status = find(&walk, directory, err);
	text_release(&walk.path);
	manifest_sort(manifest);
	return status;
}

/* Check that name is a directory. */
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
			/* The previous file was in this directory, too: it is checked already. */
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
