/* SPDX-License-Identifier: MIT */
#include "store/beats/beats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/beats/beat_record.h"
#include "store/failure.h"
#include "store/sqlite/session.h"

#define TRIES 5

static enum status failed(struct error *err, const char *action, const char *path, int number)
{
	return error_cured(err, number, store_cure(number), "%s %s", action, path);
}

static char *path_of(const struct sqlite_store *store, const char *group, uint64_t task)
{
	return xprintf("%s/%s/%" PRIu64, store->beats, group, task);
}

/* Make one directory, if it is missing, and check its owner and mode. */
static enum status make_directory(
	const struct sqlite_store *store, const char *path, struct error *err)
{
	struct stat st;
	bool made;
	enum status status =
		file_make_directory(path, store->parameters.shared_group ? 0770 : 0700, &made, err);
	if (status != STATUS_OK)
		return status;
	if (made && store->parameters.shared_group && access_share_directory(path) < 0)
		return failed(err, "make", path, errno);
	if (lstat(path, &st) < 0)
		return failed(err, "look at", path, errno);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, STATUS_DAMAGED, "%s is not a directory", path);
	return access_check(path, &st, store->parameters.shared_group, err);
}

/* Make DATABASE.beats and each directory of the group in it. */
static enum status make_directories(const struct sqlite_store *store, char *path, struct error *err)
{
	for (char *end = path + strlen(store->beats);; end = strchrnul(end + 1, '/')) {
		char kept = *end;
		*end = '\0';
		enum status status = make_directory(store, path, err);
		*end = kept;
		if (status != STATUS_OK || !kept)
			return status;
	}
}

enum status beats_make_file(const struct sqlite_store *store, const char *path, const char *record,
	size_t length, struct error *err)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (descriptor < 0)
		return errno == EEXIST ? STATUS_OK : failed(err, "make", path, errno);
	int result = store->parameters.shared_group ? fchmod(descriptor, 0660) : 0;
	if (result == 0)
		result = file_write_all(descriptor, record, length);
	int number = errno;
	if (close(descriptor) < 0 && result == 0) {
		result = -1;
		number = errno;
	}
	if (result == 0)
		return STATUS_OK;
	(void)unlink(path); /* else the next try would find it, and think that it is whole */
	return failed(err, "write", path, number);
}

enum status beats_prepare(struct store *base, const char *group, uint64_t tasks, struct error *err)
{
	const struct sqlite_store *store = (const struct sqlite_store *)base;
	char *directory = xprintf("%s/%s", store->beats, group);
	char blank[BEAT_RECORD]; /* the record of a task that has written no beat */
	memset(blank, ' ', sizeof(blank));
	blank[BEAT_RECORD - 1] = '\n';
	enum status status = make_directories(store, directory, err);
	if (status == STATUS_OK)
		status = news_make(store, directory, err);
	for (uint64_t task = 0; task < tasks && status == STATUS_OK; task++) {
		char *path = path_of(store, group, task);
		status = beats_make_file(store, path, blank, sizeof(blank), err);
		free(path);
	}
	free(directory);
	return status;
}

int beats_open_file(const struct sqlite_store *store, const char *path, int flags)
{
	int more = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	/* Without a delegation (cache.h), because other processes write to it all the time. */
	return cache_open_at(store->lock.cache, AT_FDCWD, path, flags | more);
}

/* Open the file of one task; STATUS_NO: there is none. */
static enum status open_file(
	struct sqlite_store *store, const char *path, int flags, int *descriptor, struct error *err)
{
	*descriptor = beats_open_file(store, path, flags);
	if (*descriptor >= 0)
		return STATUS_OK;
	int number = errno;
	/* This closes the lock file if its filesystem was unmounted: a process that only writes
	 * beats must not keep the old mount in use. */
	(void)lock_check(&store->lock, NULL);
	if (number == ENOENT)
		return error_set(err, STATUS_NO, "%s does not exist", path);
	return failed(err, "open", path, number);
}

enum status beats_write(struct store *base, const char *group, uint64_t task,
	const struct store_beat *beat, struct error *err)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	char record[BEAT_RECORD + 1];
	char *path = path_of(store, group, task);
	int descriptor;
	enum status status = open_file(store, path, O_WRONLY, &descriptor, err);
	if (status == STATUS_OK) {
		beat_record_write(beat, record);
		errno = ENOSPC;
		int number = pwrite(descriptor, record, BEAT_RECORD, 0) == BEAT_RECORD ? 0 : errno;
		/* Network filesystems may write only at close, and fail then. */
		if (close(descriptor) < 0 && number == 0)
			number = errno;
		if (number)
			status = failed(err, "write", path, number);
	}
	lock_refresh(&store->lock);
	free(path);
	return status;
}

static enum status read_once(
	struct sqlite_store *store, const char *path, struct store_beat *beat, struct error *err)
{
	char record[BEAT_RECORD + 1] = "";
	int descriptor;
	enum status status = open_file(store, path, O_RDONLY, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	cache_drop(store->lock.cache, descriptor);
	ssize_t n = pread(descriptor, record, BEAT_RECORD, 0);
	int number = errno;
	close(descriptor);
	if (n < 0)
		return failed(err, "read", path, number);
	if (record[strspn(record, " \n")] == '\0')
		return error_set(err, STATUS_NO, "%s: no beat yet", path);
	if (n != BEAT_RECORD || !beat_record_read(record, beat))
		return error_set(
			err, STATUS_DAMAGED, "%s is not a beat: not used; delete it", path);
	return STATUS_OK;
}

enum status beats_read(struct store *base, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	char *path = path_of(store, group, task);
	enum status status = read_once(store, path, beat, err);
	/* It may be damaged because it was read while it was written. */
	for (int try = 1; try < TRIES && status == STATUS_DAMAGED; try++) {
		clock_sleep_until(clock_after(1));
		status = read_once(store, path, beat, err);
	}
	free(path);
	return status;
}

enum status beats_remove(struct store *base, const char *group, struct error *err)
{
	const struct sqlite_store *store = (const struct sqlite_store *)base;
	char *path = xprintf("%s/%s", store->beats, group);
	struct stat st;
	enum status status = STATUS_OK;
	if (cache_stat(store->lock.cache, path, &st) == 0 || errno != ENOENT)
		status = file_remove_tree(path, err);
	/* Also remove the parents that are empty now, up to DATABASE.beats. */
	size_t top = strlen(store->beats);
	while (status == STATUS_OK && strlen(path) > top) {
		*strrchr(path, '/') = '\0';
		if (rmdir(path) < 0)
			break;
	}
	free(path);
	return status;
}
