/* SPDX-License-Identifier: MIT */
/* Syncing files, and computing or comparing their checksums, in several threads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "ckpt/ckpt.h"
#include "ckpt/parallel.h"
#include "ckpt/read_ahead.h"
#include "ckpt/tree.h"

/* The most threads. More threads than processors are useful: they mostly wait for a disk. */
#define SYNCING_MAX 16
#define READING_MAX 8
/* Bytes; for smaller files it does not help to start writing early. */
#define EARLY ((uint64_t)256 << 10)

/* Milliseconds between two calls of watcher. */
#define WATCH_PERIOD 200

/* What the threads share. */
struct work {
	int root;
	struct manifest_file *files;
	bool record;   /* sync, and record checksums; false: compare with the manifest */
	bool contents; /* compare checksums, not only sizes */
	atomic_bool stop;
	atomic_uint_fast64_t bytes; /* read so far */
	pthread_mutex_t mutex;	    /* for the members below */
	uint64_t reported;	    /* bytes, to watcher */
	int64_t next_report;
};

static void (*watcher)(uint64_t bytes);

void checkpoint_on_progress(void (*progress)(uint64_t bytes))
{
	watcher = progress;
}

/* The contents of one file. */
struct hashing {
	struct work *work;
	XXH3_state_t *state;
	uint64_t bytes;
	char checksum[33];
};

/* Report progress to watcher. The mutex is held, or the threads have ended. */
static void report(struct work *work)
{
	uint64_t bytes = atomic_load(&work->bytes);
	watcher(bytes - work->reported);
	work->reported = bytes;
	work->next_report = clock_after(WATCH_PERIOD);
}

static void take(void *context, const void *bytes, size_t length)
{
	struct hashing *hashing = context;
	struct work *work = hashing->work;
	XXH3_128bits_update(hashing->state, bytes, length);
	hashing->bytes += length;
	atomic_fetch_add(&work->bytes, length);
	if (!watcher || !work->contents || pthread_mutex_trylock(&work->mutex) != 0)
		return;
	if (clock_now() >= work->next_report)
		report(work);
	pthread_mutex_unlock(&work->mutex);
}

static enum status hash(struct hashing *hashing, int descriptor, const struct manifest_file *file,
	struct error *err)
{
	XXH128_canonical_t canonical;
	hashing->state = xneeded(XXH3_createState());
	XXH3_128bits_reset(hashing->state);
	int number = read_ahead_file(descriptor, file->bytes, take, hashing);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(hashing->state));
	XXH3_freeState(hashing->state);
	for (size_t i = 0; i < sizeof(canonical.digest); i++)
		snprintf(hashing->checksum + 2 * i, 3, "%02x", canonical.digest[i]);
	return number ? error_errno(err, number, "read %s", file->name) : STATUS_OK;
}

static enum status record_file(
	struct work *work, int descriptor, struct manifest_file *file, struct error *err)
{
	struct hashing hashing = {.work = work};
	/* Let the disk write while we compute the checksum. */
	if (file->bytes > EARLY)
		(void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
	enum status status = hash(&hashing, descriptor, file, err);
	if (status != STATUS_OK)
		return status;
	if (hashing.bytes != file->bytes)
		return error_set(err, STATUS_NO,
			"%s changed while it was being read; try again when all is written",
			file->name);
	memcpy(file->checksum, hashing.checksum, sizeof(file->checksum));
	return fsync(descriptor) < 0 ? error_errno(err, errno, "sync %s", file->name) : STATUS_OK;
}

static enum status compare_file(
	struct work *work, int descriptor, const struct manifest_file *file, struct error *err)
{
	struct hashing hashing = {.work = work};
	enum status status = hash(&hashing, descriptor, file, err);
	if (status == STATUS_OK && strcmp(hashing.checksum, file->checksum) != 0)
		status = error_set(err, STATUS_NO, "the checksum of %s differs", file->name);
	return status;
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

/* Returns STATUS_NO if the file is missing or no longer a file; other errors: it cannot be read. */
static enum status cannot_open(const struct manifest_file *file, struct error *err)
{
	if (errno == ENOENT || errno == ENOTDIR)
		return error_set(err, STATUS_NO, "%s is missing", file->name);
	if (errno == ELOOP || errno == ENXIO)
		return error_set(err, STATUS_NO, "%s is no longer a file", file->name);
	return error_errno(err, errno, "read %s", file->name);
}

static enum status do_file(struct work *work, struct manifest_file *file, struct error *err)
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
	enum status status = fstat(descriptor, &st) < 0
				     ? error_errno(err, errno, "look at %s", file->name)
				     : compare_size(file, &st, err);
	if (status == STATUS_OK)
		status = work->record ? record_file(work, descriptor, file, err)
				      : compare_file(work, descriptor, file, err);
	close(descriptor);
	return status;
}

static enum status work_on(void *context, size_t i, struct error *err)
{
	struct work *work = context;
	if (atomic_load(&work->stop))
		return STATUS_OK;
	enum status status = do_file(work, &work->files[i], err);
	if (status != STATUS_OK)
		atomic_store(&work->stop, true);
	return status;
}

static enum status run(struct work *work, size_t count, struct error *err)
{
	size_t threads = work->record ? SYNCING_MAX : work->contents ? READING_MAX : 1;
	pthread_mutex_init(&work->mutex, NULL);
	work->next_report = clock_after(WATCH_PERIOD);
	enum status status = parallel(count, threads, work_on, work, err);
	if (watcher && work->contents)
		report(work);
	pthread_mutex_destroy(&work->mutex);
	return status;
}

enum status tree_record(int root, struct manifest *manifest, struct error *err)
{
	struct work work = {.root = root, .files = manifest->files, .record = true};
	return run(&work, manifest->count, err);
}

enum status tree_compare(
	int root, const struct manifest *manifest, bool contents, struct error *err)
{
	struct work work = {.root = root, .files = manifest->files, .contents = contents};
	enum status status = tree_check_directories(root, manifest, err);
	return status == STATUS_OK ? run(&work, manifest->count, err) : status;
}
