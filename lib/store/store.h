/* SPDX-License-Identifier: MIT */
/*
 * The key store: an ordered map from keys to small values with one global revision, modelled on
 * etcd v3. The agents' protocol and the queue are built on the calls here.
 *
 * To use it, call store_open, then any of the other functions, then store_close. One thread at a
 * time may use a struct store. Answers own their memory: call store_answer_release.
 *
 * Failures: STATUS_TEMPORARY: the store could not be asked (busy past the deadline, no space, I/O
 * error). STATUS_DAMAGED: it is damaged, of a newer format, or its lock file is not the one with
 * which it was made. STATUS_PERMISSION. STATUS_USAGE: a key or value is over the limits, or the
 * filesystem cannot keep a store safe. After a failed store_txn the outcome is unknown unless
 * answer->known is set: read again before you decide. "Could not ask" is never "no".
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define STORE_KEY_MAX	512	    /* bytes, none of them NUL; a key has at least one */
#define STORE_VALUE_MAX (64 * 1024) /* bytes */
#define STORE_COUNTS	2	    /* prefixes whose keys one call counts */

#define STORE_OPERATION_KEYS 3

struct store;

/*
 * Each transaction that changes something has a revision, greater than all before it. In an SQLite
 * store each is one more than the one before; a server also counts the changes of its other users.
 * The first is at least 1. 0 means absent.
 */
typedef int64_t store_revision;

struct store_compare {
	const char *key;
	store_revision revision; /* holds when the key's last change is this revision; 0: absent */
};

enum store_op_kind { STORE_PUT, STORE_DELETE, STORE_GET };

struct store_op {
	enum store_op_kind kind;
	const char *key;
	const void *value; /* STORE_PUT only */
	size_t length;
};

/* If all compares hold, the `then` operations run, else the `otherwise` ones; all or nothing. */
struct store_request {
	const struct store_compare *compares;
	size_t compare_count;
	const struct store_op *then;
	size_t then_count;
	const struct store_op *otherwise;
	size_t otherwise_count;
	const char *group;		 /* also read this group's news (store_news); NULL: none */
	bool news;			 /* a change by this transaction is news for the group */
	const char *count[STORE_COUNTS]; /* prefixes whose keys are then counted; NULL: none */
};

struct store_entry {
	char *key;
	char *value; /* length bytes, then a NUL; NULL: absent */
	size_t length;
	store_revision revision; /* of its last change; 0: absent */
};

struct store_answer {
	bool known; /* store_txn: the outcome is known; after a failure: nothing was changed */
	bool held;  /* store_txn: the compares held */
	store_revision revision; /* of the store: after the transaction, or as it was listed */
	struct store_entry
		*entries; /* store_txn: one per STORE_GET of the branch that ran, in order */
	size_t count;
	bool more;     /* store_list: there are entries beyond the limit, after the last key */
	uint32_t news; /* store_txn: the count of the group's news, after it; 0: not known */
	uint64_t counted[STORE_COUNTS]; /* number of keys for each prefix; 0: none, or not known */
};
void store_answer_release(struct store_answer *answer);

enum store_open_flags {
	STORE_CREATE = 1,    /* make a store that is missing; without it: STATUS_NO */
	STORE_READ_ONLY = 2, /* never write; store_txn with a put or delete is STATUS_USAGE */
	/* For tests of a filesystem: do not use the lock of the machine: each process itself asks
	 * the filesystem. */
	STORE_SCRATCH = 4,
};

/* clang-format off */
/*
 * url: "sqlite:PATH" or just PATH, then '?' and parameters, with '&' between them (store/url.h):
 *   shared-group         the group may read and write the store, and is trusted
 *   must-exist           never make a store; a missing one is STATUS_TEMPORARY
 *   assume=local|shared  what the filesystem is, if this machine cannot tell or is wrong
 * STATUS_TEMPORARY: also if a filesystem should be mounted there and is not (base/mounts.h): such a
 * store is not missing, and no new one is made. A missing directory is never made. deadline
 * (base/clock.h) also bounds the first contact.
 *
 * STATUS_USAGE: a store could not be safe there.
 */
/* clang-format on */
enum status store_open(
	struct store **store, const char *url, unsigned flags, int64_t deadline, struct error *err);
void store_close(struct store *store);

/*
 * Each later call without a deadline parameter fails with STATUS_TEMPORARY if it takes this long.
 * Default: 30,000 ms. (Calls for beats in files have no such limit.)
 */
void store_set_patience(struct store *store, int64_t milliseconds);
/*
 * The same with the time that is left now until deadline (base/clock.h; CLOCK_NEVER: no limit), but
 * at least 1 ms: after the deadline a call fails if it has to wait. The patience does not become
 * shorter by itself, so a loop calls this in each pass.
 */
void store_set_deadline(struct store *store, int64_t deadline);
/* store_open within so many ms, and store_set_patience with them. */
enum status store_open_patient(struct store **store, const char *url, unsigned flags,
	int64_t milliseconds, struct error *err);

/* Since when the request under way has waited for its answer; 0: there is none. For any thread. */
int64_t store_asked_at(const struct store *store);

/*
 * Run one atomic transaction. STATUS_OK: its changes are durable. One that only reads writes
 * nothing to the store.
 */
enum status store_txn(struct store *store, const struct store_request *request,
	struct store_answer *answer, struct error *err);

/*
 * The entries to list, in the order of their keys. A key that equals prefix is one of them, unless
 * prefix ends with '/'.
 */
struct store_range {
	const char *prefix;   /* keys that begin with this; not NULL */
	const char *after;    /* only keys after this; NULL: all */
	store_revision since; /* only entries that were changed after this; 0: all */
	size_t limit;	      /* at most this many; 0: 1,000,000 */
	/* Leave out keys that have one of these after prefix; up to STORE_SKIP, then NULL. */
	const char *const *skip;	 /* NULL: none */
	const char *count[STORE_COUNTS]; /* prefixes whose keys are counted; NULL: none */
};
#define STORE_SKIP 8
enum status store_list(struct store *store, const struct store_range *range,
	struct store_answer *answer, struct error *err);

/*
 * Wait until a key under prefix was put or deleted after revision *since. Pass *since on from call
 * to call. STATUS_OK: there was a change, and *since is the store's revision. STATUS_TIMEOUT: the
 * deadline passed. STATUS_NO: the descriptor wake (-1: none) became readable. In both cases *since
 * is the newest revision up to which nothing under prefix has changed, which saves the next call a
 * search. After an error *since is unchanged. While nothing changes, the wait takes no lock and
 * reads no page, except once every 15 s, in case a notification was lost.
 *
 * The store remembers deletions for some hundred revisions. If it has forgotten deletions after
 * *since, the answer is STATUS_OK at once, even if nothing under prefix has changed. A change is
 * never missed.
 */
enum status store_wait(struct store *store, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err);

/*
 * The last instant (base/clock.h) at which the last store_wait or store_await_news knew that
 * nothing that it waited for was newer than revision. 0: there was none, or it waited from a later
 * revision. On a shared filesystem this assumes that caches are at most a second old.
 */
int64_t store_unchanged(const struct store *store, store_revision revision);

/*
 * News: change notifications for all members of a group (named as for the beats below). Most
 * changes concern few readers. A transaction that is marked as news increments the group's counter,
 * and only that ends a wait for news. It is incremented under the lock, before the commit: a reader
 * that sees the new count and then reads the store sees the change. Like a beat, the counter is a
 * hint: it is not durable, and no caller may rely on it alone.
 */
/* The group's count of news; 0: not known. Call this before you read the keys. */
uint32_t store_news(struct store *store, const char *group);

struct store_awaited {
	const char *group;
	uint32_t heard;	      /* the count of news when the keys were last read; 0: not known */
	const char *prefix;   /* if the count is not known: wait for any change below this */
	store_revision since; /* revision of the store when the keys were last read */
	int64_t every;	      /* ms between two looks on a filesystem that does not notify us */
	int64_t age;	      /* the same on a server: how old store_unchanged may be; 0: default */
};
/*
 * Wait until there may be news after `heard`. STATUS_OK: `heard` is the new count, if it is known.
 * STATUS_TIMEOUT and STATUS_NO: as store_wait; store_unchanged says when there was no news.
 */
enum status store_await_news(struct store *store, struct store_awaited *awaited, int64_t deadline,
	int wake, struct error *err);

/*
 * Beats: a small record per task of a group "RUN/ATTEMPT", rewritten in place, not durable, never
 * locked. On a shared filesystem a reader may get an old record: only a change of the record means
 * something.
 */
struct store_beat {
	uint64_t token; /* differs between two starts of the task; never 0 */
	uint64_t sequence;
	uint64_t step;
};
/*
 * Make the beat files of tasks 0 to tasks-1 and the counter of news. To be called before the key
 * that opens the attempt is committed.
 */
enum status store_beats_prepare(
	struct store *store, const char *group, uint64_t tasks, struct error *err);
/* Write a beat. STATUS_NO: there is no file for it, or it was removed. */
enum status store_beat(struct store *store, const char *group, uint64_t task,
	const struct store_beat *beat, struct error *err);
/* Write the beats of one agent, of count tasks from first: a server keeps them in one record. */
enum status store_beats(struct store *store, const char *group, uint64_t first,
	const struct store_beat *beats, size_t count, struct error *err);
/* STATUS_NO: no beat was written there yet. */
enum status store_beat_read(struct store *store, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err);
struct store_beat_reading {
	enum status status; /* as of store_beat_read */
	int64_t took;	    /* how long the reading took, in milliseconds */
	struct store_beat beat;
};
#define STORE_BEATS_READ 1024
/* Read count beats from first, STORE_BEATS_READ at most; from a server with one request. */
void store_beats_read(struct store *store, const char *group, uint64_t first,
	struct store_beat_reading *readings, size_t count);
/*
 * Remove the beats of a group, or with group "RUN" of all attempts of a run. They may be missing.
 */
enum status store_beats_remove(struct store *store, const char *group, struct error *err);

/* The most operations, and the most compares, of one transaction: 122 (etcd) or more. */
size_t store_operations(const struct store *store);

/* Where the store is, for messages: "/shared/run.db". */
const char *store_where(const struct store *store);
/* The directory for data of the store's users that is too long for a value; NULL: none. */
const char *store_files(const struct store *store);
/*
 * For callers that run commands which are in the store. STATUS_PERMISSION: other users than this
 * one and root can write to it, as far as can be seen.
 */
enum status store_check_private(struct store *store, struct error *err);
/* Whether only this machine sees the store's filesystem, as far as can be told. */
bool store_is_local(const struct store *store);

/*
 * Delete all keys under prefix, and what the store remembers of deleted keys there, if the compares
 * hold. STATUS_NO: they do not. This does not wake callers of store_wait.
 */
enum status store_purge(struct store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, struct error *err);

struct sqlite3;
/* What store_run carries out. All members except revision are set by the caller, or by run. */
struct store_operation {
	/*
	 * Reads and writes tables of its own in the database, in a transaction. Returns SQLite's
	 * code; after any other than SQLITE_OK nothing is changed. It leaves no statement open. It
	 * may be called again, and begins anew then.
	 */
	int (*run)(struct sqlite3 *database, void *context);
	void *context;
	bool write; /* false: it only reads */
	const char
		*changed[STORE_OPERATION_KEYS]; /* keys to put, empty, for store_wait; NULL: none */
	store_revision revision;		/* of the store, after it */
};
/*
 * Run an operation under the lock of the store. STATUS_OK: its changes are durable. After a failure
 * it is not known whether they are there: so an operation must do the same if it is run again.
 * STATUS_USAGE: this kind of store has no database.
 */
enum status store_run(struct store *store, struct store_operation *operation, struct error *err);

/* Each of the next four functions runs a transaction of one operation. */

/* STATUS_OK: release the entry with store_entry_release. STATUS_NO: the key is absent. */
enum status store_get(
	struct store *store, const char *key, struct store_entry *entry, struct error *err);
void store_entry_release(struct store_entry *entry);
/* STATUS_NO: the key exists already; then *existing (may be NULL) is its entry. */
enum status store_put_if_absent(struct store *store, const char *key, const char *value,
	struct store_entry *existing, struct error *err);
enum status store_put(struct store *store, const char *key, const char *value,
	store_revision *revision, struct error *err);
/* The key may be absent. */
enum status store_delete(struct store *store, const char *key, struct error *err);

#endif
