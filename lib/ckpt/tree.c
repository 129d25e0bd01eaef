/* SPDX-License-Identifier: MIT */
#include "ckpt/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/text.h"
#include "ckpt/names.h"

/* More than a machine's processors: most of the time they wait for a disk to sync. */
#define THREADS_MAX 8
/* Large enough to stream, small enough to stay in a processor's cache. */
#define BUFFER_SIZE ((size_t)256 << 10)

static enum status failed(struct error *err, const char *action, const char *name, int number)
{
	return error_set(err, error_status_of_errno(number), "cannot %s %s: %s", action, name,
		strerror(number));
}

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
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return error_set(err, STATUS_NO, "%s vanished while it was being committed",
				text_string(path));
		return failed(err, "look at", text_string(path), errno);
	}
	enum status status = STATUS_OK;
	if (S_ISDIR(st.st_mode)) {
		int below =
			openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		status = below < 0 ? failed(err, "open directory", text_string(path), errno)
				   : find(below, path, depth + 1, sync, manifest, err);
	} else if (!S_ISREG(st.st_mode)) {
		status = error_set(err, STATUS_NO,
			"%s is %s: a checkpoint holds only files and directories",
			text_string(path), kind_of(st.st_mode));
	} else if (!manifest_add(manifest, text_string(path), (uint64_t)st.st_size)) {
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	} else {
		manifest->files[manifest->count - 1].inode = st.st_ino;
		manifest->files[manifest->count - 1].modified = st.st_mtim;
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
		status = failed(err, "sync directory", name, errno);
		close(directory);
		return status;
	}
	DIR *stream = fdopendir(directory);
	if (!stream) {
		close(directory);
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	}
	while (status == STATUS_OK) {
		errno = 0;
		struct dirent *entry = readdir(stream);
		if (!entry) {
			if (errno)
				status = failed(err, "read directory", name, errno);
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
		status = failed(err, "open directory", *below ? below : ".", errno);
	else
		status = find(directory, &path, 0, sync, manifest, err);
	text_release(&path);
	manifest_sort(manifest);
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

/* What the threads share. */
struct work {
	int root;
	struct manifest_file *files;
	size_t count;
	bool record; /* take checksums and sync; else compare */
	bool contents;
	atomic_size_t next;
	atomic_bool stop;
	pthread_mutex_t mutex; /* of the two below */
	enum status status;
	struct error err;
};

static enum status hash(int descriptor, const char *name, void *buffer, XXH3_state_t *state,
	uint64_t *bytes, char checksum[33], struct error *err)
{
	uint64_t total = 0;
	XXH3_128bits_reset(state);
	for (;;) {
		ssize_t n = read(descriptor, buffer, BUFFER_SIZE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(err, "read", name, errno);
		if (n == 0)
			break;
		XXH3_128bits_update(state, buffer, (size_t)n);
		total += (uint64_t)n;
	}
	XXH128_canonical_t canonical;
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
	for (size_t i = 0; i < sizeof(canonical.digest); i++)
		for (int half = 0; half < 2; half++)
			checksum[2 * i + (size_t)half] =
				"0123456789abcdef"[(canonical.digest[i] >> (half ? 0 : 4)) & 15];
	checksum[32] = '\0';
	*bytes = total;
	return STATUS_OK;
}

static enum status record_file(int descriptor, struct manifest_file *file, void *buffer,
	XXH3_state_t *state, struct error *err)
{
	uint64_t bytes;
	/* Start the writing, and use the time it takes. */
	(void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
	enum status status =
		hash(descriptor, file->name, buffer, state, &bytes, file->checksum, err);
	if (status != STATUS_OK)
		return status;
	if (bytes != file->bytes)
		return error_set(err, STATUS_NO,
			"%s changed while it was being committed; commit when all is written",
			file->name);
	return fsync(descriptor) < 0 ? failed(err, "sync", file->name, errno) : STATUS_OK;
}

static enum status compare_size(
	const struct manifest_file *file, const struct stat *st, struct error *err)
{
	if (!S_ISREG(st->st_mode))
		return error_set(err, STATUS_NO, "%s is no longer a file", file->name);
	if ((uint64_t)st->st_size != file->bytes)
		return error_set(err, STATUS_NO, "%s has %jd bytes instead of %" PRIu64, file->name,
			(intmax_t)st->st_size, file->bytes);
	return STATUS_OK;
}

/* A missing file is a difference; a file that cannot be looked at is not. */
static enum status cannot_open(const struct manifest_file *file, struct error *err)
{
	if (errno == ENOENT || errno == ENOTDIR)
		return error_set(err, STATUS_NO, "%s is missing", file->name);
	if (errno == ELOOP || errno == ENXIO)
		return error_set(err, STATUS_NO, "%s is no longer a file", file->name);
	return failed(err, "read", file->name, errno);
}

static enum status do_file(struct work *work, struct manifest_file *file, void *buffer,
	XXH3_state_t *state, struct error *err)
{
	struct stat st;
	if (!work->record && !work->contents) {
		if (fstatat(work->root, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return cannot_open(file, err);
		return compare_size(file, &st, err);
	}
	int descriptor = openat(
		work->root, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (descriptor < 0)
		return cannot_open(file, err);
	enum status status = STATUS_OK;
	if (fstat(descriptor, &st) < 0)
		status = failed(err, "look at", file->name, errno);
	else
		status = compare_size(file, &st, err);
	if (status == STATUS_OK && work->record)
		status = record_file(descriptor, file, buffer, state, err);
	else if (status == STATUS_OK) {
		uint64_t bytes;
		char checksum[33];
		status = hash(descriptor, file->name, buffer, state, &bytes, checksum, err);
		if (status == STATUS_OK && strcmp(checksum, file->checksum) != 0)
			status =
				error_set(err, STATUS_NO, "the checksum of %s differs", file->name);
	}
	close(descriptor);
	return status;
}

static void *work_on(void *argument)
{
	struct work *work = argument;
	struct error err = {0};
	enum status status = STATUS_OK;
	bool reads = work->record || work->contents;
	void *buffer = reads ? malloc(BUFFER_SIZE) : NULL;
	XXH3_state_t *state = reads ? XXH3_createState() : NULL;
	if (reads && (!buffer || !state))
		status = error_set(&err, STATUS_TEMPORARY, "out of memory");
	while (status == STATUS_OK && !atomic_load(&work->stop)) {
		size_t i = atomic_fetch_add(&work->next, 1);
		if (i >= work->count)
			break;
		status = do_file(work, &work->files[i], buffer, state, &err);
	}
	XXH3_freeState(state);
	free(buffer);
	if (status != STATUS_OK) {
		atomic_store(&work->stop, true);
		pthread_mutex_lock(&work->mutex);
		/* "Could not be asked" outweighs a difference: nothing may be concluded then. */
		if (work->status == STATUS_OK || work->status == STATUS_NO) {
			work->status = status;
			work->err = err;
		}
		pthread_mutex_unlock(&work->mutex);
	}
	return NULL;
}

static enum status run(struct work *work, struct error *err)
{
	pthread_t threads[THREADS_MAX];
	size_t started = 0;
	bool reads = work->record || work->contents;
	pthread_mutex_init(&work->mutex, NULL);
	/* This thread works too; where no other can be started, alone. */
	while (reads && started + 1 < THREADS_MAX && started + 1 < work->count &&
		pthread_create(&threads[started], NULL, work_on, work) == 0)
		started++;
	work_on(work);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&work->mutex);
	if (work->status != STATUS_OK && err)
		*err = work->err;
	return work->status;
}

enum status tree_record(int root, struct manifest *manifest, struct error *err)
{
	struct work work = {
		.root = root, .files = manifest->files, .count = manifest->count, .record = true};
	return run(&work, err);
}

enum status tree_compare(
	int root, const struct manifest *manifest, bool contents, struct error *err)
{
	struct work work = {.root = root,
		.files = manifest->files,
		.count = manifest->count,
		.contents = contents};
	return run(&work, err);
}
