/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/etcd/session.h"

store_revision etcd_revision(const struct etcd_store *store, store_revision revision)
{
	return revision > store->offset ? revision - store->offset : 0;
}

/* Put the trace. This is a write, so the reply has the newest revision. */
static enum status ask_last(
	struct etcd_store *store, int64_t deadline, struct gateway_reply *reply, struct error *err)
{
	struct text body = {0};
	struct wire_key trace;
	wire_key_set(&trace, store->options.prefix, 'd', NULL);
	text_add(&body, "{");
	wire_add_key(&body, &trace);
	text_add(&body, "}");
	enum status status = gateway_repeat(
		&store->gateway, "/v3/kv/put", text_string(&body), deadline, reply, err);
	text_release(&body);
	return status;
}

static store_revision header_revision(const struct gateway_reply *reply)
{
	return wire_number(wire_object(reply->object, "header"), "revision");
}

/*
 * Whether the answer does not fit what we have seen: its revision or term is lower, or the cluster
 * is another one.
 */
static bool is_other_history(const struct etcd_store *store, const struct gateway_reply *reply)
{
	struct json_object *header = wire_object(reply->object, "header");
	int64_t cluster = wire_number(header, "cluster_id");
	return header_revision(reply) + store->offset < store->newest ||
	       (store->cluster && cluster && cluster != store->cluster) ||
	       wire_number(header, "raft_term") < store->term;
}

static void note(struct etcd_store *store, const struct gateway_reply *reply)
{
	struct json_object *header = wire_object(reply->object, "header");
	int64_t cluster = wire_number(header, "cluster_id");
	if (cluster)
		store->cluster = cluster;
	store->term = clock_later(store->term, wire_number(header, "raft_term"));
	store->newest = clock_later(store->newest, header_revision(reply) + store->offset);
}

static void set_back(struct etcd_store *store, const struct gateway_reply *reply)
{
	store->base.back_from = store->newest - store->offset;
	store->base.back_to = header_revision(reply);
	store->offset = store->newest;
	store->cluster = store->term = 0;
	note(store, reply);
}

/*
 * The answer is from another history: an older copy was put back, or only this member has an old
 * state, because it was stopped. A write, to which a majority must agree, tells which. (In a
 * read-only store assume the first.) STATUS_OK: use this answer. STATUS_NO: ask again.
 */
static enum status judge(struct etcd_store *store, const struct gateway_request *request,
	const struct gateway_reply *reply, struct error *err)
{
	struct gateway_reply last = {0};
	enum status status = STATUS_OK;
	if (!request->reads || (store->base.flags & STORE_READ_ONLY)) {
		set_back(store, reply);
		return STATUS_OK;
	}
	status = ask_last(store, request->deadline, &last, err);
	if (status == STATUS_OK) {
		if (is_other_history(store, &last))
			set_back(store, &last);
		status = STATUS_NO;
	}
	gateway_reply_release(&last);
	return status;
}

enum status etcd_ask(struct etcd_store *store, const struct gateway_request *request,
	struct gateway_reply *reply, struct error *err)
{
	for (;;) {
		enum status status = gateway_ask(&store->gateway, request, reply, err);
		if (status == STATUS_OK && is_other_history(store, reply))
			status = judge(store, request, reply, err);
		else if (status == STATUS_OK)
			note(store, reply);
		else
			return status;
		if (status != STATUS_NO)
			return status;
		gateway_turn(&store->gateway);
		if (clock_now() >= request->deadline)
			return error_set(err, STATUS_TEMPORARY,
				"store %s: a member of its cluster answers with an old state",
				store->base.where);
	}
}

enum status etcd_repeat(struct etcd_store *store, const char *path, const struct text *body,
	int64_t deadline, struct gateway_reply *reply, struct error *err)
{
	struct gateway_request request = {
		.path = path, .body = text_string(body), .repeatable = true, .deadline = deadline};
	return etcd_ask(store, &request, reply, err);
}

enum status etcd_read(struct etcd_store *store, const char *path, const struct text *body,
	int64_t deadline, struct gateway_reply *reply, struct error *err)
{
	struct gateway_request request = {.path = path,
		.body = text_string(body),
		.repeatable = true,
		.reads = true,
		.deadline = deadline};
	return etcd_ask(store, &request, reply, err);
}

enum status etcd_read_key(struct etcd_store *store, const struct wire_key *key, store_revision at,
	int64_t deadline, struct gateway_reply *reply, struct error *err)
{
	struct text body = {0};
	text_add(&body, "{");
	wire_add_key(&body, key);
	if (at)
		wire_add_number(&body, "revision", at);
	text_add(&body, "}");
	enum status status = etcd_read(store, "/v3/kv/range", &body, deadline, reply, err);
	text_release(&body);
	return status;
}

store_revision etcd_answered(const struct etcd_store *store, const struct gateway_reply *reply)
{
	return header_revision(reply) + store->offset;
}

enum status etcd_entry(const struct etcd_store *store, struct json_object *kv,
	struct store_entry *entry, struct error *err)
{
	size_t key_length, length, prefix = strlen(store->options.prefix) + strlen("/k/");
	char *key = wire_bytes(kv, "key", &key_length), *value = wire_bytes(kv, "value", &length);
	bool right = key && value && key_length > prefix && key_length - prefix <= STORE_KEY_MAX &&
		     length >= WIRE_STAMP;
	if (right) {
		memmove(value, value + WIRE_STAMP, length - WIRE_STAMP + 1);
		*entry = (struct store_entry){.key = xstrdup(key + prefix),
			.value = value,
			.length = length - WIRE_STAMP,
			.revision = wire_number(kv, "mod_revision") + store->offset};
	} else {
		free(value);
		error_set(err, STATUS_DAMAGED,
			"store %s: key \"%.100s\" was not written by preempt-tools",
			store->base.where, key ? key : "");
	}
	free(key);
	return right ? STATUS_OK : STATUS_DAMAGED;
}
