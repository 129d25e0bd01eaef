/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/cache.h"
#include "store/failure.h"
#include "store/lock/lockfile.h"
#include "store/sqlite/journal.h"
#include "store/sqlite/session.h"
#include "store/sqlite/syscalls.h"
#include "store/sqlite/vfs.h"

#define RETRY_LONGEST 32  /* milliseconds */
#define SMALLEST_PAGE 512 /* bytes; the smallest page size of SQLite */

#define RECOVER_PATIENCE 5000 /* milliseconds to wait for another program: database_recover */

/*
 * PERSIST: a commit need not sync the directory. FULL: a commit is durable. EXCLUSIVE: SQLite keeps
 * its locks until it closes the database, which is after one transaction; otherwise it would lock
 * several times in that transaction.
 */
static const char on_open[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=PERSIST;"
			      "PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;";

static const char schema[] = "PRAGMA application_id=" VALUE_OF(
	DATABASE_APPLICATION) ";"
			      "PRAGMA user_version=" VALUE_OF(
				      STORE_FORMAT) ";"
						    "CREATE TABLE IF NOT EXISTS meta(nonce TEXT NOT NULL, revision INTEGER NOT NULL,"
						    " floor INTEGER NOT NULL);"
						    "CREATE TABLE IF NOT EXISTS keys(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL,"
						    " revision INTEGER NOT NULL) WITHOUT ROWID;"
						    "CREATE INDEX IF NOT EXISTS keys_revision ON keys(revision);"
						    "CREATE TABLE IF NOT EXISTS gone(key BLOB NOT NULL, revision INTEGER NOT NULL,"
						    " PRIMARY KEY(revision, key)) WITHOUT ROWID;";

enum status session_execute(
	struct session *session, const char *sql, const char *action, struct error *err)
{
	int code = sqlite3_exec(session->database, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? STATUS_OK : session_failed(session, action, code, err);
}

enum status session_write_meta(
	struct session *session, store_revision revision, store_revision floor, struct error *err)
{
	char sql[128];
	snprintf(sql, sizeof(sql), "UPDATE meta SET revision=%lld, floor=%lld", (long long)revision,
		(long long)floor);
	return session_execute(session, sql, "change", err);
}

static enum status check_file(
	struct sqlite_store *store, const char *path, const struct stat *st, struct error *err)
{
	if (!S_ISREG(st->st_mode))
		return error_set(err, STATUS_DAMAGED,
			"%s is not a regular file: not used; move it away", path);
	return access_check(path, st, store->parameters.shared_group, err);
}

/* Check the kind, owner and mode of the database and the journal. */
static enum status check_files(struct session *session, struct error *err)
{
	struct stat st;
	struct sqlite_store *store = session->store;
	const char *path = session->path;
	enum cache cache = store->lock.cache;
	int number = cache_stat(cache, path, &st) < 0 ? errno : 0;
	if (number == ENOENT) {
		/* If the lock is missing, too, the filesystem was unmounted. */
		enum status there = lock_check(&store->lock, err);
		if (there != STATUS_OK)
			return there;
		number = cache_stat(cache, path, &st) < 0 ? errno : 0;
	}
	if (number == ENOENT)
		return error_set(err, STATUS_DAMAGED,
			"store %s was deleted and its lock %s is still there: not used; to start again, "
			"delete that too, with the store's -journal and .beats",
			path, store->lock.path);
	if (number)
		return error_cured(err, number, store_cure(number), "look at store %s", path);
	enum status status = check_file(store, path, &st, err);
	/* We never leave such a short file. SQLite would take it for a new database, and discard
	 * its journal. */
	if (status == STATUS_OK && st.st_size < SMALLEST_PAGE && !session->make)
		return error_set(err, STATUS_DAMAGED,
			"store %s is damaged (it has %lld bytes): not used; restore it, or move it away "
			"together with its .lock, -journal and .beats",
			path, (long long)st.st_size);
	char *journal = xprintf("%s-journal", path);
	if (status == STATUS_OK && cache_stat(cache, journal, &st) == 0)
		status = check_file(store, journal, &st, err);
	else if (status == STATUS_OK && errno != ENOENT)
		status = error_cured(err, errno, store_cure(errno), "look at %s", journal);
	free(journal);
	return status;
}

/*
 * Read the first hundred bytes of the database through SQLite's file handle. Returns SQLite's code.
 */
static int read_header(struct session *session, unsigned char header[100])
{
	sqlite3_file *file = NULL;
	int code =
		sqlite3_file_control(session->database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (code != SQLITE_OK || !file || !file->pMethods)
		return SQLITE_NOTADB;
	code = file->pMethods->xRead(file, header, 100, 0);
	return code == SQLITE_IOERR_SHORT_READ ? SQLITE_NOTADB : code;
}

static enum status check_format(struct session *session, struct error *err)
{
	unsigned char header[100];
	const char *where = session->store->base.where;
	int code = read_header(session, header);
	if (code != SQLITE_OK)
		return session_failed(session, "read", code, err);
	if (memcmp(header, "SQLite format 3", 16) != 0 ||
		big_endian(header + 68) != DATABASE_APPLICATION)
		return error_set(err, STATUS_DAMAGED,
			"%s is not a store of preempt-tools: not used; choose another --store",
			where);
	uint32_t format = big_endian(header + 60);
	return format == STORE_FORMAT ? STATUS_OK : lockfile_refuse_format(where, format, err);
}

/*
 * Read the table meta. As the first access to the database, this also lets SQLite roll back what a
 * killed writer left.
 */
static enum status read_meta(struct session *session, struct error *err)
{
	sqlite3_stmt *statement =
		session_prepare(session, "SELECT revision, floor, nonce FROM meta", err);
	int code = statement ? sqlite3_step(statement) : SQLITE_ERROR;
	enum status status = STATUS_OK;
	if (!statement)
		status = err->status;
	else if (code != SQLITE_ROW)
		status = session_failed(
			session, "read", code == SQLITE_DONE ? SQLITE_CORRUPT : code, err);
	/* If the application id or the format is wrong, report that instead of damage. */
	if ((status == STATUS_OK || status == STATUS_DAMAGED) && !session->make &&
		check_format(session, err) != STATUS_OK)
		status = err->status;
	if (status == STATUS_OK) {
		session->began = session->revision = sqlite3_column_int64(statement, 0);
		session->floor = sqlite3_column_int64(statement, 1);
		snprintf(session->nonce, sizeof(session->nonce), "%s",
			(const char *)sqlite3_column_text(statement, 2));
	}
	sqlite3_finalize(statement);
	return status;
}

/* In a transaction: make what is missing in a new database. */
static enum status make(struct session *session, struct error *err)
{
	char nonce[2][17], sql[192];
	token_draw(nonce[0]);
	token_draw(nonce[1]);
	snprintf(sql, sizeof(sql),
		"INSERT INTO meta SELECT '%s%s', 0, 0 WHERE NOT EXISTS (SELECT 1 FROM meta)",
		nonce[0], nonce[1]);
	enum status status = session_execute(session, schema, "make", err);
	return status == STATUS_OK ? session_execute(session, sql, "make", err) : status;
}

static enum status begin(struct session *session, struct error *err)
{
	enum status status = session_execute(
		session, session->write ? "BEGIN IMMEDIATE" : "BEGIN", "change", err);
	if (status == STATUS_OK && session->make)
		status = make(session, err);
	return status == STATUS_OK ? read_meta(session, err) : status;
}

/* Compare with the store and the newest revision that we have seen, which session_end updates. */
static enum status compare_with_past(const struct session *session, struct error *err)
{
	struct sqlite_store *store = session->store;
	if (!*store->nonce)
		strcpy(store->nonce, session->nonce);
	if (strcmp(store->nonce, session->nonce) != 0)
		return error_set(err, STATUS_TEMPORARY,
			"another store is at %s than when it was opened: that one was moved away, or its "
			"filesystem is no longer mounted; put it back, then try again",
			store->base.where);
	if (session->revision >= store->newest)
		return STATUS_OK;
	return error_set(err, STATUS_DAMAGED,
		"store %s went back from revision %lld to %lld: an older copy of it was put back, and "
		"what was written in between is lost: not used; start everything that uses it again",
		store->base.where, (long long)store->newest, (long long)session->revision);
}

/* How long SQLite may wait for another program that has the database open. */
static int busy_timeout(const struct session *session)
{
	int64_t left = session->deadline - clock_now(), most = 60000;
	return (int)(left < 1 ? 1 : left > most ? most : left);
}

static int open_path(struct session *session, const char *path, int flags)
{
	struct lock *lock = &session->store->lock;
	syscalls_forget(lock->cache);
	return vfs_open_database(path, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, lock,
		&session->database);
}

/*
 * SQLite refuses a symbolic link in any part of the path. Our path had none when the store was
 * opened. If its directory was moved since, and a link to it put in its place, the lock file says
 * that this is still our store: only the last part of the path must not be a link.
 */
static int open_database(struct session *session, int flags)
{
	char real[PATH_MAX];
	flags |= SQLITE_OPEN_NOFOLLOW;
	int code = open_path(session, session->path, flags);
	if (code != SQLITE_CANTOPEN_SYMLINK)
		return code;
	char *directory = file_directory_of(session->path);
	if (realpath(directory, real)) {
		char *path = xprintf("%s%s", real, strrchr(session->path, '/'));
		session_close(session);
		code = open_path(session, path, flags);
		free(path);
	}
	free(directory);
	return code;
}

/* Open the database and begin a transaction, once. The lock is held. */
static enum status try_to_begin(struct session *session, struct error *err)
{
	bool read_only = session->store->lock.read_only;
	int code = open_database(session, read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
	if (code != SQLITE_OK)
		return session_failed(session, "open", code, err);
	enum status status = session_execute(session, on_open, "open", err);
	if (status == STATUS_OK)
		status = begin(session, err);
	sqlite3_busy_timeout(session->database, busy_timeout(session));
	return status;
}

void session_close(struct session *session)
{
	session_drop_statements(session);
	/* This cannot fail, because no statement is open. */
	sqlite3_close(session->database);
	session->database = NULL;
}

/*
 * Run try_to_begin, and repeat it while another program, which does not use our lock, has the
 * database open. Use a new connection each time: if SQLite was refused the lock for a rollback, it
 * keeps a part of that lock in mode EXCLUSIVE. It would then take that part for the lock of a live
 * writer, and read changes that were never committed.
 */
static enum status open_and_begin(struct session *session, struct error *err)
{
	for (int64_t longest = 1;; longest = longest < RETRY_LONGEST ? longest * 2 : longest) {
		enum status status = try_to_begin(session, err);
		if (status == STATUS_OK || !session->busy || clock_now() >= session->deadline ||
			!lock_keep(&session->store->lock))
			return status;
		session_close(session);
		poll(NULL, 0, (int)clock_jitter(longest));
	}
}

/*
 * Set err: the lock was lost. This replaces other errors, which follow from it. unknown: it is not
 * known whether a change was made.
 */
static enum status lost(struct sqlite_store *store, bool unknown, struct error *err)
{
	lock_lost(&store->lock,
		unknown ? "whether this change was made is not known: look before you try again"
			: "nothing was changed: try again",
		err);
	return error_prefix(err, "store %s", store->base.where);
}

/*
 * Returns status; or STATUS_TEMPORARY instead of STATUS_DAMAGED if the filesystem was unmounted: we
 * have looked at an empty mount point.
 */
static enum status unless_gone(struct sqlite_store *store, enum status status, struct error *err)
{
	struct error gone = {0};
	if (status != STATUS_DAMAGED || lock_check(&store->lock, &gone) != STATUS_TEMPORARY)
		return status;
	*err = gone;
	return error_prefix(err, "store %s", store->base.where);
}

/* Take the lock, and finish what a takeover needs. */
static enum status take_lock(struct sqlite_store *store, int64_t deadline, struct error *err)
{
	enum status status = lock_take(&store->lock, deadline, err);
	if (status != STATUS_OK)
		return error_prefix(err, "store %s", store->base.where);
	if (store->opened != store->lock.opened) {
		/* These may watch files of an old mount. */
		file_watch_release(&store->watch);
		news_release(&store->news);
		store->sight.seen = false;
		store->opened = store->lock.opened;
	}
	if (store->lock.moving)
		status = takeover_run(store, err);
	if (status == STATUS_OK)
		return STATUS_OK;
	(void)lock_give(&store->lock);
	return error_prefix(err, "store %s", store->base.where);
}

enum status database_recover(struct sqlite_store *store, const char *path, struct error *err)
{
	struct session session = {.store = store,
		.path = path,
		.write = true,
		.make = !store->lock.made,
		.deadline = clock_after(RECOVER_PATIENCE)};
	enum status status = open_and_begin(&session, err);
	if (status == STATUS_OK)
		status = session_execute(&session, "COMMIT", "recover", err);
	session_close(&session);
	return status;
}

static enum status begin_locked(struct session *session, struct error *err)
{
	struct sqlite_store *store = session->store;
	enum cache cache = store->lock.cache;
	session->path = store->lock.database;
	if (cache != CACHE_OURS) {
		char *journal = xprintf("%s-journal", session->path);
		cache_drop_path(cache, session->path);
		cache_drop_path(cache, journal);
		free(journal);
	}
	/* After dropping, because a client also caches sizes. */
	enum status status = check_files(session, err);
	if (status == STATUS_OK)
		status = journal_check(cache, session->path, err);
	if (status == STATUS_OK)
		status = open_and_begin(session, err);
	return status == STATUS_OK ? compare_with_past(session, err) : status;
}

/* The lock is held. After an error it is released. */
static enum status begin_or_release(struct session *session, struct error *err)
{
	struct sqlite_store *store = session->store;
	enum status status = begin_locked(session, err);
	if (status == STATUS_OK)
		return STATUS_OK;
	session_close(session);
	if (!lock_give(&store->lock))
		status = lost(store, false, err);
	return unless_gone(store, status, err);
}

enum status session_begin(struct session *session, struct sqlite_store *store, bool write,
	int64_t deadline, struct error *err)
{
	*session = (struct session){.store = store, .write = write, .deadline = deadline};
	enum status status = take_lock(store, deadline, err);
	return status == STATUS_OK ? begin_or_release(session, err) : status;
}

enum status session_upgrade(struct session *session, struct error *err)
{
	enum status status = session_execute(session, "COMMIT", "read", err);
	session->write = true;
	return status == STATUS_OK ? begin(session, err) : status;
}

/*
 * After a failed commit, under the same lock: let SQLite repair the files. True: the revision is
 * the old one, so nothing was changed.
 */
static bool was_rolled_back(struct session *session)
{
	struct error unused;
	struct session again = {.store = session->store,
		.path = session->path,
		.write = true,
		.deadline = session->deadline};
	bool old = open_and_begin(&again, &unused) == STATUS_OK && again.revision == session->began;
	session_close(&again);
	return old;
}

enum status session_end(struct session *session, enum status status, bool *known, struct error *err)
{
	unsigned char header[100];
	struct sqlite_store *store = session->store;
	bool unknown = false, committed = false;
	/* Who knows before the commit that the lock is lost knows that nothing was changed. */
	if ((status == STATUS_OK || status == STATUS_NO) && lock_keep(&store->lock)) {
		enum status commit = session_execute(session, "COMMIT", "change", err);
		committed = commit == STATUS_OK;
		if (!committed)
			status = commit;
		unknown = !committed && session->write;
		session->counted = committed && read_header(session, header) == SQLITE_OK;
		session->counter = session->counted ? big_endian(header + 24) : 0;
	}
	session_close(session);
	if (unknown && lock_keep(&store->lock))
		unknown = !was_rolled_back(session);
	/*
	 * What we have read or committed is valid only if we still hold the lock now: a process
	 * that takes it over later copies the file with our commit.
	 */
	store_revision now = session->revision + session->changed;
	int64_t held = clock_now();
	if (!lock_give(&store->lock)) {
		unknown = unknown || (committed && now != session->began);
		status = lost(store, unknown, err);
	} else if (committed) {
		if (now > store->newest)
			store->newest = now;
		if (session->counted)
			wait_saw(store, session->counter, now, held);
	}
	*known = !unknown;
	return status;
}

/* ---- A new database ---- */

/*
 * Make an empty file for it. The directory's descriptor is used, and must have our lock: if the
 * filesystem is unmounted now, nothing is made on its mount point.
 */
static enum status make_file(struct sqlite_store *store, struct error *err)
{
	const char *path = store->lock.database, *name = strrchr(store->lock.path, '/') + 1;
	struct stat st;
	mode_t mode = store->parameters.shared_group ? 0660 : 0600;
	int directory = open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int number =
		directory < 0 || fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int descriptor = number ? -1 : openat(directory, strrchr(path, '/') + 1, flags, mode);
	if (!number && descriptor < 0)
		number = errno == EEXIST ? 0 : errno;
	else if (!number && fchmod(descriptor, mode) < 0)
		number = errno;
	if (descriptor >= 0)
		close(descriptor);
	if (directory >= 0)
		close(directory);
	return number ? error_cured(err, number, store_cure(number), "make store %s", path)
		      : STATUS_OK;
}

static enum status make_locked(struct session *session, struct error *err)
{
	bool known;
	struct sqlite_store *store = session->store;
	enum status status = make_file(store, err);
	if (status != STATUS_OK) {
		(void)lock_give(&store->lock);
		return status;
	}
	status = begin_or_release(session, err);
	if (status != STATUS_OK)
		return status;
	/* The next one that opens the store makes again what was not committed. */
	status = session_execute(session, "COMMIT; BEGIN", "make", err);
	if (status == STATUS_OK)
		status = lock_note_made(&store->lock, err);
	session->write = false;
	return session_end(session, status, &known, err);
}

enum status database_make(
	struct sqlite_store *store, bool create, int64_t deadline, struct error *err)
{
	struct lock *lock = &store->lock;
	if (lock->made)
		return STATUS_OK;
	/* What is there was not finished, and no process was acknowledged anything in it. */
	if (!create)
		return error_set(err, STATUS_NO, "store %s does not exist", store->base.where);
	struct session session = {
		.store = store, .write = true, .make = true, .deadline = deadline};
	enum status status = take_lock(store, deadline, err);
	if (status != STATUS_OK)
		return status;
	/* Another process may have made it since we opened the lock. */
	if (lock->kind == LOCK_FILE)
		status = lockfile_read(lock, err);
	if (status == STATUS_OK && !lock->made)
		return make_locked(&session, err);
	return lock_give(lock) ? status : lost(store, false, err);
}
