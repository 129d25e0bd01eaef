/* SPDX-License-Identifier: MIT */
/*
 * Transactions. One that writes also requires that its client is not fenced (etcd.c). If its branch
 * `otherwise` writes, too, it is nested in one that has only this requirement; no other is, because
 * a server's limit on its size does not count what is nested. One that deletes also puts the mark
 * of a deletion, so that a wait knows whether there was any (wait.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "store/etcd/session.h"

static bool has(const struct store_op *ops, size_t count, enum store_op_kind kind)
{
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind == kind)
			return true;
	return false;
}

static bool has_counts(const struct store_request *request)
{
	for (size_t i = 0; i < STORE_COUNTS; i++)
		if (request->count[i])
			return true;
	return false;
}

/* This and write_ops write no brackets around the list. */
static void write_compares(const struct etcd_store *store, const struct store_compare *compares,
	size_t count, struct text *body)
{
	struct wire_key key;
	for (size_t i = 0; i < count; i++) {
		wire_key_set(&key, store->options.prefix, 'k', compares[i].key);
		wire_add(body, "{");
		wire_add_key(body, &key);
		wire_add(body, "\"target\":\"MOD\",\"result\":\"EQUAL\"");
		wire_add_number(body, "mod_revision", compares[i].revision);
		text_add(body, "}");
	}
}

static void write_ops(
	const struct etcd_store *store, const struct store_op *ops, size_t count, struct text *body)
{
	static const char *const begin[] = {[STORE_PUT] = "{\"request_put\":{",
		[STORE_DELETE] = "{\"request_delete_range\":{",
		[STORE_GET] = "{\"request_range\":{"};
	struct wire_key key;
	for (size_t i = 0; i < count; i++) {
		wire_key_set(&key, store->options.prefix, 'k', ops[i].key);
		wire_add(body, begin[ops[i].kind]);
		wire_add_key(body, &key);
		if (ops[i].kind == STORE_PUT)
			wire_add_bytes(body, "value", ops[i].value, ops[i].length);
		text_add(body, "}}");
	}
}

/* Read the count of the group's news, after incrementing it if `more` is set. */
static void write_news(
	const struct etcd_store *store, const char *group, bool more, struct text *body)
{
	struct wire_key key;
	wire_key_set(&key, store->options.prefix, 'n', group);
	wire_add(body, "{\"request_txn\":{\"compare\":[");
	wire_add_compare(body, &key, true);
	text_add(body, "],\"success\":[");
	if (more) {
		text_add(body, "{\"request_put\":{");
		wire_add_key(body, &key);
		text_add(body, ",\"ignore_value\":true}}");
	}
	wire_add(body, "{\"request_range\":{");
	wire_add_key(body, &key);
	text_add(body, "}}]}}");
}

static void write_mark(const struct etcd_store *store, struct text *body)
{
	struct wire_key mark;
	wire_key_set(&mark, store->options.prefix, 'd', NULL);
	wire_add_put(body, &mark, "", 0);
}

/*
 * Deleting nothing is no change: a transaction that only deletes puts the mark if not all of its
 * keys are absent. The server evaluates all compares before it begins with the operations. With
 * more keys than the server compares, put the mark in any case.
 */
static void write_mark_if_any(
	const struct etcd_store *store, const struct store_op *ops, size_t count, struct text *body)
{
	struct wire_key key;
	if (has(ops, count, STORE_PUT) || 2 * count + 6 > ETCD_SERVER_OPERATIONS) {
		write_mark(store, body);
		return;
	}
	wire_add(body, "{\"request_txn\":{\"compare\":[");
	for (size_t i = 0; i < count; i++) {
		if (ops[i].kind != STORE_DELETE)
			continue;
		wire_key_set(&key, store->options.prefix, 'k', ops[i].key);
		wire_add_compare(body, &key, false);
	}
	text_add(body, "],\"failure\":[");
	write_mark(store, body);
	text_add(body, "]}}");
}

/*
 * Write the operations, then the news of the group, the counts, and the mark of a deletion. The
 * counts are in a nested transaction, which is one operation.
 */
static void write_branch(
	struct etcd_store *store, const struct store_request *request, bool then, struct text *body)
{
	const struct store_op *ops = then ? request->then : request->otherwise;
	size_t count = then ? request->then_count : request->otherwise_count;
	wire_add(body, then ? "\"success\":[" : "\"failure\":[");
	write_ops(store, ops, count, body);
	if (request->group)
		write_news(
			store, request->group, request->news && store_ops_change(ops, count), body);
	if (has_counts(request)) {
		wire_add(body, "{\"request_txn\":{\"success\":[");
		wire_add_counts(body, store->options.prefix, request->count);
		text_add(body, "]}}");
	}
	if (has(ops, count, STORE_DELETE))
		write_mark_if_any(store, ops, count, body);
	text_add(body, "]");
}

static bool is_nested(const struct store_request *request)
{
	return store_ops_change(request->otherwise, request->otherwise_count);
}

static void write_request(
	struct etcd_store *store, const struct store_request *request, struct text *body)
{
	text_add(body, "{\"compare\":[");
	etcd_add_fence(store, body);
	if (is_nested(request))
		text_add(body, "],\"success\":[{\"request_txn\":{\"compare\":[");
	write_compares(store, request->compares, request->compare_count, body);
	text_add(body, "]");
	write_branch(store, request, true, body);
	write_branch(store, request, false, body);
	text_add(body, is_nested(request) ? "}}]}" : "}");
}

/* A transaction that only reads: it needs no fence, and no entry in the servers' log. */
static void write_reads(
	struct etcd_store *store, const struct store_request *request, struct text *body)
{
	text_add(body, "{\"compare\":[");
	write_compares(store, request->compares, request->compare_count, body);
	text_add(body, "],\"success\":[");
	write_ops(store, request->then, request->then_count, body);
	wire_add_counts(body, store->options.prefix, request->count);
	text_add(body, "],\"failure\":[");
	write_ops(store, request->otherwise, request->otherwise_count, body);
	wire_add_counts(body, store->options.prefix, request->count);
	text_add(body, "]}");
}

/* Take the entries that a branch has read, in order, from its responses. */
static enum status take_entries(const struct etcd_store *store, const struct store_op *ops,
	size_t count, struct json_object *responses, struct store_answer *answer, struct error *err)
{
	enum status status = STATUS_OK;
	answer->entries = xcalloc(count + 1, sizeof(*answer->entries));
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		if (ops[i].kind != STORE_GET)
			continue;
		struct store_entry *entry = &answer->entries[answer->count];
		struct json_object *kv =
			wire_element(wire_response(responses, i, "response_range"), "kvs", 0);
		if (kv)
			status = etcd_entry(store, kv, entry, err);
		else
			entry->key = xstrdup(ops[i].key);
		answer->count += status == STATUS_OK;
	}
	return status;
}

/* The count of news, from the response to write_news; of several answers, the last. */
static uint32_t take_news(struct json_object *response)
{
	size_t count = wire_count(response, "responses");
	struct json_object *found =
		count ? wire_response(response, count - 1, "response_range") : NULL;
	return (uint32_t)wire_number(wire_element(found, "kvs", 0), "version");
}

static enum status take(const struct etcd_store *store, const struct store_request *request,
	struct json_object *said, struct store_answer *answer, struct error *err)
{
	answer->held = wire_flag(said, "succeeded");
	const struct store_op *ops = answer->held ? request->then : request->otherwise;
	size_t count = answer->held ? request->then_count : request->otherwise_count;
	/* For a transaction that only reads, ask_reads has asked for the news, and the counts are
	 * in the same list as the reads. */
	bool writes = store_request_changes(request), told = writes && request->group;
	struct json_object *counts =
		writes ? wire_response(said, count + told, "response_txn") : said;
	if (told)
		answer->news = take_news(wire_response(said, count, "response_txn"));
	wire_take_counts(counts, writes ? 0 : count, request->count, answer);
	return take_entries(store, ops, count, said, answer, err);
}

enum status etcd_txn(struct store *base, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text body = {0};
	struct gateway_reply reply = {0};
	enum status status;
	bool writes = store_request_changes(request);
	if (writes) {
		write_request(store, request, &body);
		status = etcd_write(store, &body, deadline, &reply, &answer->known, err);
	} else {
		/* Ask for the count of news before reading the keys (store_news). */
		if (request->group)
			answer->news = etcd_news(base, request->group);
		write_reads(store, request, &body);
		status = etcd_ask(store, GATEWAY_READ, "/v3/kv/txn", &body, deadline, &reply, err);
		answer->known = true;
	}
	if (status == STATUS_OK) {
		answer->revision = etcd_answered(&reply);
		status = take(store, request,
			is_nested(request) ? wire_response(reply.object, 0, "response_txn")
					   : reply.object,
			answer, err);
	}
	gateway_reply_release(&reply);
	return status;
}

enum status etcd_purge(struct store *base, const char *prefix, const struct store_compare *compares,
	size_t compare_count, int64_t deadline, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct wire_keys keys;
	struct text body = {0};
	struct gateway_reply reply = {0};
	bool known;
	wire_keys_below(&keys, store->options.prefix, 'k', prefix);
	text_add(&body, "{\"compare\":[");
	etcd_add_fence(store, &body);
	write_compares(store, compares, compare_count, &body);
	text_add(&body, "],\"success\":[{\"request_delete_range\":{");
	wire_add_keys(&body, &keys);
	text_add(&body, "}}");
	write_mark(store, &body);
	text_add(&body, "]}");
	enum status status = etcd_write(store, &body, deadline, &reply, &known, err);
	if (status == STATUS_OK && !wire_flag(reply.object, "succeeded"))
		status = STATUS_NO;
	gateway_reply_release(&reply);
	return status;
}
