/* SPDX-License-Identifier: MIT */
#include "store/doctor_worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "store/convert.h"
#include "store/doctor_place.h"

#define APPEARS_IN  3000 /* milliseconds: a cached "no such file" of a network filesystem */
#define GATHER_FOR  1000
#define LOCKED_BYTE 4096    /* as in the lock file of a store */
#define LONGEST	    3600000 /* milliseconds that a request may ask for */

bool doctor_name(const struct json_object *request, const char **name)
{
	return json_get_text(request, "name", name) && **name && !strchr(*name, '/') &&
	       strcmp(*name, ".") != 0 && strcmp(*name, "..") != 0;
}

bool doctor_milliseconds(const struct json_object *request, uint64_t *limit)
{
	return json_get_unsigned(request, "ms", limit) && *limit <= LONGEST;
}

void doctor_path(
	const struct doctor_worker *worker, char *path, size_t size, const char *format, ...)
{
	va_list arguments;
	int used = snprintf(path, size, "%s/", worker->scratch);
	va_start(arguments, format);
	if (used > 0 && (size_t)used < size)
		vsnprintf(path + used, size - (size_t)used, format, arguments);
	va_end(arguments);
}

enum status doctor_failed(struct error *err, const char *action, const char *path, int number)
{
	return error_set(err, error_status_of_errno(number), "cannot %s %s: %s%s", action, path,
		strerror(number), lock_cure(number));
}

static bool wait_for(const struct doctor_worker *worker, const char *path, int64_t deadline)
{
	while (access(path, F_OK) < 0) {
		if (clock_now() >= deadline)
			return false;
		usleep(200);
		(void)file_ask_for_names(AT_FDCWD, worker->scratch);
	}
	return true;
}

void doctor_gather(struct doctor_worker *worker)
{
	char path[PATH_MAX];
	int64_t deadline = clock_after(GATHER_FOR);
	unsigned number = worker->gathered++;
	doctor_path(worker, path, sizeof(path), "come.%u.%llu", number,
		(unsigned long long)worker->index);
	int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (descriptor >= 0)
		close(descriptor);
	for (uint64_t k = 0; k < worker->count; k++) {
		doctor_path(
			worker, path, sizeof(path), "come.%u.%llu", number, (unsigned long long)k);
		(void)wait_for(worker, path, deadline);
	}
}

static enum status look(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	bool shared_group = false;
	(void)json_get_bool(request, "shared_group", &shared_group);
	return doctor_place_look(worker->directory, shared_group, answer, err);
}

static enum status begin(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	const char *name;
	uint64_t index, count;
	int64_t deadline = clock_after(APPEARS_IN);
	(void)answer;
	if (!json_get_text(request, "scratch", &name) || !doctor_scratch_is_name(name) ||
		!json_get_unsigned(request, "index", &index) ||
		!json_get_unsigned(request, "count", &count) || count > DOCTOR_SIDES_MAX ||
		index >= count)
		return error_set(err, STATUS_DAMAGED, "begin: not understood");
	worker->index = index;
	worker->count = count;
	free(worker->scratch);
	if (asprintf(&worker->scratch, "%s/%s", worker->directory, name) < 0) {
		worker->scratch = NULL;
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	}
	while (access(worker->scratch, F_OK) < 0) {
		if (clock_now() >= deadline)
			return error_set(
				err, STATUS_NO, "%s is not in %s", name, worker->directory);
		usleep(1000);
		(void)file_ask_for_names(AT_FDCWD, worker->directory);
	}
	return STATUS_OK;
}

static enum status write_file(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	char path[PATH_MAX];
	const char *name, *content;
	(void)answer;
	if (!doctor_name(request, &name) || !json_get_text(request, "text", &content))
		return error_set(err, STATUS_DAMAGED, "write: not understood");
	doctor_path(worker, path, sizeof(path), "%s", name);
	return file_write_whole(path, content, strlen(content), 0600, true, err);
}

static enum status read_file(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	char path[PATH_MAX];
	const char *name;
	struct text content = {0};
	if (!doctor_name(request, &name))
		return error_set(err, STATUS_DAMAGED, "read: not understood");
	doctor_path(worker, path, sizeof(path), "%s", name);
	(void)wait_for(worker, path, clock_after(APPEARS_IN));
	enum status status = file_read_whole(path, 4096, &content, err);
	if (status == STATUS_OK)
		json_put_text(answer, "text", text_string(&content));
	text_release(&content);
	return status;
}

/* 0, EAGAIN where another holds it, or what went wrong. */
static int lock_file(int descriptor, bool posix, short type)
{
	struct flock flock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = LOCKED_BYTE, .l_len = 1};
	if (fcntl(descriptor, posix ? F_SETLK : F_OFD_SETLK, &flock) == 0)
		return 0;
	return errno == EACCES || errno == EINTR ? EAGAIN : errno;
}

/* keep: until drop. */
static enum status lock(struct doctor_worker *worker, const struct json_object *request, bool keep,
	struct json_object *answer, struct error *err)
{
	char path[PATH_MAX];
	const char *name, *kind;
	if (!doctor_name(request, &name) || !json_get_text(request, "kind", &kind))
		return error_set(err, STATUS_DAMAGED, "lock: not understood");
	doctor_path(worker, path, sizeof(path), "%s", name);
	int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (descriptor < 0)
		return doctor_failed(err, "open", path, errno);
	int number = lock_file(descriptor, !strcmp(kind, "posix"), F_WRLCK);
	if (number == 0 && keep) {
		if (worker->held >= 0)
			close(worker->held);
		worker->held = descriptor;
	} else {
		if (number == 0)
			(void)lock_file(descriptor, !strcmp(kind, "posix"), F_UNLCK);
		close(descriptor);
	}
	if (number != 0 && number != EAGAIN)
		return doctor_failed(err, "lock", path, number);
	json_put_bool(answer, "got", number == 0);
	return STATUS_OK;
}

static enum status hold(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	return lock(worker, request, true, answer, err);
}

static enum status try(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	return lock(worker, request, false, answer, err);
}

static enum status drop(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	(void)request, (void)answer, (void)err;
	if (worker->held >= 0)
		close(worker->held);
	worker->held = -1;
	return STATUS_OK;
}

static enum status find_opener(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	char path[PATH_MAX], opener[160];
	const char *name;
	if (!doctor_name(request, &name))
		return error_set(err, STATUS_DAMAGED, "opener: not understood");
	if (snprintf(path, sizeof(path), "%s/%s", worker->directory, name) < (int)sizeof(path)) {
		convert_find_opener(path, opener, sizeof(opener));
		json_put_text(answer, "opener", opener);
	}
	return STATUS_OK;
}

static const struct {
	const char *name;
	enum status (*run)(struct doctor_worker *worker, const struct json_object *request,
		struct json_object *answer, struct error *err);
	bool anywhere; /* also before begin */
} requests[] = {
	{"look", look, true},
	{"begin", begin, true},
	{"write", write_file, false},
	{"read", read_file, false},
	{"hold", hold, false},
	{"drop", drop, true},
	{"try", try, false},
	{"race", doctor_race, false},
	{"stale", doctor_stale, false},
	{"open", doctor_open, false},
	{"close", doctor_close, true},
	{"alone", doctor_alone, false},
	{"contend", doctor_contend, false},
	{"count", doctor_count, false},
	{"notice", doctor_notice, false},
	{"probe", doctor_probe, true},
	{"check", doctor_check_database, false},
	{"opener", find_opener, true},
};

struct json_object *doctor_worker_do(
	struct doctor_worker *worker, const struct json_object *request)
{
	struct error err = {0};
	const char *name = "";
	struct json_object *answer = json_object_new_object();
	enum status status = STATUS_DAMAGED;
	error_set(&err, status, "a request that is not known");
	(void)json_get_text(request, "do", &name);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (!strcmp(requests[i].name, name) && (requests[i].anywhere || worker->scratch))
			status = requests[i].run(worker, request, answer, &err);
	json_put_signed(answer, "status", status);
	if (status != STATUS_OK)
		json_put_text(answer, "why", err.text);
	return answer;
}

void doctor_worker_init(struct doctor_worker *worker, const char *directory)
{
	*worker = (struct doctor_worker){.directory = directory, .held = -1};
}

void doctor_worker_release(struct doctor_worker *worker)
{
	if (worker->held >= 0)
		close(worker->held);
	store_close(worker->store);
	free(worker->scratch);
	doctor_worker_init(worker, NULL);
}
