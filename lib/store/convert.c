/* SPDX-License-Identifier: MIT */
#include "store/convert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parse.h"
#include "store/cache.h"
#include "store/doctor_peer.h"
#include "store/lock/lock.h"

#define LOCK_PATIENCE 5000 /* milliseconds */
#define CHECK_EVERY   500

struct fix {
	const char *database;
	char *lock, *fresh; /* DATABASE.lock, DATABASE.lock-fix */
	bool shared_group;
	int64_t takeover; /* as in struct parameters */
	struct lockfile old;
	struct lockfile intent; /* what an interrupted one left */
	bool has_intent;
	/* The locks of both modes. */
	struct sharedlock locks[2];
	size_t locked;
};

/* ---- Who has it open ---- */

/* "/dir/run.db" of "/dir/run.db", "/dir/run.db.lock", "/dir/run.db-journal",
 * "/dir/run.db.beats/..." */
static bool belongs(const char *target, const char *database)
{
	static const char *const rest[] = {"", "-journal", ".lock", ".lock.held"};
	size_t length = strlen(database);
	if (strncmp(target, database, length))
		return false;
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		if (!strcmp(target + length, rest[i]))
			return true;
	return !strncmp(target + length, ".beats/", 7);
}

static bool has_open(const char *pid, const char *database)
{
	char path[300], target[PATH_MAX];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	DIR *descriptors = opendir(path);
	for (struct dirent *entry; descriptors && !found && (entry = readdir(descriptors));) {
		ssize_t n =
			readlinkat(dirfd(descriptors), entry->d_name, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		found = belongs(target, database);
	}
	if (descriptors)
		closedir(descriptors);
	return found;
}

enum status doctor_find_opener(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *name;
	if (!doctor_name(request, &name))
		return error_set(err, STATUS_DAMAGED, "opener: not understood");
	if (snprintf(path, sizeof(path), "%s/%s", worker->directory, name) >= (int)sizeof(path) ||
		!realpath(path, real))
		return STATUS_OK;
	DIR *processes = opendir("/proc");
	for (struct dirent *entry; processes && (entry = readdir(processes));) {
		uint64_t pid;
		struct text program = {0};
		if (!parse_decimal(entry->d_name, &pid) || !has_open(entry->d_name, real))
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
		(void)file_read_whole(path, 64, &program, NULL);
		if (program.length && program.data[program.length - 1] == '\n')
			program.data[program.length - 1] = '\0';
		json_put_unsigned(answer, "pid", pid);
		json_put_text(answer, "program", text_string(&program));
		text_release(&program);
		break;
	}
	if (processes)
		closedir(processes);
	return STATUS_OK;
}

/* ---- Whether it changes ---- */

static void mix(uint64_t *hash, const void *bytes, size_t length)
{
	for (const unsigned char *at = bytes; length--; at++)
		*hash = (*hash ^ *at) * 1099511628211u;
}

/* What a commit or a beat changes; not times, which dropping caches changes on some filesystems. */
static void mix_file(uint64_t *hash, const char *path)
{
	char head[4096];
	struct stat st;
	int descriptor = cache_open(CACHE_CLIENT, path);
	if (descriptor < 0)
		return;
	ssize_t n = pread(descriptor, head, sizeof(head), 0);
	if (n > 0)
		mix(hash, head, (size_t)n);
	if (fstat(descriptor, &st) == 0)
		mix(hash, &st.st_size, sizeof(st.st_size));
	close(descriptor);
}

static void mix_tree(uint64_t *hash, const char *path, int depth)
{
	DIR *entries = opendir(path);
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		char below[PATH_MAX];
		if (entry->d_name[0] == '.' || snprintf(below, sizeof(below), "%s/%s", path,
						       entry->d_name) >= (int)sizeof(below))
			continue;
		uint64_t one = 14695981039346656037u;
		mix(&one, entry->d_name, strlen(entry->d_name));
		if (depth > 0)
			mix_tree(&one, below, depth - 1);
		else
			mix_file(&one, below);
		*hash += one; /* in any order */
	}
	if (entries)
		closedir(entries);
}

static uint64_t fingerprint(const struct fix *fix)
{
	char path[PATH_MAX];
	uint64_t hash = 14695981039346656037u;
	mix_file(&hash, fix->database);
	snprintf(path, sizeof(path), "%s-journal", fix->database);
	mix_file(&hash, path);
	snprintf(path, sizeof(path), "%s.beats", fix->database);
	mix_tree(&hash, path, 2); /* RUN/ATTEMPT/TASK */
	return hash;
}

static enum status watch(const struct fix *fix, int64_t patience, struct error *err)
{
	int64_t deadline = clock_after(patience);
	uint64_t before = fingerprint(fix);
	while (clock_now() < deadline) {
		if (doctor_stop)
			return error_set(err, STATUS_TEMPORARY, "%s", doctor_stop_why());
		clock_sleep_until(clock_after(CHECK_EVERY));
		if (fingerprint(fix) != before)
			return error_set(err, STATUS_TEMPORARY,
				"%s is in use: it was changed while we held its locks; stop everything "
				"that uses it, on all machines",
				fix->database);
	}
	return STATUS_OK;
}

/* ---- Locks ---- */

static enum status lock(struct fix *fix, enum lock_mode mode, struct error *err)
{
	char key[PATH_MAX];
	struct sharedlock *lock = &fix->locks[fix->locked];
	sharedlock_init(lock);
	enum status status = lockfile_inspect(&lock->file, fix->lock, fix->shared_group, err);
	if (status != STATUS_OK)
		return status;
	/* Each has a guard of its own: both are ours. */
	snprintf(key, sizeof(key), "%s %s", lock_mode_name(mode), fix->database);
	lock->mutex = database_mutex_get(key);
	lock->file.mode = mode;
	if (!lock->file.takeover)
		lock->file.takeover = TAKEOVER_DEFAULT;
	status = lock->mutex ? sharedlock_acquire(lock, clock_after(LOCK_PATIENCE), err)
			     : error_set(err, STATUS_TEMPORARY, "out of memory");
	if (status == STATUS_OK)
		fix->locked++;
	else
		sharedlock_close(lock);
	return status;
}

static bool keep_all(struct fix *fix)
{
	bool kept = true;
	for (size_t i = 0; i < fix->locked; i++)
		kept = sharedlock_keep(&fix->locks[i], true) && kept;
	return kept;
}

static void unlock_all(struct fix *fix)
{
	while (fix->locked > 0) {
		struct sharedlock *lock = &fix->locks[--fix->locked];
		sharedlock_release(lock);
		sharedlock_close(lock);
	}
}

/* ---- The database ---- */

static enum status database_failed(
	const struct fix *fix, sqlite3 *database, const char *action, struct error *err)
{
	return error_set(err, STATUS_TEMPORARY, "cannot %s %s: %s", action, fix->database,
		sqlite3_errmsg(database));
}

static enum status open_database(const struct fix *fix, sqlite3 **database, struct error *err)
{
	char journal[PATH_MAX];
	const char *paths[] = {fix->database, journal};
	snprintf(journal, sizeof(journal), "%s-journal", fix->database);
	for (int i = 0; i < 2; i++)
		cache_drop_path(CACHE_CLIENT, paths[i]);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	if (sqlite3_open_v2(fix->database, database, flags, NULL) != SQLITE_OK ||
		sqlite3_exec(*database,
			"PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=PERSIST;"
			"PRAGMA synchronous=FULL; BEGIN IMMEDIATE",
			NULL, NULL, NULL) != SQLITE_OK)
		return database_failed(fix, *database, "open", err);
	return STATUS_OK;
}

static enum status read_nonce(
	const struct fix *fix, sqlite3 *database, char nonce[33], struct error *err)
{
	sqlite3_stmt *statement = NULL;
	const char *text = NULL;
	if (sqlite3_prepare_v2(database, "SELECT nonce FROM meta", -1, &statement, NULL) ==
			SQLITE_OK &&
		sqlite3_step(statement) == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(statement, 0);
	if (text)
		snprintf(nonce, 33, "%s", text);
	sqlite3_finalize(statement);
	return text ? STATUS_OK : database_failed(fix, database, "read", err);
}

static enum status write_nonce(
	const struct fix *fix, sqlite3 *database, const char *nonce, struct error *err)
{
	char sql[96];
	snprintf(sql, sizeof(sql), "UPDATE meta SET nonce='%s'; COMMIT", nonce);
	if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
		return STATUS_OK;
	database_failed(fix, database, "change", err);
	return error_prefix(err, "run doctor --fix again, it may be half done");
}

/* ---- The three steps ---- */

static enum status give_name(struct fix *fix, struct error *err)
{
	char *directory = file_directory_of(fix->lock);
	enum status status = STATUS_OK;
	if (!directory || rename(fix->fresh, fix->lock) < 0) {
		int number = errno;
		status = error_set(err, error_status_of_errno(number),
			"cannot rename %s to %s: %s; run doctor --fix again", fix->fresh, fix->lock,
			strerror(number));
	} else {
		status = file_sync_directory(directory, err);
	}
	free(directory);
	return status;
}

static enum status record(struct fix *fix, sqlite3 *database, enum lock_mode mode,
	enum lock_mode *recorded, struct error *err)
{
	char nonce[33] = "";
	struct lockfile fresh = {.descriptor = -1};
	enum status status = read_nonce(fix, database, nonce, err);
	if (status != STATUS_OK)
		return status;
	if (fix->has_intent && !strcmp(nonce, fix->intent.nonce)) {
		/* The second step was done: only the third is left. */
		*recorded = fix->intent.mode;
		return give_name(fix, err);
	}
	if (strcmp(nonce, fix->old.nonce))
		return error_set(err, STATUS_DAMAGED,
			"store %s was not made together with its lock file, and no --fix was "
			"interrupted: put back the two that belong together",
			fix->database);
	if (mode == LOCK_AUTO || mode == fix->old.mode) {
		/* The first step at most was done. */
		(void)unlink(fix->fresh);
		return error_set(err, STATUS_NO, "nothing is to be finished");
	}
	status = lockfile_write(fix->fresh, mode, fix->takeover, fix->shared_group, err);
	if (status == STATUS_OK)
		status = lockfile_inspect(&fresh, fix->fresh, fix->shared_group, err);
	if (status == STATUS_OK && !keep_all(fix))
		status = error_set(err, STATUS_TEMPORARY, "its locks were lost: try again");
	if (status == STATUS_OK) {
		status = write_nonce(fix, database, fresh.nonce, err);
		if (status == STATUS_OK)
			status = give_name(fix, err);
	} else {
		(void)unlink(fix->fresh);
	}
	*recorded = mode;
	lockfile_close(&fresh);
	return status;
}

/* What one that was killed while it wrote the new lock file left; we hold the locks. */
static void sweep(const struct fix *fix)
{
	char pattern[PATH_MAX];
	glob_t found = {0};
	snprintf(pattern, sizeof(pattern), "%s.??????", fix->fresh);
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			(void)unlink(found.gl_pathv[i]);
	globfree(&found);
}

static enum status locked(struct fix *fix, enum lock_mode mode, int64_t patience,
	enum lock_mode *recorded, struct error *err)
{
	sqlite3 *database = NULL;
	enum status status = watch(fix, patience, err);
	if (status == STATUS_OK)
		status = open_database(fix, &database, err);
	if (status == STATUS_OK)
		status = record(fix, database, mode, recorded, err);
	sqlite3_close(database);
	sweep(fix);
	return status;
}

enum status convert_mode(const char *database, const struct parameters *parameters,
	enum lock_mode mode, int64_t patience, enum lock_mode *recorded, struct error *err)
{
	bool shared_group = parameters->shared_group;
	struct fix fix = {.database = database,
		.shared_group = shared_group,
		.takeover = parameters->takeover,
		.old = {.descriptor = -1},
		.intent = {.descriptor = -1}};
	enum status status = STATUS_OK;
	if (asprintf(&fix.lock, "%s.lock", database) < 0)
		fix.lock = NULL;
	if (asprintf(&fix.fresh, "%s.lock-fix", database) < 0)
		fix.fresh = NULL;
	if (!fix.lock || !fix.fresh) {
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
		goto out;
	}
	status = lockfile_inspect(&fix.old, fix.lock, shared_group, err);
	if (status != STATUS_OK)
		goto out;
	fix.has_intent = lockfile_inspect(&fix.intent, fix.fresh, shared_group, NULL) == STATUS_OK;
	status = lock(&fix, LOCK_FCNTL, err);
	if (status == STATUS_OK)
		status = lock(&fix, LOCK_LINK, err);
	if (status == STATUS_OK)
		status = locked(&fix, mode, patience, recorded, err);
out:
	unlock_all(&fix);
	lockfile_close(&fix.old);
	lockfile_close(&fix.intent);
	free(fix.lock);
	free(fix.fresh);
	return status;
}
