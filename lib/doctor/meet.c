/* SPDX-License-Identifier: MIT */
#include "doctor/meet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/failure.h"

#define PREFIX	   ".preempt-doctor-"
#define SURELY_OLD 86400 /* seconds; no doctor runs that long */
/* All in milliseconds. */
#define REMOVE_FOR    2000
#define ANSWER_WITHIN 8000 /* patience, in addition to what the step takes */
#define APPEARS_IN    3000 /* a network filesystem may cache for this time that a name is missing */
#define BUSY_FOR      200  /* look with tiny pauses at first, so that all sides go on together */
#define SOON_FOR      2000

/* ---- The scratch directory ---- */

bool meeting_name(const char *session, char name[MEETING_NAME])
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return false;
	if (session)
		number = XXH64(session, strlen(session), geteuid());
	return snprintf(name, MEETING_NAME, PREFIX "%016" PRIx64, number) > 0;
}

void meeting_remove(const char *scratch)
{
	int64_t deadline = clock_after(REMOVE_FOR);
	while (file_remove_tree(scratch, NULL) != STATUS_OK && clock_now() < deadline)
		usleep(20000);
}

/* Remove what other doctors of this user have left beside the directory that was just made. */
static void sweep(const char *made)
{
	struct stat ours, st;
	char *directory = file_directory_of(made);
	DIR *entries = stat(made, &ours) == 0 ? opendir(directory) : NULL;
	for (struct dirent *entry; entries && (entry = readdir(entries));)
		if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)) &&
			fstatat(dirfd(entries), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
			ours.st_mtime - st.st_mtime > SURELY_OLD)
			(void)file_remove_tree_at(dirfd(entries), entry->d_name, NULL);
	if (entries)
		closedir(entries);
	free(directory);
}

enum status meeting_make(const char *scratch, struct error *err)
{
	meeting_remove(scratch);
	if (mkdir(scratch, 0700) < 0)
		return error_cured(err, errno, store_cure(errno), "make %s", scratch);
	sweep(scratch);
	return STATUS_OK;
}

/* Whether the directory is there, and no other user can write to it. */
static bool is_ours(const char *directory)
{
	struct stat st;
	return file_ask_for_names(AT_FDCWD, directory) == 0 && lstat(directory, &st) == 0 &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* ---- Records ---- */

static void pause_since(int64_t began)
{
	int64_t waited = clock_now() - began;
	usleep(waited < BUSY_FOR ? 200 : waited < SOON_FOR ? 20000 : 100000);
}

static void record_path(const struct meeting *meeting, size_t k, char path[PATH_MAX + 32])
{
	snprintf(path, PATH_MAX + 32, "%s/%u.%zu", meeting->scratch, meeting->step, k);
}

static uint64_t hash_of(const struct doctor_side *side)
{
	return XXH64(side, offsetof(struct doctor_side, hash), sizeof(*side));
}

static enum status write_record(const struct meeting *meeting, struct error *err)
{
	char path[PATH_MAX + 32];
	struct doctor_side *self = &meeting->sides[meeting->index];
	self->hash = hash_of(self);
	record_path(meeting, meeting->index, path);
	return file_write_whole(path, self, sizeof(*self), 0600, false, err);
}

/* Read the record of side k in this step. False: it is not there yet, or not what was written. */
static bool read_record(const struct meeting *meeting, size_t k)
{
	char path[PATH_MAX + 32];
	struct text text = {0};
	struct doctor_side read;
	record_path(meeting, k, path);
	bool there = file_read_whole(path, sizeof(read), &text, NULL) == STATUS_OK &&
		     text.length == sizeof(read);
	if (there) {
		memcpy(&read, text.data, sizeof(read));
		there = read.hash == hash_of(&read);
	}
	if (there)
		meeting->sides[k] = read;
	text_release(&text);
	return there;
}

/* ---- The steps ---- */

static enum status await_record(
	struct meeting *meeting, size_t k, int64_t deadline, struct error *err)
{
	const char *host = *meeting->sides[k].host ? meeting->sides[k].host : "another process";
	for (int64_t began = clock_now();; pause_since(began)) {
		bool gone = file_ask_for_names(AT_FDCWD, meeting->scratch) == ENOENT;
		if (!gone && read_record(meeting, k))
			return STATUS_OK;
		meeting->lost = gone || clock_now() >= deadline;
		if (meeting->lost)
			return error_set(err, STATUS_TEMPORARY, "%s %s", host,
				gone ? "ended before it was done"
				     : "did not answer in time: it ended, or its filesystem hangs");
	}
}

/* Whether the directory is gone. A filesystem may answer from its cache, unless a name is made. */
static bool is_gone(const struct meeting *meeting)
{
	char path[PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/gone.%zu", meeting->scratch, meeting->index);
	return mkdir(path, 0700) < 0 && errno == ENOENT;
}

enum status meeting_step(
	struct meeting *meeting, enum status outcome, int64_t takes, struct error *err)
{
	struct doctor_side *self = &meeting->sides[meeting->index];
	int64_t deadline = clock_earlier(clock_after(takes + ANSWER_WITHIN), meeting->deadline);
	self->status = (int)outcome;
	snprintf(self->why, sizeof(self->why), "%s", outcome == STATUS_OK ? "" : err->text);
	enum status status = write_record(meeting, err);
	meeting->lost = status != STATUS_OK;
	if (meeting->lost && is_gone(meeting))
		status = error_set(err, STATUS_TEMPORARY,
			"another process of the doctor ended before it was done");
	for (size_t k = 0; k < meeting->count && status == STATUS_OK; k++)
		if (k != meeting->index)
			status = await_record(meeting, k, deadline, err);
	meeting->step++;
	return status;
}

void meeting_end(struct meeting *meeting)
{
	int64_t deadline = clock_after(ANSWER_WITHIN);
	if (meeting->step == 0 || meeting->lost)
		return;
	if (meeting->index > 0)
		(void)write_record(meeting, NULL);
	for (size_t k = 1; meeting->index == 0 && k < meeting->count && !meeting->lost; k++)
		(void)await_record(meeting, k, deadline, NULL);
}

/* ---- To meet ---- */

/* Read the first records. Returns how many are there, and adds their hosts to came. */
static size_t read_all(struct meeting *meeting, uint64_t *hash, struct text *came)
{
	uint64_t numbers[DOCTOR_SIDES_MAX];
	size_t count = 0;
	text_release(came);
	for (size_t k = 0; k < meeting->count; k++) {
		if (k != meeting->index && !read_record(meeting, k))
			continue;
		text_addf(came, "%s%s", count ? ", " : "", meeting->sides[k].host);
		numbers[count++] = meeting->sides[k].number;
	}
	*hash = XXH64(numbers, count * sizeof(*numbers), 0);
	return count;
}

/* Enter the subdirectory of this hash; side 0 makes it. STATUS_NO: it is not there. */
static enum status enter(struct meeting *meeting, uint64_t hash, struct error *err)
{
	char own[PATH_MAX + 32];
	snprintf(own, sizeof(own), "%s/%016" PRIx64, meeting->scratch, hash);
	/* It may exist: an NFS client may send the request twice. */
	if (meeting->index == 0 && mkdir(own, 0700) < 0 && errno != EEXIST)
		return error_cured(err, errno, store_cure(errno), "make %s", own);
	if (meeting->index > 0 && !is_ours(own))
		return STATUS_NO;
	memcpy(meeting->scratch, own, PATH_MAX);
	meeting->step = 1;
	return STATUS_OK;
}

/* One look. STATUS_NO: not all have met yet. */
static enum status look(
	struct meeting *meeting, bool *written, size_t *count, struct text *came, struct error *err)
{
	char record[PATH_MAX + 32];
	uint64_t hash;
	record_path(meeting, meeting->index, record);
	if (!is_ours(meeting->scratch))
		return STATUS_NO;
	/* Write the record again if side 0 has replaced an earlier launch's directory. */
	if (!*written || access(record, F_OK) < 0)
		*written = write_record(meeting, err) == STATUS_OK;
	if (!*written)
		return is_ours(meeting->scratch) ? err->status : STATUS_NO;
	*count = read_all(meeting, &hash, came);
	return *count == meeting->count ? enter(meeting, hash, err) : STATUS_NO;
}

enum status meeting_begin(struct meeting *meeting, struct error *err)
{
	struct text came = {0};
	size_t count = 0;
	bool written = false;
	enum status status;
	for (int64_t began = clock_now();
		(status = look(meeting, &written, &count, &came, err)) == STATUS_NO;
		pause_since(began)) {
		int64_t now = clock_now(), made = meeting->made ? *meeting->made : 0;
		if (made && !written && now - made > APPEARS_IN)
			break;
		if (now < meeting->deadline)
			continue;
		status = error_set(err, STATUS_TEMPORARY,
			"of %zu nodes that were to meet at %s, %zu came in time: %.300s; start the same "
			"command on each, on this same directory",
			meeting->count, meeting->sides[meeting->index].path, count,
			text_string(&came));
		break;
	}
	text_release(&came);
	return status;
}
