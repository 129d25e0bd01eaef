/* SPDX-License-Identifier: MIT */
#include "ckpt/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ckpt/ckpt.h"
#include "ckpt/names.h"
#include "ckpt/parallel.h"

static const char *kind_of(mode_t mode)
{
	return S_ISREG(mode)	? "a file"
	       : S_ISLNK(mode)	? "a symbolic link"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISSOCK(mode) ? "a socket"
				: "a device file";
}

/* ---- Finding ---- */

/*
 * Whether an NFS client made this name: ".nfs" and 24 hexadecimal digits. The file was removed
 * while a process of this machine has it open, and its name vanishes when that process closes it.
 */
static bool is_removed(const char *name)
{
	return strncmp(name, ".nfs", 4) == 0 && strlen(name) == 4 + 24 &&
	       strspn(name + 4, "0123456789abcdef") == 24;
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

static void note_time(struct walk *walk, const struct stat *st)
{
	struct timespec *last = &walk->notes->changed;
	if (st->st_mtim.tv_sec > last->tv_sec ||
		(st->st_mtim.tv_sec == last->tv_sec && st->st_mtim.tv_nsec > last->tv_nsec))
		*last = st->st_mtim;
}

static enum status find_entry(struct walk *walk, int directory, const char *name, struct error *err)
{
	struct stat st;
	struct text *path = &walk->path;
	struct tree_notes *notes = walk->notes;
	enum status status = STATUS_OK;
	size_t length = path->length;
	text_addf(path, "%s%s", length ? "/" : "", name);
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* A writer must not change what it commits. What is only looked at (with notes)
		 * may change: look again. */
		status = errno == ENOENT ? error_set(err, notes ? STATUS_TEMPORARY : STATUS_NO,
						   "%s vanished while its directory was read",
						   text_string(path))
					 : error_errno(err, errno, "look at %s", text_string(path));
	} else if (S_ISDIR(st.st_mode)) {
		if (notes && notes->part && !*notes->found && strstr(name, notes->part))
			snprintf(notes->found, sizeof(notes->found), "%s", text_string(path));
		int below =
			openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		walk->depth++;
		status = below < 0 ? error_errno(err, errno, "open directory %s", text_string(path))
				   : find(walk, below, err);
		walk->depth--;
	} else if (!walk->manifest) {
		note_time(walk, &st);
	} else if (S_ISREG(st.st_mode)) {
		struct manifest_file *file =
			manifest_add(walk->manifest, text_string(path), (uint64_t)st.st_size);
		file->inode = st.st_ino;
		file->modified = st.st_mtim;
	} else {
		status = error_set(err, STATUS_NO,
			"%s is %s: a checkpoint holds only files and directories",
			text_string(path), kind_of(st.st_mode));
	}
	path->length = length;
	path->data[length] = '\0';
	return status;
}

/* Closes directory. */
static enum status find(struct walk *walk, int directory, struct error *err)
{
	struct file_names names = {0};
	struct stat st;
	const char *name = walk->path.length ? text_string(&walk->path) : ".";
	enum status status = STATUS_OK;
	if (walk->depth > TREE_DEPTH_MAX)
		status = error_set(err, STATUS_NO, "%s lies more than %d directories deep", name,
			TREE_DEPTH_MAX);
	else if (walk->sync && fsync(directory) < 0 && errno != EINVAL)
		status = error_errno(err, errno, "sync directory %s", name);
	else
		status = file_read_names(directory, name, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
		if ((walk->path.length || !ckpt_name_is_reserved(names.names[i])) &&
			!is_removed(names.names[i]))
			status = find_entry(walk, directory, names.names[i], err);
	/* After reading: if a file was renamed to its place, only this shows it. */
	if (status == STATUS_OK && walk->notes && fstat(directory, &st) < 0)
		status = error_errno(err, errno, "look at %s", text_string(&walk->path));
	else if (status == STATUS_OK && walk->notes)
		note_time(walk, &st);
	file_names_release(&names);
	close(directory);
	return status;
}

enum status tree_find(int root, const char *below, bool sync, struct manifest *manifest,
	struct tree_notes *notes, struct error *err)
{
	struct walk walk = {.sync = sync, .manifest = manifest, .notes = notes};
	const char *name = *below ? below : ".";
	text_add(&walk.path, below);
	int directory = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum status status = directory >= 0 ? find(&walk, directory, err)
			     : errno == ENOENT
				     ? error_set(err, STATUS_NO, "there is no directory %s", name)
				     : error_errno(err, errno, "open directory %s", name);
	text_release(&walk.path);
	if (manifest)
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

/* ---- Reading ahead ---- */

/* Bytes: enough for a disk to stream, and few enough for a processor's cache. */
#define PIECE  ((size_t)256 << 10)
#define PIECES 8
/* Smaller files are read without a thread. */
#define LARGE ((uint64_t)16 << 20)

/* A ring of pieces: the reader fills it, and the caller empties it. */
struct stream {
	int descriptor;
	char *bytes;
	size_t capacity;
	ssize_t lengths[PIECES]; /* 0: the end; negative: an errno */
	sem_t filled, empty;
};

static ssize_t fill(struct stream *stream, size_t i)
{
	ssize_t n;
	do
		n = read(stream->descriptor, stream->bytes + i % PIECES * PIECE, stream->capacity);
	while (n < 0 && errno == EINTR);
	return stream->lengths[i % PIECES] = n < 0 ? -errno : n;
}

static void *read_ahead(void *argument)
{
	struct stream *stream = argument;
	ssize_t n = 1;
	for (size_t i = 0; n > 0; i++) {
		while (sem_wait(&stream->empty) < 0)
			;
		n = fill(stream, i);
		sem_post(&stream->filled);
	}
	return NULL;
}

/* Call consume with each piece of a file of about this size. Returns 0, or the errno of a read. */
static int read_file(int descriptor, uint64_t size,
	void (*consume)(void *context, const void *bytes, size_t length), void *context)
{
	/* A small file takes two reads: its content, then the end of the file. */
	struct stream stream = {
		.descriptor = descriptor, .capacity = size < PIECE ? (size_t)size + 1 : PIECE};
	pthread_t reader;
	ssize_t n = 1;
	bool threaded = size >= LARGE;
	stream.bytes = xmalloc(threaded ? PIECE * PIECES : stream.capacity);
	sem_init(&stream.filled, 0, 0);
	sem_init(&stream.empty, 0, PIECES);
	(void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
	threaded = threaded && pthread_create(&reader, NULL, read_ahead, &stream) == 0;
	for (size_t i = 0; n > 0; i += threaded) {
		while (threaded && sem_wait(&stream.filled) < 0)
			;
		n = threaded ? stream.lengths[i % PIECES] : fill(&stream, 0);
		if (n > 0)
			consume(context, stream.bytes + i % PIECES * PIECE, (size_t)n);
		sem_post(&stream.empty);
	}
	if (threaded)
		pthread_join(reader, NULL);
	sem_destroy(&stream.filled);
	sem_destroy(&stream.empty);
	free(stream.bytes);
	return (int)-n;
}

/* ---- Checksums ---- */

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
	int number = read_file(descriptor, file->bytes, take, hashing);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(hashing->state));
	XXH3_freeState(hashing->state);
	for (size_t i = 0; i < sizeof(canonical.digest); i++)
		snprintf(hashing->checksum + 2 * i, 3, "%02x", canonical.digest[i]);
	return number ? error_errno(err, number, "read %s", file->name) : STATUS_OK;
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

/* Sync and record, or compare, the content of an open file. */
static enum status do_content(
	struct work *work, int descriptor, struct manifest_file *file, struct error *err)
{
	struct hashing hashing = {.work = work};
	/* Let the disk write while we compute the checksum. */
	if (work->record && file->bytes > EARLY)
		(void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
	enum status status = hash(&hashing, descriptor, file, err);
	if (status != STATUS_OK)
		return status;
	if (!work->record)
		return strcmp(hashing.checksum, file->checksum) == 0
			       ? STATUS_OK
			       : error_set(
					 err, STATUS_NO, "the checksum of %s differs", file->name);
	if (hashing.bytes != file->bytes)
		return error_set(err, STATUS_NO,
			"%s changed while it was being read; try again when all is written",
			file->name);
	memcpy(file->checksum, hashing.checksum, sizeof(file->checksum));
	return fsync(descriptor) < 0 ? error_errno(err, errno, "sync %s", file->name) : STATUS_OK;
}

static enum status do_file(struct work *work, struct manifest_file *file, struct error *err)
{
	struct stat st;
	if (!work->record && !work->contents)
		return fstatat(work->root, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0
			       ? cannot_open(file, err)
			       : compare_size(file, &st, err);
	int descriptor = openat(
		work->root, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (descriptor < 0)
		return cannot_open(file, err);
	enum status status = fstat(descriptor, &st) < 0
				     ? error_errno(err, errno, "look at %s", file->name)
				     : compare_size(file, &st, err);
	if (status == STATUS_OK)
		status = do_content(work, descriptor, file, err);
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

/* Check that each directory on the way to the files is one, and not a symbolic link to one. */
static enum status check_directories(int root, const struct manifest *manifest, struct error *err)
{
	const char *last = "";
	enum status status = STATUS_OK;
	for (size_t i = 0; i < manifest->count && status == STATUS_OK; i++) {
		struct stat st;
		char *name = xstrdup(manifest->files[i].name);
		for (char *at = strchr(name, '/'); at && status == STATUS_OK;
			at = strchr(at + 1, '/')) {
			/* The previous file was in this directory, too: it is checked already. */
			if (strncmp(last, name, (size_t)(at - name) + 1) == 0)
				continue;
			*at = '\0';
			if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
				status = errno == ENOENT || errno == ENOTDIR
						 ? error_set(err, STATUS_NO, "%s is missing", name)
						 : error_errno(err, errno, "look at %s", name);
			else if (!S_ISDIR(st.st_mode))
				status =
					error_set(err, STATUS_NO, "%s is %s instead of a directory",
						name, kind_of(st.st_mode));
			*at = '/';
		}
		free(name);
		last = manifest->files[i].name;
	}
	return status;
}

enum status tree_compare(
	int root, const struct manifest *manifest, bool contents, struct error *err)
{
	struct work work = {.root = root, .files = manifest->files, .contents = contents};
	enum status status = check_directories(root, manifest, err);
	return status == STATUS_OK ? run(&work, manifest->count, err) : status;
}
