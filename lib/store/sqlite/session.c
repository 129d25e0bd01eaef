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
#include "store/sqlite/journal.h"
#include "store/sqlite/session.h"
#include "store/sqlite/syscalls.h"

#define RETRY_LONGEST 32  /* milliseconds */
#define SMALLEST_PAGE 512 /* bytes; the smallest page size of SQLite */

/* Other processes are expected to be at most this many revisions ahead of this one. */
#define AHEAD 1024

#define RECOVER_PATIENCE 5000 /* milliseconds to wait for another program: database_recover */

/*
 * PERSIST: a commit need not sync the directory. FULL: a commit is durable. EXCLUSIVE: SQLite keeps
 * its locks until it closes the database, which is after one transaction; otherwise it would lock
 * several times in that transaction.
 */
static const char on_open[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=PERSIST;"
			      "PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;";
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
static enum status check_files(struct sqlite_store *store, struct error *err)
{
	struct stat st;
	const char *path = store->base.where;
	enum cache cache = store->lock.file.cache;
	int number = cache_stat(cache, path, &st) < 0 ? errno : 0;
	if (number == ENOENT) {
		/* If the lock file is missing, too, the filesystem was unmounted. */
		enum status there = lockfile_verify(&store->lock.file, err);
		if (there != STATUS_OK)
			return there;
		number = cache_stat(cache, path, &st) < 0 ? errno : 0;
	}
	if (number) {
		if (number == ENOENT)
			return error_set(err, STATUS_DAMAGED,
				"store %s was deleted and its lock file %s is still there: not used; to "
				"start again, delete that too, with the store's -journal and .beats",
				path, store->lock.file.path);
		return error_cured(err, number, store_cure(number), "look at store %s", path);
	}
	enum status status = check_file(store, path, &st, err);
	/* We never make such a short file. SQLite would take it for a new database, and discard its
	 * journal. */
	if (status == STATUS_OK && st.st_size < SMALLEST_PAGE)
		return error_set(err, STATUS_DAMAGED,
			"store %s is damaged (it has %lld bytes): not used; restore it, or move it away "
			"together with its .lock, -journal and .beats",
			path, (long long)st.st_size);
	if (status != STATUS_OK)
		return status;
	if (cache_stat(cache, store->journal, &st) < 0) {
		number = errno;
		return number == ENOENT ? STATUS_OK
					: error_cured(err, number, store_cure(number), "look at %s",
						  store->journal);
	}
	return check_file(store, store->journal, &st, err);
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
		session_prepare(session, "SELECT nonce, revision, floor FROM meta", err);
	int code = statement ? sqlite3_step(statement) : SQLITE_ERROR;
	enum status status = STATUS_OK;
	if (!statement)
		status = err->status;
	else if (code != SQLITE_ROW)
		status = session_failed(
			session, "read", code == SQLITE_DONE ? SQLITE_CORRUPT : code, err);
	/* If the application id or the format is wrong, report that instead of damage. */
	if ((status == STATUS_OK || status == STATUS_DAMAGED) &&
		check_format(session, err) != STATUS_OK)
		status = err->status;
	if (status == STATUS_OK) {
		const char *nonce = (const char *)sqlite3_column_text(statement, 0);
		session->began = session->revision = sqlite3_column_int64(statement, 1);
		session->floor = sqlite3_column_int64(statement, 2);
		if (!nonce || strcmp(nonce, session->store->lock.file.nonce) != 0)
			status = error_set(err, STATUS_DAMAGED,
				"store %s was not made together with its lock file %s: one of them was "
				"replaced; not used; put back the two that belong together",
				session->store->base.where, session->store->lock.file.path);
	}
	sqlite3_finalize(statement);
	return status;
}

static enum status begin(struct session *session, struct error *err)
{
	enum status status = session_execute(
		session, session->write ? "BEGIN IMMEDIATE" : "BEGIN", "change", err);
	return status == STATUS_OK ? read_meta(session, err) : status;
}

/*
 * The revision is lower than one that we have seen: an older copy of the database was put in its
 * place. In a transaction of its own, set revision and floor higher than what any process has seen:
 * the floor tells the others that what they have read is out of date.
 */
static enum status go_on(struct session *session, struct error *err)
{
	bool write = session->write;
	struct sqlite_store *store = session->store;
	store_revision next = store->newest + AHEAD, back_to = session->revision;
	enum status status = session_upgrade(session, err);
	if (status == STATUS_OK)
		status = session_write_meta(session, next, next, err);
	if (status == STATUS_OK)
		status = session_execute(session, "COMMIT", "change", err);
	session->write = write;
	if (status != STATUS_OK)
		return status;
	store->base.back_from = store->newest;
	store->base.back_to = back_to;
	store->past = next;
	return begin(session, err);
}

/*
 * Compare with the newest revision that we have seen. A floor above it means that another process
 * has called go_on, or that we have not looked for long: in both cases what we have read before is
 * out of date. session_commit updates store->newest, if we have held the lock to the end.
 */
static enum status compare_with_past(struct session *session, struct error *err)
{
	struct sqlite_store *store = session->store;
	bool may_write = !(store->base.flags & STORE_READ_ONLY) && !store->lock.file.read_only;
	enum status status = STATUS_OK;
	if (session->revision < store->newest && may_write)
		status = go_on(session, err);
	if (status != STATUS_OK)
		return status;
	if (session->floor > store->newest && store->newest)
		store->past = session->floor;
	return STATUS_OK;
}

/* How long SQLite may wait for another program that has the database open. */
static int busy_timeout(const struct session *session)
{
	const struct lock *lock = &session->store->lock;
	int64_t left = session->deadline - clock_now(), most = 60000;
	/* While SQLite waits, the lock is not renewed. */
	if (lock_can_be_lost(lock) && lock->file.takeover / 4 < most)
		most = lock->file.takeover / 4;
	return (int)(left < 1 ? 1 : left > most ? most : left);
}

int session_open(struct session *session, const char *path, int flags)
{
	struct sqlite_store *store = session->store;
	syscalls_forget(store->lock.file.cache);
	/* In mode link, if a server keeps the locks, SQLite takes none: it could wait long for the
	 * server, or for the locks of a machine that died. */
	session->write_guard =
		(struct write_guard){.lock = &store->lock, .lockless = store->far_locks};
	return write_guard_open(path, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
		&session->write_guard, &session->database);
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
	int code = session_open(session, session->path, flags);
	if (code != SQLITE_CANTOPEN_SYMLINK)
		return code;
	char *directory = file_directory_of(session->path);
	if (realpath(directory, real)) {
		char *path = xprintf("%s%s", real, strrchr(session->path, '/'));
		session_close(session);
		code = session_open(session, path, flags);
		free(path);
	}
	free(directory);
	return code;
}

/* Open the database and begin a transaction, once. The lock is held. */
static enum status try_to_begin(struct session *session, struct error *err)
{
	bool read_only = session->store->lock.file.read_only;
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
			!lock_confirm(&session->store->lock, false))
			return status;
		session_close(session);
		poll(NULL, 0, (int)clock_jitter(longest));
	}
}

enum status database_lost(struct sqlite_store *store, bool unknown, struct error *err)
{
	lock_lost(&store->lock,
		unknown ? "whether this change was made is not known: look before you try again"
			: "nothing was changed: try again",
		err);
	return error_prefix(err, "store %s", store->base.where);
}

/* Take the lock. If the filesystem was unmounted and mounted again, open the lock file again. */
static enum status take_lock(struct sqlite_store *store, int64_t deadline, struct error *err)
{
	for (bool again = false;; again = true) {
		enum status status = STATUS_OK;
		if (!lock_is_open(&store->lock))
			status = sqlite_reopen(store, deadline, err);
		if (status != STATUS_OK)
			return status;
		status = lock_acquire(&store->lock, deadline, err);
		if (status == STATUS_OK)
			return STATUS_OK;
		if (again || lock_is_open(&store->lock))
			return error_prefix(err, "store %s", store->base.where);
	}
}

/*
 * Returns status; or STATUS_TEMPORARY instead of STATUS_DAMAGED if the filesystem was unmounted: we
 * have looked at an empty mount point.
 */
static enum status unless_gone(struct sqlite_store *store, enum status status, struct error *err)
{
	struct error gone = {0};
	if (status != STATUS_DAMAGED ||
		lockfile_verify(&store->lock.file, &gone) != STATUS_TEMPORARY)
		return status;
	*err = gone;
	return error_prefix(err, "store %s", store->base.where);
}

enum status database_lock(struct sqlite_store *store, int64_t deadline, struct error *err)
{
	enum status status = take_lock(store, deadline, err);
	if (status != STATUS_OK || !store->lock.link.overtook)
		return status;
	status = takeover_run(store, err);
	if (status == STATUS_OK)
		return STATUS_OK;
	(void)lock_release(&store->lock);
	return error_prefix(err, "store %s", store->base.where);
}

enum status database_recover(struct sqlite_store *store, const char *path, struct error *err)
{
	struct session session = {.store = store,
		.path = path,
		.write = true,
		.deadline = clock_after(RECOVER_PATIENCE)};
	enum status status = open_and_begin(&session, err);
	if (status == STATUS_OK)
		status = session_execute(&session, "COMMIT", "recover", err);
	session_close(&session);
	return status;
}

/*
 * Drop what is cached of the database and the journal. A takeover of the lock replaces the
 * database: on this machine, its name may still lead to the old file.
 */
static enum status drop_caches(
	const struct sqlite_store *store, int64_t deadline, struct error *err)
{
	for (int64_t longest = 1;; longest = longest < RETRY_LONGEST ? longest * 2 : longest) {
		struct stat st = {.st_nlink = 1};
		int descriptor = cache_open(store->lock.file.cache, store->base.where);
		if (descriptor >= 0) {
			(void)fstat(descriptor, &st);
			close(descriptor);
		}
		if (st.st_nlink > 0)
			break;
		if (clock_now() >= deadline)
			return error_set(err, STATUS_TEMPORARY,
				"store %s was replaced on another machine, and this machine still "
				"sees the old store: try again",
				store->base.where);
		poll(NULL, 0, (int)clock_jitter(longest));
	}
	cache_drop_path(store->lock.file.cache, store->journal);
	return STATUS_OK;
}

enum status session_begin(struct session *session, struct sqlite_store *store, bool write,
	int64_t deadline, struct error *err)
{
	*session = (struct session){
		.store = store, .path = store->base.where, .write = write, .deadline = deadline};
	enum status status = database_lock(store, deadline, err);
	if (status != STATUS_OK)
		return status;
	status = check_files(store, err);
	if (status == STATUS_OK && store->lock.file.cache != CACHE_OURS)
		status = drop_caches(store, deadline, err);
	if (status == STATUS_OK)
		status = journal_check(
			store->lock.file.cache, store->journal, store->lock.file.nonce, err);
	if (status == STATUS_OK)
		status = open_and_begin(session, err);
	if (status == STATUS_OK)
		status = compare_with_past(session, err);
	if (status != STATUS_OK) {
		session_close(session);
		(void)lock_release(&store->lock);
		if (store->lock.link.lost)
			status = database_lost(store, false, err);
		status = unless_gone(store, status, err);
	}
	return status;
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
	status = session_commit(session, status, known, err);
	lock_leave_queue(&session->store->lock);
	return status;
}

enum status session_commit(
	struct session *session, enum status status, bool *known, struct error *err)
{
	unsigned char header[100];
	struct sqlite_store *store = session->store;
	struct lock *lock = &store->lock;
	bool unknown = false, committed = false;
	if ((status == STATUS_OK || status == STATUS_NO) && lock_confirm(lock, false)) {
		enum status commit = session_execute(session, "COMMIT", "change", err);
		committed = commit == STATUS_OK;
		if (!committed)
			status = commit;
		unknown = !committed && session->write;
		session->counted = committed && read_header(session, header) == SQLITE_OK;
		session->counter = session->counted ? big_endian(header + 24) : 0;
	}
	session_close(session);
	if (unknown && !lock->link.lost)
		unknown = !was_rolled_back(session);
	/*
	 * What we have read or committed is valid only if we still hold the lock now: a process
	 * that takes it over later finds our commit synced (takeover_step.h).
	 */
	store_revision now = session->revision + session->changed;
	int64_t held = clock_now();
	if (!lock_unlock(lock)) {
		/* If we had not begun to write to the database itself, the process that has taken
		 * the lock over has undone our transaction. */
		unknown = (unknown || (committed && now != session->began)) &&
			  session->write_guard.touched;
		status = database_lost(store, unknown, err);
	} else if (committed) {
		if (now > store->newest)
			store->newest = now;
		if (session->counted)
			wait_saw(store, session->counter, now, held);
	}
	*known = !unknown;
	return status;
}
