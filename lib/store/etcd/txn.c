/* SPDX-License-Identifier: MIT */
/*
 * Transactions. One that writes also requires that its client is not fenced, so that after a lost
 * answer we can prevent that it is carried out later (outcome.h). If its branch `otherwise` also
 * writes, the whole transaction is nested in one that has only this requirement.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/etcd/outcome.h"
#include "store/etcd/session.h"

static size_t count_of(const struct store_op *ops, size_t count, enum store_op_kind kind)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++)
		found += ops[i].kind == kind;
	return found;
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
		store_revision revision = etcd_revision(store, compares[i].revision);
		wire_key_set(&key, store->options.prefix, 'k', compares[i].key);
		wire_add(body, "{");
		wire_add_key(body, &key);
		/* A revision from before the server was set back never holds. */
		if (compares[i].revision && !revision)
			revision = INT64_MAX;
		wire_add(body, "\"target\":\"MOD\",\"result\":\"EQUAL\"");
		wire_add_number(body, "mod_revision", revision);
		text_add(body, "}");
	}
}

static void write_value(const struct store_op *op, const char *stamp, struct text *body)
{
	char *value = xmalloc(WIRE_STAMP + op->length + 1);
	memcpy(value, stamp, WIRE_STAMP);
	if (op->length)
		memcpy(value + WIRE_STAMP, op->value, op->length);
	wire_add_bytes(body, "value", value, WIRE_STAMP + op->length);
	free(value);
}

static void write_ops(const struct etcd_store *store, const struct store_op *ops, size_t count,
	const char *stamp, struct text *body)
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
			write_value(&ops[i], stamp, body);
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

/* The trace names what is deleted: 'k' and a key, or 'p' and a prefix, then a NUL (wait.c). */
static void add_name(struct text *trace, char kind, const char *name)
{
	text_add_bytes(trace, &kind, 1);
	text_add_bytes(trace, name, strlen(name) + 1);
}

static void write_trace(const struct etcd_store *store, const struct text *trace, struct text *body)
{
	struct wire_key key;
	wire_key_set(&key, store->options.prefix, 'd', NULL);
	wire_add_put(body, &key, trace->data, trace->length);
}

/*
 * A transaction that only deletes leaves a trace only if not all of its keys are absent, because
 * deleting nothing is no change. The server evaluates all compares before it begins with the
 * operations. With more keys than the server compares, leave a trace in any case.
 */
static void write_trace_of_effect(const struct etcd_store *store, const struct store_op *ops,
	size_t count, const struct text *trace, struct text *body)
{
	struct wire_key key;
	wire_add(body, "{\"request_txn\":{\"compare\":[");
	for (size_t i = 0; i < count; i++) {
		if (ops[i].kind != STORE_DELETE)
			continue;
		wire_key_set(&key, store->options.prefix, 'k', ops[i].key);
		wire_add_compare(body, &key, false);
	}
	text_add(body, "],\"failure\":[");
	write_trace(store, trace, body);
	text_add(body, "]}}");
}

/*
 * Write the operations, then the news of the group, the counts, and the trace. The counts are in a
 * nested transaction, which is one operation.
 */
static void write_branch(
	struct etcd_store *store, const struct store_request *request, bool then, struct text *body)
{
	const struct store_op *ops = then ? request->then : request->otherwise;
	size_t count = then ? request->then_count : request->otherwise_count;
	bool writes = store_ops_change(ops, count);
	char stamp[WIRE_STAMP + 1];
	wire_stamp(stamp, store->client, store->number, then);
	wire_add(body, then ? "\"success\":[" : "\"failure\":[");
	write_ops(store, ops, count, stamp, body);
	if (request->group)
		write_news(store, request->group, writes && request->news, body);
	if (has_counts(request)) {
		wire_add(body, "{\"request_txn\":{\"success\":[");
		wire_add_counts(body, store->options.prefix, request->count);
		text_add(body, "]}}");
	}
	size_t deletes = count_of(ops, count, STORE_DELETE);
	if (deletes) {
		struct text trace = {0};
		text_add(&trace, stamp);
		for (size_t i = 0; i < count; i++)
			if (ops[i].kind == STORE_DELETE)
				add_name(&trace, 'k', ops[i].key);
		if (count_of(ops, count, STORE_PUT) || count + deletes + 5 > ETCD_SERVER_OPERATIONS)
			write_trace(store, &trace, body);
		else
			write_trace_of_effect(store, ops, count, &trace, body);
		text_release(&trace);
	}
	text_add(body, "]");
}

/* Whether the transaction is nested in another one. */
static bool is_nested(const struct store_request *request)
{
	return store_ops_change(request->otherwise, request->otherwise_count);
}

static void write_request(
	struct etcd_store *store, const struct store_request *request, struct text *body)
{
	bool nested = is_nested(request);
	text_add(body, "{\"compare\":[");
	outcome_write_fence(store, body);
	if (nested)
		text_add(body, "],\"success\":[{\"request_txn\":{\"compare\":[");
	write_compares(store, request->compares, request->compare_count, body);
	text_add(body, "]");
	write_branch(store, request, true, body);
	write_branch(store, request, false, body);
	text_add(body, nested ? "}}]}" : "}");
}

/* A transaction that only reads: it needs no fence, and no entry in the servers' log. */
static void write_reads(
	struct etcd_store *store, const struct store_request *request, struct text *body)
{
	text_add(body, "{\"compare\":[");
	write_compares(store, request->compares, request->compare_count, body);
	text_add(body, "],\"success\":[");
	write_ops(store, request->then, request->then_count, NULL, body);
	wire_add_counts(body, store->options.prefix, request->count);
	text_add(body, "],\"failure\":[");
	write_ops(store, request->otherwise, request->otherwise_count, NULL, body);
	wire_add_counts(body, store->options.prefix, request->count);
	text_add(body, "]}");
}

/* Add the entry of key to the answer; kv: NULL if the key is absent. */
static enum status take_entry(const struct etcd_store *store, const char *key,
	struct json_object *kv, struct store_answer *answer, struct error *err)
{
	struct store_entry *entry = &answer->entries[answer->count];
	enum status status = kv ? etcd_entry(store, kv, entry, err) : STATUS_OK;
	if (!kv)
		entry->key = xstrdup(key);
	answer->count += status == STATUS_OK;
	return status;
}

/* Add the entries that a branch has read, in order, from its responses. */
static enum status take_entries(const struct etcd_store *store, const struct store_op *ops,
	size_t count, struct json_object *responses, struct store_answer *answer, struct error *err)
{
	enum status status = STATUS_OK;
	answer->entries = xcalloc(count + 1, sizeof(*answer->entries));
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		if (ops[i].kind != STORE_GET)
			continue;
		struct json_object *found = wire_response(responses, i, "response_range");
		status = take_entry(store, ops[i].key, wire_element(found, "kvs", 0), answer, err);
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

static enum status ask_reads(struct etcd_store *store, const struct store_request *request,
	int64_t deadline, struct store_answer *answer, struct error *err)
{
	struct text body = {0};
	struct gateway_reply reply = {0};
	/* Ask for the count of news before reading the keys (store_news). */
	if (request->group)
		answer->news = etcd_news(&store->base, request->group);
	write_reads(store, request, &body);
	enum status status = etcd_read(store, "/v3/kv/txn", &body, deadline, &reply, err);
	if (status == STATUS_OK) {
		answer->revision = etcd_answered(store, &reply);
		status = take(store, request, reply.object, answer, err);
	}
	answer->known = true;
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

/* The transaction was carried out, and its answer was lost: read the same keys at its revision. */
static enum status reread(struct etcd_store *store, const struct store_request *request,
	const struct outcome *outcome, int64_t deadline, struct store_answer *answer,
	struct error *err)
{
	const struct store_op *ops = outcome->then ? request->then : request->otherwise;
	size_t count = outcome->then ? request->then_count : request->otherwise_count;
	struct wire_key key;
	struct gateway_reply reply = {0};
	answer->held = outcome->then;
	answer->revision = outcome->revision + store->offset;
	answer->entries = xcalloc(count + 1, sizeof(*answer->entries));
	enum status status = STATUS_OK;
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		if (ops[i].kind != STORE_GET)
			continue;
		wire_key_set(&key, store->options.prefix, 'k', ops[i].key);
		status = etcd_read_key(store, &key, outcome->revision, deadline, &reply, err);
		if (status == STATUS_OK)
			status = take_entry(store, ops[i].key, wire_element(reply.object, "kvs", 0),
				answer, err);
		gateway_reply_release(&reply);
	}
	if (status == STATUS_NO)
		status = error_set(err, STATUS_TEMPORARY,
			"store %s: an answer was lost, and its server was compacted since",
			store->base.where);
	return status;
}

struct written {
	struct gateway_reply reply;
	bool known;		/* there is an answer, or nothing was changed */
	bool again;		/* the answer was lost, and surely nothing was changed */
	struct outcome outcome; /* if `done`: the answer was lost, and it was carried out */
};

static enum status ask_writes(struct etcd_store *store, const struct text *body, int64_t deadline,
	struct written *written, struct error *err)
{
	struct gateway_request asked = {
		.path = "/v3/kv/txn", .body = text_string(body), .deadline = deadline};
	enum status status = etcd_ask(store, &asked, &written->reply, err);
	written->known = written->reply.known;
	if (status != STATUS_TEMPORARY || written->known)
		return status;
	if (outcome_find(store, deadline, &written->outcome) != STATUS_OK)
		return status;
	written->known = !written->outcome.done;
	written->again = written->known && clock_now() < deadline;
	return status;
}

static enum status write_once(struct etcd_store *store, const struct store_request *request,
	int64_t deadline, struct store_answer *answer, bool *again, struct error *err)
{
	struct text body = {0};
	struct written written = {.outcome.since = store->newest - store->offset};
	store->number++;
	write_request(store, request, &body);
	enum status status = ask_writes(store, &body, deadline, &written, err);
	answer->known = written.known;
	if (status == STATUS_OK) {
		struct json_object *said = written.reply.object;
		if (is_nested(request))
			said = wire_response(said, 0, "response_txn");
		answer->revision = etcd_answered(store, &written.reply);
		status = take(store, request, said, answer, err);
	} else if (written.outcome.done) {
		status = reread(store, request, &written.outcome, deadline, answer, err);
		answer->known = status == STATUS_OK;
	}
	*again = written.again;
	gateway_reply_release(&written.reply);
	text_release(&body);
	return status;
}

enum status etcd_txn(struct store *base, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	bool again;
	if (!store_request_changes(request))
		return ask_reads(store, request, deadline, answer, err);
	for (;;) {
		enum status status = write_once(store, request, deadline, answer, &again, err);
		if (!again)
			return status;
		store_answer_release(answer);
	}
}

/* The trace of a purge has a stamp, too, so that the outcome can be found. */
static void write_purge(struct etcd_store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, struct text *body)
{
	struct wire_keys keys;
	struct text trace = {0};
	char stamp[WIRE_STAMP + 1];
	wire_keys_below(&keys, store->options.prefix, 'k', prefix);
	wire_stamp(stamp, store->client, store->number, true);
	text_add(body, "{\"compare\":[");
	outcome_write_fence(store, body);
	write_compares(store, compares, compare_count, body);
	text_add(body, "],\"success\":[{\"request_delete_range\":{");
	wire_add_keys(body, &keys);
	text_add(body, "}}");
	text_add(&trace, stamp);
	add_name(&trace, 'p', prefix);
	write_trace(store, &trace, body);
	text_add(body, "]}");
	text_release(&trace);
}

enum status etcd_purge(struct store *base, const char *prefix, const struct store_compare *compares,
	size_t compare_count, int64_t deadline, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct written written;
	enum status status;
	do {
		struct text body = {0};
		written = (struct written){.outcome.since = store->newest - store->offset};
		store->number++;
		write_purge(store, prefix, compares, compare_count, &body);
		status = ask_writes(store, &body, deadline, &written, err);
		if (status == STATUS_OK && !wire_flag(written.reply.object, "succeeded"))
			status = STATUS_NO;
		gateway_reply_release(&written.reply);
		text_release(&body);
	} while (written.again);
	return written.outcome.done ? STATUS_OK : status;
}
