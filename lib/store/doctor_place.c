/* SPDX-License-Identifier: MIT */
#include "store/doctor_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/process.h"
#include "store/access.h"
#include "store/lock/lock.h"
#include "store/machine/machine.h"

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

static void put_space(int descriptor, struct json_object *object)
{
	struct statvfs space;
	if (fstatvfs(descriptor, &space) < 0)
		return;
	json_put_signed(object, "free_bytes", (int64_t)(space.f_bavail * space.f_frsize));
	/* Filesystems that make inodes as they need them say 0 of 0. */
	if (space.f_files)
		json_put_signed(object, "free_inodes", (int64_t)space.f_favail);
}

/* The least of what the quotas of us and of our group leave. */
static void put_quota(int descriptor, struct json_object *object)
{
	const struct {
		unsigned type;
		unsigned id;
	} whose[] = {{USRQUOTA, geteuid()}, {GRPQUOTA, getegid()}};
	int64_t bytes = -1, inodes = -1;
	int number = 0;
	for (int i = 0; i < 2; i++) {
		struct dqblk quota = {0};
		if (syscall(SYS_quotactl_fd, descriptor, QCMD((unsigned)Q_GETQUOTA, whose[i].type),
			    whose[i].id, &quota) < 0) {
			number = errno;
			continue;
		}
		int64_t left = (int64_t)quota.dqb_bhardlimit * 1024 - (int64_t)quota.dqb_curspace;
		if (quota.dqb_bhardlimit && (bytes < 0 || left < bytes))
			bytes = left < 0 ? 0 : left;
		left = (int64_t)quota.dqb_ihardlimit - (int64_t)quota.dqb_curinodes;
		if (quota.dqb_ihardlimit && (inodes < 0 || left < inodes))
			inodes = left < 0 ? 0 : left;
	}
	json_put_signed(object, "quota_bytes", bytes);
	json_put_signed(object, "quota_inodes", inodes);
	/* ESRCH: there are none on this filesystem. */
	if (number && number != ESRCH && bytes < 0 && inodes < 0) {
		char why[96];
		snprintf(why, sizeof(why), "could not be asked (%s)", strerror(number));
		json_put_text(object, "quota", why);
	}
}

static void put_versions(struct json_object *object)
{
	struct utsname kernel;
	struct process_identity self;
	char text[160] = "";
	if (uname(&kernel) == 0)
		snprintf(text, sizeof(text), "%.40s %.80s", kernel.sysname, kernel.release);
	json_put_text(object, "kernel", text);
	json_put_text(object, "sqlite", sqlite3_libversion());
	json_put_text(object, "version", PREEMPT_VERSION);
	if (process_identify(0, &self, NULL) == STATUS_OK) {
		json_put_text(object, "host", self.host);
		json_put_text(object, "boot", self.boot);
	}
	json_put_signed(object, "utc", clock_utc());
}

/* Whether the queue of this machine's processes works, tried with a page nobody else knows. */
static bool queue_works(void)
{
	struct machine machine;
	bool works = machine_open(&machine, 0, (ino_t)getpid());
	if (works)
		unlink(machine.path);
	machine_close(&machine);
	return works;
}

static enum status put_trust(const char *directory, const struct stat *st, bool shared_group,
	struct json_object *object, struct error *err)
{
	struct error why = {0};
	enum status status = access_check(directory, st, shared_group, &why);
	json_put_bool(object, "trusted", status == STATUS_OK);
	if (status != STATUS_OK)
		json_put_text(object, "why_not", why.text);
	/* Where anybody could exchange what we make there, we make nothing. */
	bool safe = (st->st_uid == geteuid() || st->st_uid == 0) &&
		    (!(st->st_mode & (S_IWGRP | S_IWOTH)) || (st->st_mode & S_ISVTX));
	return status == STATUS_OK || safe ? STATUS_OK : error_set(err, why.status, "%s", why.text);
}

enum status doctor_place_look(
	const char *directory, bool shared_group, struct json_object *object, struct error *err)
{
	struct filesystem filesystem;
	struct stat st;
	char real[PATH_MAX];
	int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum status status = STATUS_OK;
	if (descriptor < 0 || fstat(descriptor, &st) < 0) {
		int number = errno;
		status = error_set(err, error_status_of_errno(number), "cannot look at %s: %s%s",
			directory, strerror(number), lock_cure(number));
		goto out;
	}
	status = filesystem_inspect(directory, &filesystem, err);
	if (status == STATUS_OK)
		status = put_trust(directory, &st, shared_group, object, err);
	if (status != STATUS_OK)
		goto out;
	json_put_text(object, "path", realpath(directory, real) ? real : directory);
	json_put_unsigned(object, "device", st.st_dev);
	json_put_unsigned(object, "magic", filesystem.magic);
	json_put_text(object, "type", filesystem.type);
	json_put_text(object, "options", filesystem.options);
	put_space(descriptor, object);
	put_quota(descriptor, object);
	put_versions(object);
	json_put_bool(object, "queue", queue_works());
out:
	if (descriptor >= 0)
		close(descriptor);
	return status;
}

void doctor_place_read(const struct json_object *object, struct doctor_side *side, int64_t *utc)
{
	*side = (struct doctor_side){
		.free_bytes = -1, .free_inodes = -1, .quota_bytes = -1, .quota_inodes = -1};
	(void)json_copy_text(object, "host", side->host, sizeof(side->host));
	(void)json_copy_text(object, "boot", side->boot, sizeof(side->boot));
	(void)json_copy_text(object, "path", side->path, sizeof(side->path));
	(void)json_get_unsigned(object, "device", &side->device);
	(void)json_get_bool(object, "trusted", &side->trusted);
	(void)json_copy_text(object, "why_not", side->why_not, sizeof(side->why_not));
	(void)json_get_unsigned(object, "magic", &side->filesystem.magic);
	(void)json_copy_text(object, "type", side->filesystem.type, sizeof(side->filesystem.type));
	(void)json_copy_text(
		object, "options", side->filesystem.options, sizeof(side->filesystem.options));
	(void)json_get_signed(object, "free_bytes", &side->free_bytes);
	(void)json_get_signed(object, "free_inodes", &side->free_inodes);
	(void)json_get_signed(object, "quota_bytes", &side->quota_bytes);
	(void)json_get_signed(object, "quota_inodes", &side->quota_inodes);
	(void)json_copy_text(object, "quota", side->quota, sizeof(side->quota));
	(void)json_get_bool(object, "queue", &side->queue);
	(void)json_copy_text(object, "kernel", side->kernel, sizeof(side->kernel));
	(void)json_copy_text(object, "sqlite", side->sqlite, sizeof(side->sqlite));
	(void)json_copy_text(object, "version", side->version, sizeof(side->version));
	*utc = 0;
	(void)json_get_time(object, "utc", utc);
}
