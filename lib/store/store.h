/* SPDX-License-Identifier: MIT */
/*
 * The key store: an ordered map from keys to small values with one global revision, modelled on
 * etcd v3. Everything above is built from the calls here.
 *
 * How it is called: store_open, then any of the calls from one thread at a time (a struct store is
 * not shared between threads), then store_close. Answers own their memory: store_answer_release.
 *
 * How it fails: STATUS_TEMPORARY could not be asked (busy past the deadline, no space, I/O error);
 * STATUS_DAMAGED refused because it is damaged, of a newer format, or its lock file is not the one
 * it was made with; STATUS_PERMISSION; STATUS_USAGE for a key or value over the limits, or a
 * filesystem on which the store could not be safe. After a failed store_txn the outcome is UNKNOWN
 * unless answer->known is set: read again before deciding. "Could not ask" is never "no".
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define STORE_KEY_MAX	512	    /* bytes; at least 1, no NUL */
#define STORE_VALUE_MAX (64 * 1024) /* bytes */
#define STORE_COUNTS	2	    /* prefixes whose keys one call counts */

struct store;

/*
 * A revision counts the transactions that changed something: each has one of its own, greater than
 * all before. They are dense in a store of its own; a server that others use counts theirs, too.
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
	const char *group;		 /* whose news are read along (store_news); NULL: none */
	bool news;			 /* if it changes anything, that is news for the group */
	const char *count[STORE_COUNTS]; /* then the keys below these prefixes are counted; NULL */
};

struct store_entry {
	char *key;
	char *value; /* with a NUL after its length bytes; NULL: absent */
	size_t length;
	store_revision revision; /* of its last change; 0: absent */
};

struct store_answer {
	bool known; /* store_txn, the only field also set when it fails: nothing was changed then */
	bool held;  /* store_txn: the compares held */
	store_revision revision; /* of the store after the transaction, or when it was read */
	struct store_entry
		*entries; /* store_txn: one per STORE_GET of the branch that ran, in order */
	size_t count;
	bool more;     /* store_list: the limit cut it; go on after the last key */
	uint32_t news; /* store_txn with a group: its news, this one counted; 0: not known */
	uint64_t counted[STORE_COUNTS]; /* the keys below each of count; 0: none, or not known */
};
void store_answer_release(struct store_answer *answer);

enum store_open_flags {
	STORE_CREATE = 1,    /* make it if it is not there; else a missing store is STATUS_NO */
	STORE_READ_ONLY = 2, /* never writes: puts are STATUS_USAGE */
	/*
	 * With STORE_CREATE: the store is new also in a job that was restarted, and the processes
	 * of one machine do not queue for it: each asks the filesystem for the lock.
	 */
	STORE_SCRATCH = 4,
};

/* clang-format off */
/*
 * url: "sqlite:PATH" or just PATH, then, after a '?' and joined by '&' (store/url.h):
 *   lock=auto|fcntl|link  how machines exclude each other: chosen by who makes the store, recorded,
 *                         and followed by all (default: as recorded, else auto)
 *   takeover=D            lock=link: after how long a holder elsewhere that does nothing is declared
 *                         dead, 2s to 1h (default: as recorded, else 5s)
 *   shared-group          the group may read and write it, and is trusted
 *   must-exist            a store that is missing is STATUS_TEMPORARY, and never made
 *   assume=local|shared   what the filesystem is, where we cannot tell or tell wrongly
 *   count=FILE            store_close appends "reads R writes W bytes B" to FILE: how many locked
 *                         transactions of this handle only read, how many committed a change, and
 *                         the bytes of the keys and values that they answered; of a server, the
 *                         requests and the bytes of its answers. A FILE that cannot be written is
 *                         ignored
 * STATUS_TEMPORARY where a filesystem that belongs there is not mounted (base/mounts/mounts.h): then there
 * is neither a "no" nor a new store. A missing directory is never made. deadline (base/clock.h) also
 * bounds the first contact.
 *
 * STATUS_USAGE: a store that could not be safe there, or another mode than the recorded one.
 */
/* clang-format on */
enum status store_open(
	struct store **store, const char *url, unsigned flags, int64_t deadline, struct error *err);
void store_close(struct store *store);

/* Every later call may take at most this long (milliseconds; default 30,000); then TEMPORARY. */
void store_set_patience(struct store *store, int64_t milliseconds);

/* One atomic transaction, durable when STATUS_OK is answered. Read-only ones write nothing. */
enum status store_txn(struct store *store, const struct store_request *request,
	struct store_answer *answer, struct error *err);

/*
 * The entries whose key begins with prefix (the bare prefix itself is not in it unless it is a key
 * that equals it and prefix does not end with '/'), in key order, greater than after (NULL: all),
 * changed later than since (0: all), at most limit (0: 1,000,000), without those that go on behind
 * prefix with one of skip.
 */
struct store_range {
	const char *prefix;
	const char *after;
	store_revision since;
	size_t limit;
	const char *const *skip;	 /* NULL, or up to STORE_SKIP, the last NULL */
	const char *count[STORE_COUNTS]; /* the keys below these prefixes are counted, too; NULL */
};
#define STORE_SKIP 8
enum status store_list(struct store *store, const struct store_range *range,
	struct store_answer *answer, struct error *err);

/*
 * Wait until a key under prefix was put or deleted after revision *since. STATUS_OK: *since becomes
 * the store's revision; pass it to the next wait. STATUS_TIMEOUT: the deadline passed. STATUS_NO:
 * the descriptor wake (-1: none) became readable. With these two *since becomes the newest revision
 * up to which nothing under prefix has changed; passing it to the next wait saves a search. With an
 * error it stays. While nothing changes the wait takes no lock and reads no page, except for a
 * safety read every 15 s.
 *
 * Deletions are remembered for some hundred revisions. If deletions newer than *since (also 0)
 * were forgotten, the answer is STATUS_OK at once, even if nothing under prefix changed: read, and
 * continue from *since. A change is never missed.
 */
enum status store_wait(struct store *store, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err);

/*
 * An older copy of the store was put back while it was open. What was acknowledged since the copy
 * is lost, and what remains may be other than what was read. So that no process misses later
 * changes, the first one that sees it sets the revision to one above all that it has seen, and from
 * then on all that was read before is old: a wait from there is over at once, and a list since
 * there shows all that is there. (Opened for reading only, that is so until the store has caught
 * up.) True, once: this happened since the last call; err says what. Only where this store was the
 * first to see it.
 */
bool store_was_set_back(struct store *store, struct error *err);

/*
 * An instant (base/clock.h) at which nothing under the prefix of the last store_wait was newer than
 * revision, as far as that call knew; 0: none, or it waited for what is newer than something else.
 * Where the filesystem is shared, what is cached of it is taken to be at most a second old.
 */
int64_t store_unchanged(const struct store *store, store_revision revision);

/*
 * News: change notifications for all members of a group (the group of the beats below). Most
 * changes concern few readers; a transaction that is marked as news increments a counter, and
 * waiting for news is woken only by that counter. It is incremented under the lock, before the
 * commit, so a reader that sees the new count and then reads the store sees the change. Like a
 * beat, the counter is a hint: it is not durable, and no caller may rely on it alone.
 */
/* How many there were, to be asked for before the keys are read; 0: that is not known. */
uint32_t store_news(struct store *store, const char *group);

struct store_awaited {
	const char *group;
	uint32_t heard;	      /* their count when the keys were last read */
	const char *prefix;   /* what is waited for where there is no count: any change below it */
	store_revision since; /* the store's, when the keys were last read */
	int64_t every;	      /* ms between two looks where nothing tells us: a shared filesystem */
	int64_t age; /* ms by which store_unchanged may be old, where a look is a request */
};
/*
 * Wait until there is more. STATUS_OK: there may be; then heard is their count now, where it is
 * known. STATUS_TIMEOUT and STATUS_NO as store_wait, and store_unchanged tells when there was
 * none.
 */
enum status store_await_news(struct store *store, struct store_awaited *awaited, int64_t deadline,
	int wake, struct error *err);

/*
 * Beats: one small record per name, rewritten in place, not durable, never locked. A name is
 * "RUN/ATTEMPT/TASK". Reading gives the present record (possibly stale on shared filesystems);
 * judge it by change only.
 */
struct store_beat {
	uint64_t token; /* of the incarnation, never 0 */
	uint64_t sequence;
	uint64_t step;
};
/* Make the beat files of tasks 0..tasks-1 and the news (before the attempt's key is committed). */
enum status store_beats_prepare(
	struct store *store, const char *group, uint64_t tasks, struct error *err);
enum status store_beat(struct store *store, const char *group, uint64_t task,
	const struct store_beat *beat, struct error *err);
/* Of count tasks from first: of one agent, whose beats a server keeps in one record. */
enum status store_beats(struct store *store, const char *group, uint64_t first,
	const struct store_beat *beats, size_t count, struct error *err);
/* STATUS_NO: no beat was ever written there. store_beat: STATUS_NO: not prepared, or removed. */
enum status store_beat_read(struct store *store, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err);
struct store_beat_reading {
	enum status status; /* as of store_beat_read */
	int64_t took;	    /* milliseconds */
	struct store_beat beat;
};
#define STORE_BEATS_READ 1024
/* At most STORE_BEATS_READ tasks from first, of a server in one request. */
void store_beats_read(struct store *store, const char *group, uint64_t first,
	struct store_beat_reading *readings, size_t count);
/* group may also be "RUN": all its attempts. Missing is fine. */
enum status store_beats_remove(struct store *store, const char *group, struct error *err);

/* How many operations one transaction may have, and how many compares: 122 (etcd) or more. */
size_t store_operations(const struct store *store);

/* Where the store is, for messages: "/shared/run.db". */
const char *store_where(const struct store *store);
/* The directory for what belongs to it and is too long for it; NULL: there is none. */
const char *store_files(const struct store *store);
/*
 * For callers that run commands out of it. STATUS_PERMISSION: users other than this one and root
 * can write it, as far as can be told.
 */
enum status store_check_private(struct store *store, struct error *err);
/* Whether its filesystem is seen by this machine only, as far as can be told. */
bool store_is_local(const struct store *store);

/*
 * Delete all keys under prefix, and the memory of deleted ones, if the compares hold; STATUS_NO if
 * they do not. Waiting callers are not woken.
 */
enum status store_purge(struct store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, struct error *err);

/* Thin helpers over store_txn. */

/* STATUS_OK and the entry (release it with store_entry_release), or STATUS_NO: absent. */
enum status store_get(
	struct store *store, const char *key, struct store_entry *entry, struct error *err);
void store_entry_release(struct store_entry *entry);
/* STATUS_NO: the key exists already; then *existing (may be NULL) is its entry. */
enum status store_put_if_absent(struct store *store, const char *key, const char *value,
	struct store_entry *existing, struct error *err);
enum status store_put(struct store *store, const char *key, const char *value,
	store_revision *revision, struct error *err);
/* A key that is absent is fine. */
enum status store_delete(struct store *store, const char *key, struct error *err);

#endif
