/* SPDX-License-Identifier: MIT */
/*
 * A transaction of the SQLite backend, and what its files share. Every transaction is: outer lock,
 * let go of what is cached, open, one transaction, close, release.
 */
#ifndef STORE_SQLITE_SESSION_H
#define STORE_SQLITE_SESSION_H

#include <sqlite3.h>

#include "store/backend.h"
#include "store/beats/news.h"
#include "store/lock/lock.h"
#include "store/sqlite/options.h"
#include "store/sqlite/write_guard.h"

#define DATABASE_APPLICATION 0x50726d74 /* "Prmt", SQLite's application_id */

/* A number in SQLite's files. */
static inline uint32_t big_endian(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

/* What a locked transaction of ours saw last. */
struct sight {
	bool seen;
	uint32_t counter; /* bytes 24 to 27 of the database */
	store_revision revision;
	int64_t when;
};

struct sqlite_store {
	struct store base; /* where: the path of the database */
	char *journal, *directory, *beats;
	struct parameters parameters;
	bool far_locks; /* byte-range locks are kept by a server, which can keep us waiting */
	struct lock lock;
	struct file_watch watch; /* of the database */
	struct sight sight;
	struct news news;
	store_revision newest; /* that a transaction of ours has seen or made */
	/* What was read before this one may be of another past; 0: no such thing was seen. */
	store_revision past;
};

/* What is kept for one key, its parameter 1; the others are revisions, except a value. */
enum statement {
	STATEMENT_COMPARE,
	STATEMENT_GET,
	STATEMENT_PUT, /* 2: value, 3: revision */
	STATEMENT_DELETE,
	STATEMENT_BURY, /* 2: revision */
	STATEMENT_COUNT
};

/* One locked transaction. */
struct session {
	struct sqlite_store *store;
	const char *path; /* of the database, mostly that of the store */
	sqlite3 *database;
	struct write_guard write_guard;
	int64_t deadline;
	bool write;
	store_revision began;	 /* the store's revision when it began */
	store_revision revision; /* with the requests that have run since */
	bool changed;		 /* by the request that runs now: then it becomes one more */
	bool busy;		 /* what failed last failed because another program has it open */
	/* Of what was deleted up to here not all is remembered; 0: all is. */
	store_revision floor;
	size_t deleted; /* so many keys by this transaction */
	bool counted;	/* it was committed with this change counter */
	uint32_t counter;
	sqlite3_stmt *statements[STATEMENT_COUNT];
};

/* sqlite.c */
/*
 * Where the lock file was dropped (lock_is_open): look at the place as if the store were
 * opened now, and never make anything. STATUS_OK: it is the same store. STATUS_TEMPORARY: it is not
 * there.
 */
enum status sqlite_reopen(struct sqlite_store *store, int64_t deadline, struct error *err);

/* session.c */
/*
 * Lock, open and begin; write: a transaction that may write. After STATUS_OK session_end, or
 * session_commit and then lock_leave_queue, is called exactly once, and the session stays where it
 * is until then; after an error there is nothing to release.
 */
enum status session_begin(struct session *session, struct sqlite_store *store, bool write,
	int64_t deadline, struct error *err);
/* End this transaction and begin one that may write, under the same lock. */
enum status session_upgrade(struct session *session, struct error *err);
/*
 * Commit where status is STATUS_OK (else roll back), close, unlock. Returns status, or that of the
 * commit; then *known says whether it is certain that nothing was changed.
 */
enum status session_end(
	struct session *session, enum status status, bool *known, struct error *err);
/* The same, but no other process of this machine goes on before lock_leave_queue. */
enum status session_commit(
	struct session *session, enum status status, bool *known, struct error *err);

/* Run sql, which answers no rows. */
enum status session_execute(
	struct session *session, const char *sql, const char *action, struct error *err);
enum status session_write_meta(
	struct session *session, store_revision revision, store_revision floor, struct error *err);
void session_close(struct session *session);
/* Open path, with session's store, and guard it; SQLite's code. */
int session_open(struct session *session, const char *path, int flags);
/* The lock was lost, which explains whatever else failed. unknown: whether a change was made is. */
enum status database_lost(struct sqlite_store *store, bool unknown, struct error *err);

/* Fill err with what SQLite's result code means here; returns its status. */
enum status session_failed(
	struct session *session, const char *action, int code, struct error *err);

/* statement.c */
/* To be finalized by the caller. NULL: err says why. */
sqlite3_stmt *session_prepare(struct session *session, const char *sql, struct error *err);
/* Made once, bound to key, which stays until it has run; the caller resets it after its step. */
sqlite3_stmt *session_keep(
	struct session *session, enum statement which, const char *key, struct error *err);
/* Run one that answers no rows, and reset it. */
enum status session_finish(struct session *session, sqlite3_stmt *statement, struct error *err);
/* The first column of its first row, 0 where there is none or it is NULL; and reset it. */
enum status session_take_number(
	struct session *session, sqlite3_stmt *statement, int64_t *number, struct error *err);
void session_drop_statements(struct session *session);

/* compact.c */
/* Remember that this transaction has deleted key. */
enum status compact_bury(struct session *session, const char *key, struct error *err);
/*
 * Forget a few of those that were deleted long ago, the oldest first, and raise the floor: to be
 * called once by a transaction that has deleted something, when its last request has run and before
 * its revision is written.
 */
enum status compact_some(struct session *session, struct error *err);

/* takeover.c */
/*
 * Under a lock that overtook another (link.overtook), before anything else: give database and
 * journal new inodes, with all that was committed, so that the overtaken process cannot reach them
 * (takeover_step.h). STATUS_OK also where there is no database. After an error nothing may be read
 * or written, and the lock is released unsettled.
 */
enum status takeover_run(struct sqlite_store *store, struct error *err);

/*
 * Take the lock, and take the files over from a process that may still write.
 * STATUS_OK: it is held, until lock_release.
 */
enum status database_lock(struct sqlite_store *store, int64_t deadline, struct error *err);
/*
 * Under the lock, on a copy of the store's database under another path, with its journal beside it:
 * undo what a killed writer left, and see that it is one of this store.
 */
enum status database_recover(struct sqlite_store *store, const char *path, struct error *err);

/* Make the database under the lock if it is missing and was never made. */
enum status database_make(
	struct sqlite_store *store, bool create, int64_t deadline, struct error *err);

/* wait.c */
enum status wait_change(struct store *store, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err);
/* Under the lock, at the end of a transaction: what it saw. */
void wait_saw(struct sqlite_store *store, uint32_t counter, store_revision revision);
/* The same, of a transaction after instant, in which another process carried out our request. */
void wait_heard(
	struct sqlite_store *store, uint32_t counter, store_revision revision, int64_t instant);
/* The database's change counter, without any lock. */
enum counter_reading wait_read_counter(struct sqlite_store *store, uint32_t *counter);
/* At this instant nothing had changed yet that the caller waits for. */
void wait_note_unchanged(struct sqlite_store *store, int64_t instant);

/* transaction.c */
enum status session_run(struct store *store, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *err);
/*
 * One of the requests of a transaction: run it, and count the session's revision up if it changed
 * something. A reader is made a writer where it needs that.
 */
enum status session_run_one(struct session *session, const struct store_request *request,
	struct store_answer *answer, struct error *err);
/*
 * For range.c: whether all compares hold; copy two columns into an entry that has its key (false:
 * no memory).
 */
enum status session_compare(struct session *session, const struct store_compare *compares,
	size_t count, bool *hold, struct error *err);
void session_copy_value(struct session *session, struct store_entry *entry, sqlite3_stmt *statement,
	int value, int revision);

/* range.c */
enum status range_list(struct store *store, const struct store_range *range, int64_t deadline,
	struct store_answer *answer, struct error *err);
/* How many keys there are below each prefix, as this session sees them. */
enum status range_count(struct session *session, const char *const prefixes[STORE_COUNTS],
	struct store_answer *answer, struct error *err);
enum status range_purge(struct store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, int64_t deadline,
	struct error *err);
/* For wait.c: whether a key under prefix changed after since, and the revision at which this was
 * read. */
struct range_change {
	const char *prefix;
	store_revision since;
	bool changed;
	store_revision revision;
};
/* Fill the last two by one locked read. Below the floor the answer is that one did. */
enum status range_changed(struct sqlite_store *store, struct range_change *change, int64_t deadline,
	struct error *err);

#endif
