/* SPDX-License-Identifier: MIT */
/* The scratch directory: made, removed, and found again when a doctor was killed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "store/doctor_place.h"
#include "store/lock/lock.h"
#include "store/machine/machine.h"

#define SURELY_OLD 86400 /* seconds; no doctor runs that long */
#define REMOVE_FOR 2000	 /* milliseconds */

static enum status write_owner(const char *scratch, struct error *err)
{
	char *path = NULL;
	struct process_identity self = {0};
	struct json_object *object = json_object_new_object();
	enum status status = process_identify(0, &self, err);
	if (status == STATUS_OK && asprintf(&path, "%s/" DOCTOR_OWNER, scratch) < 0) {
		path = NULL;
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	}
	if (status == STATUS_OK) {
		json_put_text(object, "host", self.host);
		json_put_text(object, "boot", self.boot);
		json_put_unsigned(object, "namespace", self.pid_namespace);
		json_put_signed(object, "pid", self.pid);
		json_put_unsigned(object, "start", self.start);
		const char *line = json_line(object);
		status = file_write_whole(path, line, strlen(line), 0600, false, err);
	}
	free(path);
	json_object_put(object);
	return status;
}

bool doctor_scratch_is_name(const char *name)
{
	size_t length = strlen(DOCTOR_SCRATCH_PREFIX);
	return !strncmp(name, DOCTOR_SCRATCH_PREFIX, length) && strlen(name + length) == 6 &&
	       strspn(name + length, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz") == 6;
}

enum status doctor_scratch_make(const char *directory, char name[64], struct error *err)
{
	char *path = NULL;
	if (asprintf(&path, "%s/" DOCTOR_SCRATCH_PREFIX "XXXXXX", directory) < 0)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	enum status status = STATUS_OK;
	if (!mkdtemp(path)) {
		int number = errno;
		status = error_set(err, error_status_of_errno(number),
			"cannot make a directory in %s: %s%s", directory, strerror(number),
			lock_cure(number));
		free(path);
		return status;
	}
	status = write_owner(path, err);
	if (status == STATUS_OK)
		snprintf(name, 64, "%s", strrchr(path, '/') + 1);
	else
		(void)file_remove_tree(path, NULL);
	free(path);
	return status;
}

/* The pages of /dev/shm that stores in it have made. */
static void forget_stores(int scratch)
{
	int descriptor = dup(scratch);
	DIR *entries = descriptor >= 0 ? fdopendir(descriptor) : NULL;
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		struct stat st;
		struct machine machine;
		const char *dot = strrchr(entry->d_name, '.');
		if (!dot || strcmp(dot, ".lock") ||
			fstatat(scratch, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (machine_open(&machine, st.st_dev, st.st_ino))
			unlink(machine.path);
		machine_close(&machine);
	}
	if (entries)
		closedir(entries);
	else if (descriptor >= 0)
		close(descriptor);
}

void doctor_scratch_remove(const char *directory, const char *name)
{
	int64_t deadline = clock_after(REMOVE_FOR);
	int parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return;
	int scratch = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (scratch >= 0) {
		forget_stores(scratch);
		close(scratch);
	}
	while (file_remove_tree_at(parent, name, NULL) != STATUS_OK && clock_now() < deadline)
		clock_sleep_until(clock_after(20));
	close(parent);
}

/* When a file made now is made, by the clock that stamps files there; 0: cannot tell. */
static time_t filesystem_now(int directory)
{
	char name[64];
	struct stat st;
	time_t now = 0;
	snprintf(name, sizeof(name), DOCTOR_SCRATCH_PREFIX "now-%d", (int)getpid());
	int descriptor =
		openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (descriptor < 0)
		return 0;
	if (fstat(descriptor, &st) == 0)
		now = st.st_mtime;
	close(descriptor);
	unlinkat(directory, name, 0);
	return now;
}

/* Whether the process that made this scratch directory is known to be gone. */
static bool owner_is_gone(int parent, const char *name)
{
	char path[300];
	struct text text = {0};
	struct process_identity owner = {0};
	int64_t pid = 0;
	bool gone = false;
	snprintf(path, sizeof(path), "%s/" DOCTOR_OWNER, name);
	int descriptor = openat(parent, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (descriptor < 0)
		return false;
	if (file_read_descriptor(descriptor, path, 4096, &text, NULL) == STATUS_OK) {
		struct json_object *object = json_parse(text_string(&text), text.length);
		if (json_copy_text(object, "boot", owner.boot, sizeof(owner.boot)) &&
			json_get_unsigned(object, "namespace", &owner.pid_namespace) &&
			json_get_signed(object, "pid", &pid) && pid > 0 && pid <= INT_MAX &&
			json_get_unsigned(object, "start", &owner.start)) {
			owner.pid = (pid_t)pid;
			gone = process_check(&owner) == PROCESS_GONE;
		}
		json_object_put(object);
	}
	text_release(&text);
	close(descriptor);
	return gone;
}

void doctor_scratch_sweep(const char *directory, int64_t patience)
{
	int64_t deadline = clock_after(patience);
	time_t now = -1;
	DIR *entries = opendir(directory);
	for (struct dirent *entry;
		entries && clock_now() < deadline && (entry = readdir(entries));) {
		struct stat st;
		int parent = dirfd(entries);
		if (strncmp(entry->d_name, DOCTOR_SCRATCH_PREFIX, strlen(DOCTOR_SCRATCH_PREFIX)) ||
			fstatat(parent, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
			continue;
		/* Where nodes meet: it goes with the last of them, unless that one was killed. */
		if (!strncmp(entry->d_name, DOCTOR_MEET, strlen(DOCTOR_MEET)) &&
			unlinkat(parent, entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		bool gone = owner_is_gone(parent, entry->d_name);
		if (!gone) {
			if (now == -1)
				now = filesystem_now(parent);
			gone = now > 0 && now - st.st_mtime > SURELY_OLD;
		}
		if (gone)
			doctor_scratch_remove(directory, entry->d_name);
	}
	if (entries)
		closedir(entries);
}
