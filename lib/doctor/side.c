/* SPDX-License-Identifier: MIT */
#include "doctor/side.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mounts.h"
#include "base/process/process.h"
#include "store/access.h"
#include "store/failure.h"
#include "store/sqlite/options.h"
#include "store/store.h"

#define PROBE_FOR 1000 /* milliseconds */

/* The only place that knows the kinds. */
void doctor_name_lock(const char *database, char *words, size_t size)
{
	struct stat st;
	char path[PATH_MAX + 64];
	*words = '\0';
	WRITE(path, "%s.lock", database);
	if (lstat(path, &st) == 0)
		snprintf(words, size, "lock=%s", S_ISDIR(st.st_mode) ? "token" : "file");
}

/* ---- Which directory ---- */

/* Find the directory of the store of the request, and its real path. */
static enum status find_store(struct examination *examination, struct error *err)
{
	char database[PATH_MAX];
	const char *text = examination->request->url;
	struct store_url *url = &examination->url;
	struct parameters parameters;
	struct stat st;
	enum status status = url_parse(text, url, err);
	if (status == STATUS_OK && strcmp(url->scheme, "sqlite"))
		status = error_set(err, STATUS_USAGE,
			"store %s is not a file: there is nothing to examine", text);
	if (status == STATUS_OK)
		status = parameters_read(url, &parameters, err);
	if (status != STATUS_OK)
		return status;
	examination->shared_group = parameters.shared_group;
	/* The directory of a store behind a symbolic link is that of the link's target. */
	if (!realpath(url->path, database))
		snprintf(database, PATH_MAX, "%s%s", strchr(url->path, '/') ? "" : "./", url->path);
	if (stat(database, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(err, STATUS_USAGE,
			"store %s is a directory: name the file of the store in it, or give the directory "
			"without --store",
			database);
	char *parent = file_directory_of(database);
	WRITE(examination->findings->directory, "%s", parent);
	free(parent);
	return STATUS_OK;
}

static enum status find_directory(struct examination *examination, struct error *err)
{
	const struct doctor_request *request = examination->request;
	char *directory = examination->findings->directory;
	if (request->url) {
		enum status status = find_store(examination, err);
		if (status != STATUS_OK)
			return status;
	} else {
		snprintf(directory, PATH_MAX, "%s", request->directory);
	}
	if (request->other && examination->meeting.index == 1)
		snprintf(directory, PATH_MAX, "%s", request->other);
	if (!*directory)
		return error_set(err, STATUS_USAGE, "the path of a directory is empty");
	/* The path must leave room for the names of a store's files. */
	if (strchr(directory, '?') || strlen(directory) > PATH_MAX - 256)
		return error_set(err, STATUS_USAGE,
			"%.200s: the path of a store cannot contain \"?\", or be so long",
			directory);
	return STATUS_OK;
}

/* ---- The place ---- */

/* STATUS_NO: what belongs there is not mounted. */
static enum status look_at_directory(
	const struct doctor_findings *findings, struct stat *st, struct error *err)
{
	const char *directory = findings->directory;
	if (mounts_check(err) == STATUS_TEMPORARY)
		return STATUS_NO;
	int number = stat(directory, st) < 0 ? errno : S_ISDIR(st->st_mode) ? 0 : ENOTDIR;
	if (number == 0)
		return STATUS_OK;
	error_cured(err, number, store_cure(number), "look at %.300s", directory);
	return number == ENOENT && findings->request->shared ? STATUS_NO : err->status;
}

static enum status look_at_place(struct examination *examination, struct error *err)
{
	const char *directory = examination->findings->directory;
	struct doctor_side *self = examination->self;
	struct process_identity us = {0};
	struct filesystem filesystem;
	struct error distrust = {0};
	struct stat st;
	char real[PATH_MAX];
	enum status status = look_at_directory(examination->findings, &st, err);
	if (status == STATUS_OK)
		status = process_identify(0, &us, err);
	if (status == STATUS_OK)
		status = filesystem_inspect(directory, &filesystem, err);
	if (status != STATUS_OK)
		return status;
	struct filesystem_traits traits = filesystem_classify(&filesystem);
	WRITE(self->host, "%s", us.host);
	WRITE(self->boot, "%s", us.boot);
	WRITE(self->path, "%.255s", realpath(directory, real) ? real : directory);
	WRITE(self->filesystem, "%s", traits.name);
	WRITE(self->type, "%s", filesystem.type);
	WRITE(self->options, "%.1023s", filesystem.options);
	WRITE(self->warning, "%s", traits.warning ? traits.warning : "");
	self->device = st.st_dev;
	(void)access_check(directory, &st, examination->shared_group, &distrust);
	WRITE(self->distrust, "%.255s", distrust.text);
	/*
	 * If a store is named, its directory must be fit for it. If only a directory is named, a
	 * store could be made in a subdirectory, unless other users could replace that.
	 */
	bool safe = (st.st_uid == geteuid() || st.st_uid == 0) &&
		    (!(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX));
	return !*distrust.text || (safe && !examination->request->url)
		       ? STATUS_OK
		       : error_set(err, distrust.status, "%s", distrust.text);
}

/* Ask the store of the request, which stays as it is. */
static void ask_store(struct examination *examination)
{
	struct doctor_side *self = examination->self;
	struct store *store = NULL;
	struct store_entry entry = {0};
	struct error err = {0};
	enum status status = store_open_patient(
		&store, examination->request->url, STORE_READ_ONLY, PROBE_FOR, &err);
	self->store = (int)status;
	if (status == STATUS_OK) {
		status = store_get(store, "doctor", &entry, &err);
		if (status != STATUS_NO)
			self->store = (int)status;
		store_entry_release(&entry);
		store_close(store);
	}
	WRITE(self->store_why, "%s", err.text);
}

/* ---- In order ---- */

/* Whether all sides were asked for the same. */
static enum status compare_terms(const struct meeting *meeting, struct error *err)
{
	const struct doctor_side *sides = meeting->sides;
	for (size_t k = 1; k < meeting->count; k++)
		if (strcmp(sides[k].terms, sides[0].terms))
			return error_set(err, STATUS_USAGE,
				"%s runs %s, and %s runs %s: start the same command on all nodes",
				sides[0].host, sides[0].terms, sides[k].host, sides[k].terms);
	return STATUS_OK;
}

/* The terms are the version and what the sides have to agree on. */
static enum status introduce(struct examination *examination, struct error *err)
{
	const struct doctor_request *request = examination->request;
	struct doctor_side *self = examination->self;
	const char *parameters = request->url ? strchr(request->url, '?') : NULL;
	if (getrandom(&self->number, sizeof(self->number), 0) != sizeof(self->number))
		return error_set(err, STATUS_TEMPORARY, "no random numbers");
	WRITE(self->terms, "preempt-tools " PREEMPT_VERSION " %zu%s%s%s%.100s", sizeof(*self),
		request->quick ? " --quick" : "", request->shared ? " --shared" : "",
		request->url ? " --store" : "", parameters ? parameters : "");
	return STATUS_OK;
}

static enum status meet(
	struct examination *examination, struct doctor_work *work, struct error *err)
{
	struct meeting *meeting = &examination->meeting;
	enum status status = introduce(examination, err);
	if (status == STATUS_OK && meeting->index == 0) {
		status = meeting_make(meeting->scratch, err);
		work->made = clock_now();
	}
	if (status == STATUS_OK)
		status = meeting_begin(meeting, err);
	if (status == STATUS_NO)
		return error_set(err, examination->request->other ? STATUS_USAGE : STATUS_TEMPORARY,
			"%.300s is not the same directory: what is made in the other does not appear in "
			"it; give the same one through its other mount",
			examination->findings->directory);
	return status == STATUS_OK ? compare_terms(meeting, err) : status;
}

static enum status begin(struct examination *examination, const char *name,
	struct doctor_work *work, struct error *err)
{
	const char *directory = examination->findings->directory;
	enum status status = find_directory(examination, err);
	if (status != STATUS_OK)
		return status;
	(void)snprintf(work->scratch, PATH_MAX, "%s/%s", directory, name);
	memcpy(examination->meeting.scratch, work->scratch, PATH_MAX);
	work->named = true;
	status = look_at_place(examination, err);
	if (status == STATUS_OK && examination->request->url)
		ask_store(examination);
	return status;
}

void doctor_be_side(const struct doctor_request *request, size_t index, const char *name,
	struct doctor_work *work)
{
	struct doctor_work *ours = &work[request->nodes ? 0 : index];
	struct doctor_findings *findings = &ours->findings;
	struct examination examination = {.request = request,
		.findings = findings,
		.self = &findings->sides[index],
		.meeting = {.made = request->nodes ? NULL : &work->made,
			.index = index,
			.count = request->nodes ? request->nodes : 2,
			.deadline = clock_after(request->timeout),
			.sides = findings->sides}};
	struct error err = {0};
	examination.self->store = STATUS_NO;
	enum status status = begin(&examination, name, ours, &err);
	if (status == STATUS_OK)
		status = meet(&examination, work, &err);
	if (status == STATUS_OK) {
		findings->count = examination.meeting.count;
		findings->clients = doctor_count_clients(findings->sides, findings->count);
		if (request->nodes)
			examination.meeting.deadline = clock_after(MEASURE_FOR);
		doctor_try(&examination);
	} else {
		doctor_trouble(findings, status, err.text);
	}
	ours->done = findings->trouble == STATUS_OK;
	meeting_end(&examination.meeting);
	url_release(&examination.url);
}
