/* SPDX-License-Identifier: MIT */
/*
 * An open etcd store. etcd.c opens it, sends its requests, checks the revisions of the answers, and
 * fences off a transaction whose answer was lost; txn.c makes transactions, list.c lists keys,
 * wait.c waits for changes, beats.c keeps beats and news. gateway.h talks to the servers, in the
 * words of wire.h.
 */
#ifndef STORE_ETCD_SESSION_H
#define STORE_ETCD_SESSION_H

#include "store/backend.h"
#include "store/etcd/gateway.h"
#include "store/etcd/options.h"
#include "store/etcd/wire.h"

/*
 * The server limits the operations of a transaction plus those of its longest nested transaction.
 * We add the fence, the news (a transaction of two), the counts (a transaction of two) and the mark
 * of a deletion.
 */
#define ETCD_SERVER_OPERATIONS 128
#define ETCD_OPERATIONS	       122

/* A stream of the changes of a range of keys, which stays open between two waits for the range. */
struct watch {
	struct http *http; /* NULL: never opened */
	bool open;
	int64_t began;	 /* when it was opened */
	size_t endpoint; /* gateway.at then: if that has changed, the stream is given up */
	struct wire_keys keys;
	store_revision from;	/* the stream begins with this revision */
	store_revision changed; /* revision of the newest event; 0: there was none */
	int64_t version;	/* version of the key in the newest event; 0: it was deleted */
};

struct etcd_store {
	struct store base;
	struct etcd_options options;
	struct gateway gateway;
	/* The newest that an answer has said; 0: nothing is known. */
	store_revision newest;
	int64_t cluster, term; /* the cluster's id and its raft term */
	uint64_t client;       /* names our fence */
	/* The answer to a transaction of this client was lost: nothing is asked before it is fenced
	 * off, so what is read then stays as it is. */
	bool lost;
	struct watch watch;
	/* For some tasks of the group that was read last: 1 + the first task of the record with its
	 * beats; 0: not known. */
	char read_group[STORE_KEY_MAX];
	struct {
		uint64_t task;
		uint32_t first;
	} firsts[64];
};

static inline struct etcd_store *etcd_of(struct store *store)
{
	return (struct etcd_store *)store;
}

/*
 * As gateway_ask, but accept no answer that is older than what this store has seen. Releases body.
 * STATUS_DAMAGED: the servers have an older copy of their data, or are others.
 */
enum status etcd_ask(struct etcd_store *store, enum gateway_kind kind, const char *path,
	struct text *body, int64_t deadline, struct gateway_reply *reply, struct error *err);
/* Read one key. Element 0 of "kvs" is the key; no element: it is absent. */
enum status etcd_read_key(struct etcd_store *store, const struct wire_key *key, int64_t deadline,
	struct gateway_reply *reply, struct error *err);
/*
 * Send a transaction that writes and requires that our client is not fenced (etcd_add_fence). If
 * its answer is lost, fence it off. STATUS_TEMPORARY with *known unset: it may have been carried
 * out, and after the next answer it cannot be any more. Releases body.
 */
enum status etcd_write(struct etcd_store *store, struct text *body, int64_t deadline,
	struct gateway_reply *reply, bool *known, struct error *err);
/* Add the compare that requires the fence to be absent. */
void etcd_add_fence(const struct etcd_store *store, struct text *body);

/* The revision in an answer. */
store_revision etcd_answered(const struct gateway_reply *reply);
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
