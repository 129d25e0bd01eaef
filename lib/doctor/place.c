/* SPDX-License-Identifier: MIT */
/* What one side learns of the directory without changing it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mounts.h"
#include "base/process/process.h"
#include "doctor/examine.h"
#include "store/access.h"
#include "store/failure.h"
#include "store/lock/lockfile.h"

static enum status look_at_directory(
	struct examination *examination, const char *directory, struct stat *st, struct error *err)
{
	struct doctor_findings *findings = examination->findings;
	enum status status = mounts_check(err);
	if (status != STATUS_TEMPORARY) {
		int number = stat(directory, st) < 0 ? errno : S_ISDIR(st->st_mode) ? 0 : ENOTDIR;
		if (number == 0)
			return STATUS_OK;
		status = error_cured(err, number, store_cure(number), "look at %.300s", directory);
		if (number != ENOENT || !findings->shared)
			return status;
	}
	snprintf(findings->unmounted, sizeof(findings->unmounted), "%s", err->text);
	return STATUS_NO;
}

enum status doctor_look_at_place(struct examination *examination, struct error *err)
{
	const char *directory = examination->findings->directory;
	struct doctor_side *self = examination->self;
	struct process_identity us = {0};
	struct error distrust = {0};
	struct stat st;
	char real[PATH_MAX];
	enum status status = look_at_directory(examination, directory, &st, err);
	if (status == STATUS_OK)
		status = process_identify(0, &us, err);
	if (status == STATUS_OK)
		status = filesystem_inspect(directory, &self->filesystem, err);
	if (status != STATUS_OK)
		return status;
	snprintf(self->host, sizeof(self->host), "%s", us.host);
	snprintf(self->boot, sizeof(self->boot), "%s", us.boot);
	snprintf(self->path, sizeof(self->path), "%.255s",
		realpath(directory, real) ? real : directory);
	self->device = st.st_dev;
	(void)access_check(directory, &st, examination->wanted.shared_group, &distrust);
	snprintf(self->distrust, sizeof(self->distrust), "%.255s", distrust.text);
	/*
	 * If a store is named, its directory must be fit for it. If only a directory is named, a
	 * store could be made in a subdirectory, unless other users could replace that.
	 */
	bool safe = (st.st_uid == geteuid() || st.st_uid == 0) &&
		    (!(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX));
	return !*distrust.text || (safe && !*examination->database)
		       ? STATUS_OK
		       : error_set(err, distrust.status, "%s", distrust.text);
}
