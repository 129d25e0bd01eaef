/* SPDX-License-Identifier: MIT */
#include "doctor/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/process.h"
#include "store/failure.h"
#include "store/lock/lockfile.h"

#define SURELY_OLD 86400 /* seconds; no doctor runs that long */
/* Milliseconds. */
#define REMOVE_FOR 2000
#define SWEEP_FOR  200

/* A hash of the PID namespace in which the process number in a name is valid. */
static uint64_t hash_machine(const struct process_identity *us)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "%s %" PRIu64 " %" PRIu64, us->boot,
		us->pid_namespace, us->time_namespace);
	return XXH64(text, (size_t)length, 0);
}

bool doctor_scratch_name(const char *session, char name[DOCTOR_SCRATCH_NAME])
{
	struct process_identity us = {0};
	if (session)
		return snprintf(name, DOCTOR_SCRATCH_NAME, DOCTOR_SCRATCH_PREFIX "%016" PRIx64,
			       XXH64(session, strlen(session), geteuid())) > 0;
	if (process_identify(0, &us, NULL) != STATUS_OK)
		return false;
	snprintf(name, DOCTOR_SCRATCH_NAME, DOCTOR_SCRATCH_PREFIX "%016" PRIx64 "-%x-%" PRIx64,
		hash_machine(&us), (unsigned)us.pid, us.start);
	return true;
}

/* Whether a process of this machine has made it, and is gone. */
static bool is_gone(const char *name)
{
	struct process_identity us = {0};
	uint64_t machine;
	unsigned pid;
	if (process_identify(0, &us, NULL) != STATUS_OK ||
		sscanf(name, DOCTOR_SCRATCH_PREFIX "%16" SCNx64 "-%x-%" SCNx64, &machine, &pid,
			&us.start) != 3 ||
		machine != hash_machine(&us))
		return false;
	us.pid = (pid_t)pid;
	return us.pid > 0 && process_check(&us) == PROCESS_GONE;
}

/*
 * Remove a directory with our prefix in its name. Rename it first, so that sides that still run
 * do not find it.
 */
static void remove_until(const char *path, int64_t deadline)
{
	char old[PATH_MAX];
	const char *name = strrchr(path, '/');
	if (!name || strncmp(name + 1, DOCTOR_SCRATCH_PREFIX, strlen(DOCTOR_SCRATCH_PREFIX)) ||
		snprintf(old, sizeof(old), "%s-old", path) >= PATH_MAX)
		return;
	for (;;) {
		bool removed = file_remove_tree(old, NULL) == STATUS_OK;
		if ((removed && rename(path, old) < 0) || clock_now() >= deadline)
			return;
		if (!removed)
			usleep(20000);
	}
}

void doctor_scratch_remove(const char *path)
{
	remove_until(path, clock_after(REMOVE_FOR));
}

static bool is_left_over(const char *name, const struct stat *st, const struct stat *ours)
{
	return !strncmp(name, DOCTOR_SCRATCH_PREFIX, strlen(DOCTOR_SCRATCH_PREFIX)) &&
	       S_ISDIR(st->st_mode) && st->st_uid == geteuid() &&
	       (is_gone(name) || ours->st_mtime - st->st_mtime > SURELY_OLD);
}

static void sweep(const char *made)
{
	struct stat ours, st;
	char path[PATH_MAX];
	int64_t deadline = clock_after(SWEEP_FOR);
	char *directory = file_directory_of(made);
	DIR *entries = stat(made, &ours) == 0 ? opendir(directory) : NULL;
	for (struct dirent *entry; entries && clock_now() < deadline && (entry = readdir(entries));)
		if (fstatat(dirfd(entries), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			is_left_over(entry->d_name, &st, &ours) &&
			snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) < PATH_MAX)
			remove_until(path, deadline);
	if (entries)
		closedir(entries);
	free(directory);
}

enum status doctor_scratch_make(const char *path, struct error *err)
{
	doctor_scratch_remove(path);
	if (mkdir(path, 0700) < 0)
		return error_cured(err, errno, store_cure(errno), "make %s", path);
	sweep(path);
	return STATUS_OK;
}
