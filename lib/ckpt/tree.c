/* SPDX-License-Identifier: MIT */
#include "ckpt/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ckpt/ckpt.h"
#include "ckpt/names.h"
#include "ckpt/parallel.h"

/* There may be more threads than processors: they mostly wait for a disk. */
#define THREADS_MAX 16
/* Bytes that are read at once. */
#define PIECE ((size_t)64 << 10)

static const char *kind_of(mode_t mode)
{
	return S_ISREG(mode)   ? "a file"
	       : S_ISLNK(mode) ? "a symbolic link"
			       : "a device, pipe or socket";
}

/* ---- Walking ---- */

struct walk {
	tree_visitor *visit;
	void *context;
	struct text path; /* of the entry */
};

/*
 * Whether an NFS client made this name: ".nfs" and 24 hexadecimal digits. The file was removed
 * while a process of this machine has it open, and its name vanishes when that process closes it.
 */
static bool is_removed(const char *name)
{
	return strncmp(name, ".nfs", 4) == 0 && strlen(name) == 4 + 24 &&
	       strspn(name + 4, "0123456789abcdef") == 24;
}

static enum status walk_below(struct walk *walk, int directory, struct error *err);

static enum status walk_entry(struct walk *walk, int directory, const char *name, struct error *err)
{
	const char *path = text_string(&walk->path);
	struct stat st;
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISDIR(st.st_mode))
			return walk->visit(walk->context, path, -1, &st, err);
		int below =
			openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			return walk_below(walk, below, err);
	}
	return errno == ENOENT ? walk->visit(walk->context, path, -1, NULL, err)
			       : error_errno(err, errno, "look at %s", path);
}

/* Visit what is in a directory, then itself; close it. */
static enum status walk_below(struct walk *walk, int directory, struct error *err)
{
	struct file_names names = {0};
	struct stat st;
	struct text *path = &walk->path;
	const size_t length = path->length;
	const char *own = length ? text_string(path) : ".";
	enum status status = file_read_names(directory, own, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		if (is_removed(names.names[i]))
			continue;
		text_addf(path, "%s%s", length ? "/" : "", names.names[i]);
		status = walk_entry(walk, directory, names.names[i], err);
		path->length = length;
		path->data[length] = '\0';
	}
	own = length ? text_string(path) : ".";
	if (status == STATUS_OK)
		status = fstat(directory, &st) < 0
				 ? error_errno(err, errno, "look at %s", own)
				 : walk->visit(walk->context, own, directory, &st, err);
	file_names_release(&names);
	close(directory);
	return status;
}

enum status tree_walk(
	int root, const char *below, tree_visitor *visit, void *context, struct error *err)
{
	struct walk walk = {.visit = visit, .context = context};
	const char *name = *below ? below : ".";
	int directory = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return errno == ENOENT ? error_set(err, STATUS_NO, "there is no directory %s", name)
				       : error_errno(err, errno, "open directory %s", name);
	text_add(&walk.path, below);
	enum status status = walk_below(&walk, directory, err);
	text_release(&walk.path);
	return status;
}

/* ---- Finding ---- */

struct finding {
	bool sync;
	struct manifest *manifest;
};

static enum status find(
	void *context, const char *path, int directory, const struct stat *st, struct error *err)
{
	const struct finding *finding = context;
	if (ckpt_name_is_reserved(path))
		return STATUS_OK;
	if (!st)
		return error_set(err, STATUS_NO, "%s vanished while its directory was read", path);
	if (directory >= 0)
		return finding->sync && fsync(directory) < 0 && errno != EINVAL
			       ? error_errno(err, errno, "sync directory %s", path)
			       : STATUS_OK;
	if (!S_ISREG(st->st_mode))
		return error_set(err, STATUS_NO,
			"%s is %s: a checkpoint holds only files and directories", path,
			kind_of(st->st_mode));
	struct manifest_file *file = manifest_add(finding->manifest, path, (uint64_t)st->st_size);
	file->inode = st->st_ino;
	file->modified = st->st_mtim;
	return STATUS_OK;
}

enum status tree_find(
	int root, const char *below, bool sync, struct manifest *manifest, struct error *err)
{
	struct finding finding = {sync, manifest};
	enum status status = tree_walk(root, below, find, &finding, err);
	manifest_sort(manifest);
	return status;
}

/* ---- Contents ---- */

/* What the threads share. */
struct work {
	int root;
	struct manifest_file *files;
	bool contents; /* read them; false: only compare kinds and sizes */
	bool record;   /* sync them, and record their checksums; false: compare these */
};

static void (*watcher)(uint64_t bytes);
static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER;

void checkpoint_on_progress(void (*progress)(uint64_t bytes))
{
	watcher = progress;
}

void tree_tell_progress(uint64_t bytes)
{
	if (!watcher)
		return;
	pthread_mutex_lock(&watching);
	watcher(bytes);
	pthread_mutex_unlock(&watching);
}

enum status tree_open_file(
	int root, const struct manifest_file *file, int flags, int *descriptor, struct error *err)
{
	struct stat st;
	enum status status = STATUS_OK;
	char *path = xstrdup(file->name);
	for (char *at = path; status == STATUS_OK && (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			status = error_set(err, STATUS_NO, "%s is %s instead of a directory", path,
				kind_of(st.st_mode));
	}
	free(path);
	if (status != STATUS_OK)
		return status;
	bool look = flags & O_PATH; /* that needs no descriptor */
	int opened = look ? fstatat(root, file->name, &st, AT_SYMLINK_NOFOLLOW)
			  : openat(root, file->name,
				    flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (opened < 0 && errno == ENOENT)
		return error_set(err, STATUS_NO, "%s is missing", file->name);
	bool other = opened < 0 && (errno == ELOOP || errno == ENXIO);
	if (!other && (opened < 0 || (!look && fstat(opened, &st) < 0)))
		status = error_errno(err, errno, "read %s", file->name);
	else if (other || !S_ISREG(st.st_mode))
		status = error_set(err, STATUS_NO, "%s is no longer a file", file->name);
	else if ((uint64_t)st.st_size != file->bytes)
		status = error_set(err, STATUS_NO, "%s has %jd bytes instead of %" PRIu64,
			file->name, (intmax_t)st.st_size, file->bytes);
	if (status == STATUS_OK && !look)
		*descriptor = opened;
	else if (opened >= 0 && !look)
		close(opened);
	return status;
}

/* Read an open file, and record or compare its checksum. */
static enum status do_contents(
	const struct work *work, int descriptor, struct manifest_file *file, struct error *err)
{
	char checksum[sizeof(file->checksum)], piece[PIECE];
	XXH3_state_t *state = xneeded(XXH3_createState());
	enum status status = STATUS_OK;
	uint64_t bytes = 0;
	ssize_t n;
	/* Let the disk write while we compute the checksum. */
	if (work->record)
		(void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
	(void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
	XXH3_128bits_reset(state);
	while ((n = read(descriptor, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		XXH3_128bits_update(state, piece, (size_t)n);
		bytes += (uint64_t)n;
		if (!work->record)
			tree_tell_progress((uint64_t)n);
	}
	if (n < 0)
		status = error_errno(err, errno, "read %s", file->name);
	XXH128_hash_t digest = XXH3_128bits_digest(state);
	XXH3_freeState(state);
	snprintf(checksum, sizeof(checksum), "%016" PRIx64 "%016" PRIx64, digest.high64,
		digest.low64);
	if (status == STATUS_OK && bytes != file->bytes)
		return error_set(err, STATUS_NO,
			"%s changed while it was being read; try again when all is written",
			file->name);
	if (status == STATUS_OK && !work->record && strcmp(checksum, file->checksum) != 0)
		return error_set(err, STATUS_NO, "the checksum of %s differs", file->name);
	memcpy(file->checksum, checksum, sizeof(checksum));
	return status == STATUS_OK && work->record && fsync(descriptor) < 0
		       ? error_errno(err, errno, "sync %s", file->name)
		       : status;
}

static enum status do_file(void *context, size_t i, struct error *err)
{
	const struct work *work = context;
	struct manifest_file *file = &work->files[i];
	int descriptor = -1;
	enum status status = tree_open_file(
		work->root, file, work->contents ? O_RDONLY : O_PATH, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	if (work->contents) {
		status = do_contents(work, descriptor, file, err);
		close(descriptor);
	}
	return status;
}

enum status tree_record(int root, const char *below, struct manifest *manifest, struct error *err)
{
	enum status status = tree_find(root, below, true, manifest, err);
	struct work work = {
		.root = root, .files = manifest->files, .contents = true, .record = true};
	if (status == STATUS_OK)
		status = parallel(manifest->count, THREADS_MAX, do_file, &work, err);
	/* Find them again. */
	struct manifest after = {0};
	if (status == STATUS_OK)
		status = tree_find(root, below, false, &after, err);
	const char *changed = status == STATUS_OK ? manifest_difference(manifest, &after) : NULL;
	if (changed)
		status = error_set(err, STATUS_NO,
			"%s changed while it was being committed; commit when all is written",
			changed);
	manifest_release(&after);
	return status;
}

enum status tree_compare(
	int root, const struct manifest *manifest, bool contents, struct error *err)
{
	struct work work = {.root = root, .files = manifest->files, .contents = contents};
	return parallel(manifest->count, contents ? THREADS_MAX : 1, do_file, &work, err);
}
