/* SPDX-License-Identifier: MIT */
#include "store/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <glob.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/cache.h"
#include "store/lock/lock.h"

#define LOCK_PATIENCE 5000 /* milliseconds */
#define CHECK_EVERY   500

struct conversion {
	const char *database;
	char lock[PATH_MAX], fresh[PATH_MAX]; /* DATABASE.lock, DATABASE.lock-fix */
	const struct parameters *parameters;
	struct lockfile old, intent; /* intent: the new lock file of an interrupted change */
	bool has_intent;
	bool only_finish;     /* a store that no process can use until then */
	struct lock locks[2]; /* of both modes */
	size_t locked;
};

/* ---- Is the store in use? ---- */

/* Whether target is a file of the store: the database, a file beside it, or a file of the beats. */
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

void convert_find_opener(const char *database, char *opener, size_t size)
{
	char real[PATH_MAX], target[PATH_MAX], path[64];
	glob_t found = {0};
	*opener = '\0';
	if (!realpath(database, real) || glob("/proc/[0-9]*/fd/*", GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc && !*opener; i++) {
		ssize_t n = readlink(found.gl_pathv[i], target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		if (!belongs(target, real))
			continue;
		struct text name = {0};
		long pid = strtol(found.gl_pathv[i] + strlen("/proc/"), NULL, 10);
		snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
		(void)file_read_whole(path, 64, &name, NULL);
		snprintf(opener, size, "process %ld (%.*s)", pid,
			(int)strcspn(text_string(&name), "\n"), text_string(&name));
		text_release(&name);
	}
	globfree(&found);
}

/*
 * A hash of what a commit or a beat changes: the first page and the size of each file. It has no
 * times, because dropping caches changes them on some filesystems.
 */
static uint64_t fingerprint(const struct conversion *conversion)
{
	char journal[PATH_MAX], beats[PATH_MAX], head[4096];
	char *const roots[] = {(char *)conversion->database, journal, beats, NULL};
	uint64_t sum = 0;
	snprintf(journal, sizeof(journal), "%s-journal", conversion->database);
	snprintf(beats, sizeof(beats), "%s.beats", conversion->database);
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *entry; tree && (entry = fts_read(tree));) {
		if (entry->fts_info != FTS_F)
			continue;
		int descriptor = cache_open(CACHE_CLIENT, entry->fts_path);
		if (descriptor < 0)
			continue;
		ssize_t n = pread(descriptor, head, sizeof(head), 0);
		off_t size = lseek(descriptor, 0, SEEK_END);
		close(descriptor);
		/* A sum, because the order of the files may differ. */
		sum += XXH64(head, n > 0 ? (size_t)n : 0,
			XXH64(entry->fts_path, entry->fts_pathlen, (uint64_t)size));
	}
	if (tree)
		fts_close(tree);
	return sum;
}

static enum status watch(const struct conversion *conversion, int64_t patience, struct error *err)
{
	int64_t deadline = clock_after(patience);
	uint64_t before = fingerprint(conversion);
	while (clock_now() < deadline) {
		clock_sleep_until(clock_after(CHECK_EVERY));
		if (fingerprint(conversion) != before)
			return error_set(err, STATUS_TEMPORARY,
				"%s is in use: it was changed while we held its locks; stop everything "
				"that uses it, on all machines",
				conversion->database);
	}
	return STATUS_OK;
}

/* ---- Locks ---- */

static enum status lock(struct conversion *conversion, enum lock_mode mode, struct error *err)
{
	char key[PATH_MAX + 16];
	struct lock *lock = &conversion->locks[conversion->locked];
	lock_init(lock);
	enum status status = lockfile_inspect(
		&lock->file, conversion->lock, conversion->parameters->shared_group, err);
	if (status != STATUS_OK)
		return status;
	/* A key per mode, so that the two locks do not wait for each other's mutex. */
	snprintf(key, sizeof(key), "%s %s", lock_mode_name(mode), conversion->database);
	lock->mutex = database_mutex_get(key);
	lock->file.mode = mode;
	if (!lock->file.takeover)
		lock->file.takeover = TAKEOVER_DEFAULT;
	status = lock_acquire(lock, clock_after(LOCK_PATIENCE), err);
	if (status == STATUS_OK && lock->link.overtook && conversion->old.mode == mode &&
		!conversion->only_finish) {
		/* That process may still write to the database. Only a process that uses the store
		 * replaces its files (takeover.c). */
		lock_release(lock);
		status = error_set(err, STATUS_TEMPORARY,
			"%s: its lock was taken over from a process that is dead or does not "
			"answer: run \"preempt-store list\" on it, then --fix again",
			conversion->database);
	}
	if (status == STATUS_OK)
		conversion->locked++;
	else
		lock_close(lock);
	return status;
}

static bool keep_all(struct conversion *conversion)
{
	return lock_confirm(&conversion->locks[0], true) &&
	       lock_confirm(&conversion->locks[1], true);
}

static void unlock_all(struct conversion *conversion)
{
	while (conversion->locked > 0) {
		struct lock *lock = &conversion->locks[--conversion->locked];
		lock_release(lock);
		lock_close(lock);
	}
}

/* ---- The database ---- */

static enum status database_failed(const struct conversion *conversion, sqlite3 *database,
	const char *action, struct error *err)
{
	return error_set(err, STATUS_TEMPORARY, "cannot %s %s: %s", action, conversion->database,
		sqlite3_errmsg(database));
}

static int keep_nonce(void *to, int columns, char **values, char **names)
{
	(void)columns, (void)names;
	snprintf(to, 33, "%s", values[0] ? values[0] : "");
	return 0;
}

/* Open the database, begin a transaction, and read the nonce. */
static enum status open_database(
	const struct conversion *conversion, sqlite3 **database, char nonce[33], struct error *err)
{
	char journal[PATH_MAX];
	snprintf(journal, sizeof(journal), "%s-journal", conversion->database);
	cache_drop_path(CACHE_CLIENT, conversion->database);
	cache_drop_path(CACHE_CLIENT, journal);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	*nonce = '\0';
	if (sqlite3_open_v2(conversion->database, database, flags, NULL) != SQLITE_OK ||
		sqlite3_exec(*database,
			"PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=PERSIST;"
			"PRAGMA synchronous=FULL; BEGIN IMMEDIATE",
			NULL, NULL, NULL) != SQLITE_OK ||
		sqlite3_exec(*database, "SELECT nonce FROM meta", keep_nonce, nonce, NULL) !=
			SQLITE_OK)
		return database_failed(conversion, *database, "open", err);
	return STATUS_OK;
}

static enum status write_nonce(const struct conversion *conversion, sqlite3 *database,
	const char *nonce, struct error *err)
{
	char sql[96];
	snprintf(sql, sizeof(sql), "UPDATE meta SET nonce='%s'; COMMIT", nonce);
	if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
		return STATUS_OK;
	database_failed(conversion, database, "change", err);
	return error_prefix(err, "run doctor --fix again, it may be half done");
}

/* ---- The three steps ---- */

static enum status give_name(const struct conversion *conversion, struct error *err)
{
	if (rename(conversion->fresh, conversion->lock) < 0) {
		int number = errno;
		return error_set(err, error_status_of_errno(number),
			"cannot rename %s to %s: %s; run doctor --fix again", conversion->fresh,
			conversion->lock, strerror(number));
	}
	char *directory = file_directory_of(conversion->lock);
	enum status status = file_sync_directory(directory, err);
	free(directory);
	return status;
}

static enum status record(struct conversion *conversion, sqlite3 *database, const char *nonce,
	enum lock_mode *mode, struct error *err)
{
	struct lockfile fresh = {.descriptor = -1};
	bool group = conversion->parameters->shared_group;
	if (conversion->has_intent && !strcmp(nonce, conversion->intent.nonce)) {
		/* The interrupted change had done its second step. */
		*mode = conversion->intent.mode;
		return give_name(conversion, err);
	}
	if (strcmp(nonce, conversion->old.nonce))
		return error_set(err, STATUS_DAMAGED,
			"store %s was not made together with its lock file, and no --fix was "
			"interrupted: put back the two that belong together",
			conversion->database);
	if (*mode == LOCK_AUTO || *mode == conversion->old.mode) {
		/* An interrupted change had done at most its first step. */
		(void)unlink(conversion->fresh);
		return error_set(err, STATUS_NO, "there is nothing to change or to finish");
	}
	enum status status = lockfile_write(
		conversion->fresh, *mode, conversion->parameters->takeover, group, err);
	if (status == STATUS_OK)
		status = lockfile_inspect(&fresh, conversion->fresh, group, err);
	if (status == STATUS_OK && !keep_all(conversion))
		status = error_set(err, STATUS_TEMPORARY, "its locks were lost: try again");
	if (status != STATUS_OK) {
		(void)unlink(conversion->fresh);
	} else {
		status = write_nonce(conversion, database, fresh.nonce, err);
		if (status == STATUS_OK)
			status = give_name(conversion, err);
	}
	lockfile_close(&fresh);
	return status;
}

enum status convert_mode(const char *database, const struct parameters *parameters,
	enum lock_mode mode, int64_t patience, enum lock_mode *recorded, struct error *err)
{
	struct conversion conversion = {.database = database,
		.parameters = parameters,
		.only_finish = mode == LOCK_AUTO,
		.old = {.descriptor = -1},
		.intent = {.descriptor = -1}};
	sqlite3 *opened = NULL;
	char nonce[33];
	snprintf(conversion.lock, PATH_MAX, "%s.lock", database);
	snprintf(conversion.fresh, PATH_MAX, "%s.lock-fix", database);
	enum status status =
		lockfile_inspect(&conversion.old, conversion.lock, parameters->shared_group, err);
	conversion.has_intent = lockfile_inspect(&conversion.intent, conversion.fresh,
					parameters->shared_group, NULL) == STATUS_OK;
	if (status == STATUS_OK)
		status = lock(&conversion, LOCK_FCNTL, err);
	if (status == STATUS_OK)
		status = lock(&conversion, LOCK_LINK, err);
	if (status == STATUS_OK)
		status = watch(&conversion, patience, err);
	if (status == STATUS_OK)
		status = open_database(&conversion, &opened, nonce, err);
	if (status == STATUS_OK)
		status = record(&conversion, opened, nonce, &mode, err);
	sqlite3_close(opened);
	if (conversion.locked == 2)
		lockfile_tidy(conversion.fresh, ".");
	if (status == STATUS_OK)
		*recorded = mode;
	unlock_all(&conversion);
	lockfile_close(&conversion.old);
	lockfile_close(&conversion.intent);
	return status;
}
