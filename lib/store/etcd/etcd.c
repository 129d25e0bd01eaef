/* SPDX-License-Identifier: MIT */
/* A store in etcd: open, close, and its functions. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/etcd/credentials.h"
#include "store/etcd/outcome.h"
#include "store/etcd/session.h"

#define FORMAT "preempt-tools 1"

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
	enum status status = etcd_read_key(store, &mark, 0, deadline, &reply, err);
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
	text_add(&body, "{\"compare\":[");
	wire_add_compare(&body, &mark, false);
	text_add(&body, "],\"success\":[");
	wire_add_put(&body, &mark, FORMAT, strlen(FORMAT));
	text_add(&body, "]}");
	enum status status = etcd_repeat(store, "/v3/kv/txn", &body, deadline, &reply, err);
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

static void close_store(struct store *base)
{
	struct etcd_store *store = etcd_of(base);
	watch_release(&store->watch);
	gateway_close(&store->gateway);
	etcd_options_release(&store->options);
	free(store->firsts);
	free(base->where);
	free(base->files);
	free(store);
}

static enum status find_store(
	struct etcd_store *store, unsigned flags, int64_t deadline, struct error *err)
{
	bool create =
		(flags & STORE_CREATE) && !(flags & STORE_READ_ONLY) && !store->options.must_exist;
	enum status status = gateway_open(&store->gateway, &store->options, store->base.where, err);
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
	store->base.files = options.outputs ? xstrdup(options.outputs) : NULL;
	store->base.flags = flags;
	outcome_new_client(store);
	status = find_store(store, flags, deadline, err);
	if (status == STATUS_OK)
		*opened = &store->base;
	else
		close_store(&store->base);
	return status;
}

/* If the servers refuse requests without a user or a certificate, they decide who may write. */
static enum status check_private(struct store *base, struct error *err)
{
	const struct etcd_options *options = &etcd_of(base)->options;
	if (options->trusted)
		return STATUS_OK;
	enum status status =
		credentials_matter(options, base->where, clock_after(base->patience), err);
	if (status != STATUS_NO)
		return status;
	return error_set(err, STATUS_PERMISSION,
		"%s: everything that reaches its servers can write this store, and the commands in a queue are "
		"run as you; have etcd ask for users or client certificates, or add trusted to its URL if "
		"they may",
		base->where);
}

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
	.check_private = check_private,
	.purge = etcd_purge,
};
