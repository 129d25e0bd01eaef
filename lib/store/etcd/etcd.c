/* SPDX-License-Identifier: MIT */
/* A store in etcd: open, close, its requests, and the fence. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/etcd/session.h"

#define FORMAT	   "preempt-tools 2"
#define OPEN_LEAST 1000 /* milliseconds, also after the deadline: loading libcurl takes of it */
#define PAUSE	   100	/* milliseconds at most, before a member with an old state is asked again */

/* ---- The fence ---- */

/*
 * Every transaction that writes requires that a key, the fence of its client, is absent. When the
 * answer to one is lost, we put the fence: from then on the transaction cannot be carried out, also
 * where it is still under way (a server was seen to carry out a put after it had answered that it
 * could not). Then we become another client.
 */
static struct wire_key fence_key(const struct etcd_store *store)
{
	char name[20];
	struct wire_key key;
	snprintf(name, sizeof(name), "%016" PRIx64, store->client);
	wire_key_set(&key, store->options.prefix, 'f', name);
	return key;
}

void etcd_add_fence(const struct etcd_store *store, struct text *body)
{
	struct wire_key key = fence_key(store);
	wire_add_compare(body, &key, false);
}

static void become_new_client(struct etcd_store *store)
{
	if (getrandom(&store->client, sizeof(store->client), 0) != sizeof(store->client))
		store->client += (uint64_t)clock_now() ^ (uint64_t)(uintptr_t)store;
	store->lost = false;
}

/* Put the fence if a transaction was lost. */
static enum status fence_off(struct etcd_store *store, int64_t deadline, struct error *err)
{
	struct text put = {0};
	struct gateway_reply reply = {0};
	struct wire_key key = fence_key(store);
	if (!store->lost)
		return STATUS_OK;
	text_add(&put, "{");
	wire_add_key(&put, &key);
	text_add(&put, "}");
	enum status status = gateway_ask(&store->gateway, GATEWAY_REPEAT, "/v3/kv/put",
		text_string(&put), deadline, &reply, err);
	if (status == STATUS_OK)
		become_new_client(store);
	gateway_reply_release(&reply);
	text_release(&put);
	return status;
}

enum status etcd_write(struct etcd_store *store, struct text *body, int64_t deadline,
	struct gateway_reply *reply, bool *known, struct error *err)
{
	struct error unused;
	enum status status =
		etcd_ask(store, GATEWAY_ONCE, "/v3/kv/txn", body, deadline, reply, err);
	*known = reply->known;
	if (status != STATUS_TEMPORARY || *known)
		return status;
	store->lost = true;
	(void)fence_off(store, deadline, &unused);
	struct error said = *err;
	return error_set(
		err, STATUS_TEMPORARY, "%.600s; it may have been written: read again", said.text);
}

/* ---- Requests ---- */

store_revision etcd_answered(const struct gateway_reply *reply)
{
	return wire_number(wire_object(reply->object, "header"), "revision");
}

/*
 * Whether an answer may follow what we have seen: its revision and its term are not lower, and the
 * cluster is the same.
 */
static bool follows(const struct etcd_store *store, const struct gateway_reply *reply)
{
	struct json_object *header = wire_object(reply->object, "header");
	int64_t cluster = wire_number(header, "cluster_id");
	return etcd_answered(reply) >= store->newest &&
	       wire_number(header, "raft_term") >= store->term &&
	       (!store->cluster || !cluster || cluster == store->cluster);
}

static void note(struct etcd_store *store, const struct gateway_reply *reply)
{
	struct json_object *header = wire_object(reply->object, "header");
	int64_t cluster = wire_number(header, "cluster_id");
	if (cluster)
		store->cluster = cluster;
	store->term = wire_number(header, "raft_term");
	store->newest = etcd_answered(reply);
}

static enum status is_older_copy(const struct etcd_store *store, struct error *err)
{
	return error_set(err, STATUS_DAMAGED,
		"store %s: an older copy of its servers' data was put back, or they are other servers: "
		"start the job again",
		store->base.where);
}

/*
 * An answer to a reading is older than what we have seen. Perhaps only this member has an old
 * state, because it was stopped: ask by a transaction to which a majority has to agree, as it could
 * write (it never does). STATUS_OK: the majority follows, so ask again.
 */
static enum status ask_majority(struct etcd_store *store, int64_t deadline, struct error *err)
{
	struct text body = {0};
	struct gateway_reply reply = {0};
	struct wire_key mark;
	wire_key_set(&mark, store->options.prefix, 's', NULL);
	wire_begin_unless(&body, &mark);
	wire_add(&body, "{\"request_delete_range\":{");
	wire_add_key(&body, &mark);
	text_add(&body, "}}]}");
	enum status status = gateway_ask(&store->gateway, GATEWAY_REPEAT, "/v3/kv/txn",
		text_string(&body), deadline, &reply, err);
	if (status == STATUS_OK && !follows(store, &reply))
		status = is_older_copy(store, err);
	else if (status == STATUS_PERMISSION) /* a user who only reads */
		status = STATUS_OK;
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

enum status etcd_ask(struct etcd_store *store, enum gateway_kind kind, const char *path,
	struct text *body, int64_t deadline, struct gateway_reply *reply, struct error *err)
{
	enum status status = fence_off(store, deadline, err);
	reply->known = true; /* until it is sent */
	while (status == STATUS_OK) {
		status = gateway_ask(
			&store->gateway, kind, path, text_string(body), deadline, reply, err);
		if (status != STATUS_OK)
			break;
		if (follows(store, reply)) {
			note(store, reply);
			break;
		}
		if (kind != GATEWAY_READ) {
			reply->known = false;
			status = is_older_copy(store, err);
			break;
		}
		gateway_turn(&store->gateway);
		status = ask_majority(store, deadline, err);
		if (status == STATUS_OK && clock_now() >= deadline)
			status = error_set(err, STATUS_TEMPORARY,
				"store %s: a member of its cluster answers with an old state",
				store->base.where);
		clock_sleep_until(clock_earlier(deadline, clock_after(clock_jitter(PAUSE))));
	}
	text_release(body);
	return status;
}

enum status etcd_read_key(struct etcd_store *store, const struct wire_key *key, int64_t deadline,
	struct gateway_reply *reply, struct error *err)
{
	struct text body = {0};
	text_add(&body, "{");
	wire_add_key(&body, key);
	text_add(&body, "}");
	return etcd_ask(store, GATEWAY_READ, "/v3/kv/range", &body, deadline, reply, err);
}

enum status etcd_entry(const struct etcd_store *store, struct json_object *kv,
	struct store_entry *entry, struct error *err)
{
	size_t key_length, length, prefix = strlen(store->options.prefix) + strlen("/k/");
	char *key = wire_bytes(kv, "key", &key_length), *value = wire_bytes(kv, "value", &length);
	bool right = key && value && key_length > prefix && key_length - prefix <= STORE_KEY_MAX &&
		     length <= STORE_VALUE_MAX;
	if (right) {
		*entry = (struct store_entry){.key = xstrdup(key + prefix),
			.value = value,
			.length = length,
			.revision = wire_number(kv, "mod_revision")};
	} else {
		free(value);
		error_set(err, STATUS_DAMAGED,
			"store %s: key \"%.100s\" was not written by preempt-tools",
			store->base.where, key ? key : "");
	}
	free(key);
	return right ? STATUS_OK : STATUS_DAMAGED;
}

/* ---- Open and close ---- */

/* "etcd://HOST:PORT,HOST:PORT/PREFIX" */
static char *name_of(const struct etcd_options *options)
{
	struct text name = {0};
	for (size_t i = 0; i < options->count; i++)
		text_addf(&name, "%s%s", i ? "," : "etcd://", options->endpoints[i]);
	text_addf(&name, "/%s", options->prefix);
	return xneeded(name.data);
}

/* Check the mark of the store. STATUS_NO: there is none. */
static enum status read_mark(struct etcd_store *store, int64_t deadline, struct error *err)
{
	struct gateway_reply reply = {0};
	struct wire_key mark;
	size_t length;
	wire_key_set(&mark, store->options.prefix, 's', NULL);
	enum status status = etcd_read_key(store, &mark, deadline, &reply, err);
	struct json_object *kv = wire_element(reply.object, "kvs", 0);
	char *value = wire_bytes(kv, "value", &length);
	if (status == STATUS_OK && !kv)
		status = error_set(err, STATUS_NO, "store %s does not exist", store->base.where);
	else if (status == STATUS_OK && (!value || strcmp(value, FORMAT) != 0))
		status = error_set(err, STATUS_DAMAGED,
			"store %s: its format is \"%.40s\", and this version knows \"%s\"",
			store->base.where, value ? value : "", FORMAT);
	free(value);
	gateway_reply_release(&reply);
	return status;
}

/* Several processes may do this at once, or again: the mark is always the same. */
static enum status put_mark(struct etcd_store *store, int64_t deadline, struct error *err)
{
	struct text body = {0};
	struct gateway_reply reply = {0};
	struct wire_key mark;
	wire_key_set(&mark, store->options.prefix, 's', NULL);
	wire_begin_unless(&body, &mark);
	wire_add_put(&body, &mark, FORMAT, strlen(FORMAT));
	text_add(&body, "]}");
	enum status status =
		etcd_ask(store, GATEWAY_REPEAT, "/v3/kv/txn", &body, deadline, &reply, err);
	gateway_reply_release(&reply);
	return status;
}

static void close_store(struct store *base)
{
	struct etcd_store *store = etcd_of(base);
	http_close(store->watch.http);
	gateway_close(&store->gateway);
	etcd_options_release(&store->options);
	free(base->where);
	free(store);
}

static enum status find_store(
	struct etcd_store *store, unsigned flags, int64_t deadline, struct error *err)
{
	bool create =
		(flags & STORE_CREATE) && !(flags & STORE_READ_ONLY) && !store->options.must_exist;
	enum status status = gateway_open(&store->gateway, &store->options, store->base.where, err);
	deadline = clock_later(deadline, clock_after(OPEN_LEAST));
	if (status == STATUS_OK)
		status = read_mark(store, deadline, err);
	if (status == STATUS_NO && create)
		status = put_mark(store, deadline, err);
	else if (status == STATUS_NO && store->options.must_exist)
		status = error_set(err, STATUS_TEMPORARY,
			"store %s does not exist, and its URL says must-exist; to make it, leave "
			"must-exist out once",
			store->base.where);
	return status;
}

static enum status open_store(struct store **opened, const struct store_url *url, unsigned flags,
	int64_t deadline, struct error *err)
{
	struct etcd_options options;
	enum status status = etcd_options_read(url, &options, err);
	if (status != STATUS_OK)
		return status;
	struct etcd_store *store = xcalloc(1, sizeof(*store));
	store->options = options;
	store->base.where = name_of(&options);
	store->base.flags = flags;
	become_new_client(store);
	status = find_store(store, flags, deadline, err);
	if (status == STATUS_OK)
		*opened = &store->base;
	else
		close_store(&store->base);
	return status;
}

/* check_private is for queues, and none is kept here. */
const struct store_backend store_etcd = {
	.scheme = "etcd",
	.operations = ETCD_OPERATIONS,
	.open = open_store,
	.close = close_store,
	.txn = etcd_txn,
	.list = etcd_list,
	.wait = etcd_wait,
	.news = etcd_news,
	.await_news = etcd_await_news,
	.beats_prepare = etcd_beats_prepare,
	.beat_read = etcd_beat_read,
	.beats = etcd_beat,
	.beats_read = etcd_beats_read,
	.beats_remove = etcd_beats_remove,
	.purge = etcd_purge,
};
