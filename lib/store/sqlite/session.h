/* SPDX-License-Identifier: MIT */
/*
 * A transaction of the SQLite backend, and the declarations that its files share. Each transaction
 * takes the store's lock, drops caches, opens the database, runs, closes it, and releases the lock.
 */
#ifndef STORE_SQLITE_SESSION_H
#define STORE_SQLITE_SESSION_H

#include <sqlite3.h>

#include "store/backend.h"
#include "store/beats/news.h"
#include "store/lock/lock.h"
#include "store/sqlite/options.h"

#define STORE_NONCE	     33		/* bytes of the nonce in meta, with its NUL */
#define DATABASE_APPLICATION 0x50726d74 /* "Prmt", SQLite's application_id */

/* A number in the files of SQLite. */
static inline uint32_t big_endian(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

/* What our last transaction has seen. */
struct sight {
	bool seen;
	uint32_t counter; /* SQLite's change counter, bytes 24 to 27 of the database */
	store_revision revision;
	int64_t when;
};

struct sqlite_store {
	struct store base; /* base.where is the path of the database */
	char *directory, *beats;
	struct parameters parameters;
	struct lock lock;
	unsigned opened;	 /* lock.opened, when we began to watch files */
	struct file_watch watch; /* of the database */
	struct sight sight;
	struct news news;
	store_revision newest;	 /* the newest that our transactions have seen or made */
	char nonce[STORE_NONCE]; /* the one in its table meta; empty: not read yet */
};

/* The statements for one key, which is parameter 1. */
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
	const char *path; /* of the database */
	sqlite3 *database;
	int64_t deadline;
	bool write;
	bool make;		 /* make what is missing in the database */
	store_revision began;	 /* the store's revision when the transaction began */
	store_revision revision; /* the revision after the requests that have run */
	bool changed;		 /* the present request has changed something */
	bool busy;		 /* the last error: another program has the database open */
	/*
	 * The last error: EIO or ESTALE. An NFS server that boots may lose the locks; the kernel
	 * then fails each access to the file until it is closed, and opening it again helps.
	 */
	bool dropped;
	char nonce[STORE_NONCE];
	store_revision floor; /* deletions up to this may be forgotten (compact.c) */
	size_t deleted;	      /* number of keys that the transaction has deleted */
	bool counted;	      /* counter is known */
	uint32_t counter;     /* SQLite's change counter after the commit */
	sqlite3_stmt *statements[STATEMENT_COUNT];
};

/* session.c */
/*
 * Lock, open and begin; with write, a transaction that may write. After STATUS_OK call session_end
 * exactly once, and do not move the struct until then. After an error there is nothing to release.
 */
enum status session_begin(struct session *session, struct sqlite_store *store, bool write,
	int64_t deadline, struct error *err);
/* End a transaction that reads, and begin one that may write, under the same lock. */
enum status session_upgrade(struct session *session, struct error *err);
/*
 * Commit if status is STATUS_OK or STATUS_NO, otherwise roll back; close, unlock. Returns status or
 * the error of the commit. After a failure *known: it is certain that nothing was changed.
 */
enum status session_end(
	struct session *session, enum status status, bool *known, struct error *err);

/* Run sql, which returns no rows. */
enum status session_execute(
	struct session *session, const char *sql, const char *action, struct error *err);
enum status session_write_meta(
	struct session *session, store_revision revision, store_revision floor, struct error *err);
void session_close(struct session *session);
/*
 * Make the database if the lock does not record that it was made. Without create: STATUS_NO if it
 * is missing.
 */
enum status database_make(
	struct sqlite_store *store, bool create, int64_t deadline, struct error *err);
/*
 * Under the lock: path is a copy of the store's database, with its journal beside it. Roll back
 * what a killed writer left, check that it is a store, and make what is missing in it.
 */
enum status database_recover(struct sqlite_store *store, const char *path, struct error *err);

/* Set err to the cause of SQLite's result code. Returns err->status. */
enum status session_failed(
	struct session *session, const char *action, int code, struct error *err);

/* statement.c */
/* Prepare a statement, which the caller finalizes. NULL: see err. */
sqlite3_stmt *session_prepare(struct session *session, const char *sql, struct error *err);
/* The prepared statement for a key. key must stay valid until it has run; the caller resets it. */
sqlite3_stmt *session_keep(
	struct session *session, enum statement which, const char *key, struct error *err);
/* Run a statement that returns no rows, and reset it. */
enum status session_finish(struct session *session, sqlite3_stmt *statement, struct error *err);
/* Read the first column of the first row (0: NULL, or no row), and reset the statement. */
enum status session_take_number(
	struct session *session, sqlite3_stmt *statement, int64_t *number, struct error *err);
void session_drop_statements(struct session *session);

/* compact.c */
/* Record in gone that this transaction has deleted key. */
enum status compact_bury(struct session *session, const char *key, struct error *err);
/*
 * Remove a few of the oldest rows from gone, and raise the floor. A transaction that has deleted
 * something calls this once, after its last request and before it writes its revision.
 */
enum status compact_some(struct session *session, struct error *err);

/* takeover.c */
/*
 * After lock_take with lock->moving: copy the database to a new file, which the token then names.
 * What the process that was overtaken still writes goes to the old one. After an error, release the
 * lock: the next one begins again.
 */
enum status takeover_run(struct sqlite_store *store, struct error *err);

/* wait.c */
enum status wait_change(struct store *store, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err);
/*
 * At the end of a transaction: note what it has seen. instant: we held the lock then; after the
 * unlock another process may have changed the store.
 */
void wait_saw(
	struct sqlite_store *store, uint32_t counter, store_revision revision, int64_t instant);
/* Read the database's change counter without a lock. */
enum counter_reading wait_read_counter(struct sqlite_store *store, uint32_t *counter);
/* Note that at this instant there was no change that the caller waits for. */
void wait_note_unchanged(struct sqlite_store *store, int64_t instant);

/* transaction.c */
enum status session_run(struct store *store, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *err);
/* store_run */
enum status session_operate(struct store *store, struct store_operation *operation,
	int64_t deadline, struct error *err);
/*
 * The next two are for range.c, too. *hold: all compares hold. session_copy_value: copy the columns
 * value and revision into an entry that has its key.
 */
enum status session_compare(struct session *session, const struct store_compare *compares,
	size_t count, bool *hold, struct error *err);
void session_copy_value(
	struct store_entry *entry, sqlite3_stmt *statement, int value, int revision);

/* range.c */
enum status range_list(struct store *store, const struct store_range *range, int64_t deadline,
	struct store_answer *answer, struct error *err);
/* Count the keys below each prefix. */
enum status range_count(struct session *session, const char *const prefixes[STORE_COUNTS],
	struct store_answer *answer, struct error *err);
enum status range_purge(struct store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, int64_t deadline,
	struct error *err);
/* For wait.c: whether a key under prefix has changed after since. */
struct range_change {
	const char *prefix;
	store_revision since;
	bool changed;		 /* always true if since is below the floor */
	store_revision revision; /* of the store when this was read */
};
/* Set the last two members by reading under the lock. */
enum status range_changed(struct sqlite_store *store, struct range_change *change, int64_t deadline,
	struct error *err);

#endif
