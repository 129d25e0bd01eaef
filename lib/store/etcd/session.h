/* SPDX-License-Identifier: MIT */
/*
 * An open etcd store. ask.c sends requests and checks the revisions of the answers, txn.c makes
 * transactions, outcome.c finds out whether one was carried out, list.c lists keys, watch.c follows
 * changes, wait.c waits for them, beats.c keeps beats and news.
 */
#ifndef STORE_ETCD_SESSION_H
#define STORE_ETCD_SESSION_H

#include "base/http.h"
#include "store/backend.h"
#include "store/etcd/gateway.h"
#include "store/etcd/options.h"
#include "store/etcd/watch.h"
#include "store/etcd/wire.h"

/*
 * The server limits the operations of a transaction plus those of its longest nested transaction.
 * We add the news (a transaction of two), the counts (a transaction of two) and the trace.
 */
#define ETCD_SERVER_OPERATIONS 128
#define ETCD_OPERATIONS	       122

struct etcd_store {
	struct store base;
	struct etcd_options options;
	struct gateway gateway;
	uint32_t client, number; /* of the last stamp (wire_stamp) */
	/*
	 * Our revisions are those of the server plus offset. When an older copy of the server's
	 * data is put back, offset becomes the newest of our revisions: all that was read before is
	 * then older than all that the server has.
	 */
	store_revision offset, newest;
	int64_t cluster, term; /* the cluster's id and highest raft term; 0: not known */
	struct watch watch;
	/* For beats: */
	int64_t lease;		   /* 0: none */
	int64_t lease_renew;	   /* when to renew it (clock_now) */
	char group[STORE_KEY_MAX]; /* the group of the beats that were written last */
	store_revision group_made; /* when its news was made, as the server counts; 0: not known */
	uint64_t group_tasks;
	char read_group[STORE_KEY_MAX]; /* the group of the beats that were read last */
	uint32_t *
		firsts; /* by task: 1 + the first task of the record with its beats; 0: not known */
	size_t first_count;
};

static inline struct etcd_store *etcd_of(struct store *store)
{
	return (struct etcd_store *)store;
}

/*
 * As gateway_ask, but accept no answer that is older than what this store has seen, unless the
 * server's data was set back; then note that (store_was_set_back).
 */
enum status etcd_ask(struct etcd_store *store, const struct gateway_request *request,
	struct gateway_reply *reply, struct error *err);
/* The same for a write that is repeatable. */
enum status etcd_repeat(struct etcd_store *store, const char *path, const struct text *body,
	int64_t deadline, struct gateway_reply *reply, struct error *err);
/* The same for a request that reads. */
enum status etcd_read(struct etcd_store *store, const char *path, const struct text *body,
	int64_t deadline, struct gateway_reply *reply, struct error *err);
/*
 * Read one key as it was at a revision of the server (0: now). Element 0 of "kvs" is the key; no
 * element: it was absent. STATUS_NO: the revision is compacted, or in the future.
 */
enum status etcd_read_key(struct etcd_store *store, const struct wire_key *key, store_revision at,
	int64_t deadline, struct gateway_reply *reply, struct error *err);

/* The store's revision in an answer. */
store_revision etcd_answered(const struct etcd_store *store, const struct gateway_reply *reply);
/* The server's number of a revision of ours; 0: it is from before the server was set back. */
store_revision etcd_revision(const struct etcd_store *store, store_revision revision);

/* Decode an entry from a "kv". STATUS_DAMAGED: another program has written it. */
enum status etcd_entry(const struct etcd_store *store, struct json_object *kv,
	struct store_entry *entry, struct error *err);

enum status etcd_txn(struct store *store, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *err);
enum status etcd_purge(struct store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, int64_t deadline,
	struct error *err);
enum status etcd_list(struct store *store, const struct store_range *range, int64_t deadline,
	struct store_answer *answer, struct error *err);
enum status etcd_wait(struct store *store, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err);
uint32_t etcd_news(struct store *store, const char *group);
enum status etcd_await_news(struct store *store, struct store_awaited *awaited, int64_t deadline,
	int wake, struct error *err);
enum status etcd_beats_prepare(
	struct store *store, const char *group, uint64_t tasks, struct error *err);
enum status etcd_beat(struct store *store, const char *group, uint64_t first,
	const struct store_beat *beats, size_t count, struct error *err);
enum status etcd_beat_read(struct store *store, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err);
enum status etcd_beats_read(struct store *store, const char *group, uint64_t first,
	struct store_beat *beats, size_t count, struct error *err);
enum status etcd_beats_remove(struct store *store, const char *group, struct error *err);

#endif
