/* SPDX-License-Identifier: MIT */
/* The contents of files: synced, their checksums taken or compared, by several threads. */
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

#include "base/clock.h"
#include "base/xalloc.h"
#include "ckpt/ckpt.h"
#include "ckpt/content/read_ahead.h"
#include "ckpt/content/tree.h"

/* More than a machine's processors: most of the time they wait for a disk, to sync above all. */
#define SYNCING_MAX 16
#define READING_MAX 8
/* Bytes; to start the writing of less gains nothing. */
#define EARLY ((uint64_t)256 << 10)

/* Milliseconds between two calls of who watches. */
#define WATCH_PERIOD 200

/* What the threads share. */
struct work {
	int root;
	struct manifest_file *files;
	size_t count;
	bool record; /* take checksums and sync; else compare */
	bool contents;
	atomic_size_t next;
	atomic_uint_fast64_t bytes; /* read so far */
	atomic_bool stop;
	pthread_mutex_t mutex; /* of those below */
	pthread_cond_t ended;
	size_t working; /* threads */
	enum status status;
	struct error err;
};

static void (*watcher)(uint64_t bytes);

void checkpoint_on_progress(void (*progress)(uint64_t bytes))
{
	watcher = progress;
}

struct hashing {
	struct work *work;
	XXH3_state_t *state;
	uint64_t bytes;
};

static void take(void *context, const void *bytes, size_t length)
{
	struct hashing *hashing = context;
	XXH3_128bits_update(hashing->state, bytes, length);
	hashing->bytes += length;
	atomic_fetch_add(&hashing->work->bytes, length);
}

static enum status hash(struct work *work, int descriptor, const struct manifest_file *file,
	XXH3_state_t *state, uint64_t *bytes, char checksum[33], struct error *err)
{
	struct hashing hashing = {work, state, 0};
	XXH3_128bits_reset(state);
	int number = read_ahead_file(descriptor, file->bytes, take, &hashing);
	if (number)
		return error_errno(err, number, "read %s", file->name);
	XXH128_canonical_t canonical;
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
	for (size_t i = 0; i < sizeof(canonical.digest); i++)
		for (int half = 0; half < 2; half++)
			checksum[2 * i + (size_t)half] =
				"0123456789abcdef"[(canonical.digest[i] >> (half ? 0 : 4)) & 15];
	checksum[32] = '\0';
	*bytes = hashing.bytes;
	return STATUS_OK;
}

static enum status record_file(struct work *work, int descriptor, struct manifest_file *file,
	XXH3_state_t *state, struct error *err)
{
	uint64_t bytes;
	/* Start the writing, and use the time it takes; of a small one it takes none. */
	if (file->bytes > EARLY)
		(void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
	enum status status = hash(work, descriptor, file, state, &bytes, file->checksum, err);
	if (status != STATUS_OK)
		return status;
	if (bytes != file->bytes)
		return error_set(err, STATUS_NO,
			"%s changed while it was being committed; commit when all is written",
			file->name);
	return fsync(descriptor) < 0 ? error_errno(err, errno, "sync %s", file->name) : STATUS_OK;
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
	return error_errno(err, errno, "read %s", file->name);
}

static enum status do_file(
	struct work *work, struct manifest_file *file, XXH3_state_t *state, struct error *err)
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
		status = error_errno(err, errno, "look at %s", file->name);
	else
		status = compare_size(file, &st, err);
	if (status == STATUS_OK && work->record)
		status = record_file(work, descriptor, file, state, err);
	else if (status == STATUS_OK) {
		uint64_t bytes;
		char checksum[33];
		status = hash(work, descriptor, file, state, &bytes, checksum, err);
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
	XXH3_state_t *state = reads ? xneeded(XXH3_createState()) : NULL;
	while (status == STATUS_OK && !atomic_load(&work->stop)) {
		size_t i = atomic_fetch_add(&work->next, 1);
		if (i >= work->count)
			break;
		status = do_file(work, &work->files[i], state, &err);
	}
	XXH3_freeState(state);
	pthread_mutex_lock(&work->mutex);
	if (status != STATUS_OK) {
		atomic_store(&work->stop, true);
		/* "Could not be asked" outweighs a difference: nothing may be concluded then. */
		if (work->status == STATUS_OK || work->status == STATUS_NO) {
			work->status = status;
			work->err = err;
		}
	}
	work->working--;
	pthread_cond_signal(&work->ended);
	pthread_mutex_unlock(&work->mutex);
	return NULL;
}

/* Tell how far the threads are until they have ended. */
static void watch(struct work *work)
{
	uint64_t told = 0;
	bool ended = false;
	while (!ended) {
		int64_t then = clock_after(WATCH_PERIOD);
		struct timespec until = {.tv_sec = then / 1000, .tv_nsec = then % 1000 * 1000000};
		pthread_mutex_lock(&work->mutex);
		while (work->working && pthread_cond_clockwait(&work->ended, &work->mutex,
						CLOCK_MONOTONIC, &until) == 0)
			;
		ended = work->working == 0;
		pthread_mutex_unlock(&work->mutex);
		uint64_t bytes = atomic_load(&work->bytes);
		watcher(bytes - told);
		told = bytes;
	}
}

static enum status run(struct work *work, struct error *err)
{
	pthread_t threads[SYNCING_MAX];
	size_t started = 0;
	bool reads = work->record || work->contents;
	bool watched = watcher && work->contents;
	/* This thread works, too, unless somebody watches; where no other can be started, alone. */
	size_t most = !reads ? 0 : work->record ? SYNCING_MAX - 1 : READING_MAX - !watched;
	size_t wanted = watched ? work->count : work->count ? work->count - 1 : 0;
	pthread_mutex_init(&work->mutex, NULL);
	pthread_cond_init(&work->ended, NULL);
	pthread_mutex_lock(&work->mutex);
	while (started < most && started < wanted &&
		pthread_create(&threads[started], NULL, work_on, work) == 0)
		started++;
	bool alone = !watched || started == 0;
	work->working = started + alone;
	pthread_mutex_unlock(&work->mutex);
	if (alone)
		work_on(work);
	else
		watch(work);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_cond_destroy(&work->ended);
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
	enum status status = tree_check_directories(root, manifest, err);
	return status == STATUS_OK ? run(&work, err) : status;
}
