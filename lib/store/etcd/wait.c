/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a change. The server reports changes in a stream (watch.c). We also ask it with a
 * request, the look: before the stream is opened, after it broke, at the deadline (except for news,
 * because its readers then read the keys themselves), and every minute (for news: as the caller
 * wants). The stream begins after the revision of the last look, so that no change is missed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "store/etcd/session.h"

/* All in milliseconds. */
#define LOOK_EVERY 60000 /* between two looks */
#define LOOK_LEAST 2000	 /* a look may take this long, even if the deadline comes before */
#define TRACES	   64	 /* a look reads at most this number of traces (no time) */
#define PAUSE	   500	 /* the longest pause before a stream is opened again */

struct change {
	struct wire_keys keys;
	const char *prefix; /* for etcd_wait */
	int64_t patience;   /* the time until which the present look may ask */
	/* STATUS_OK: there is a change. STATUS_NO: there is none up to `revision`. */
	enum status (*look)(struct etcd_store *store, struct change *change, int64_t deadline,
		struct error *err);
	/* Whether the stream has reported a change. */
	bool (*told)(const struct etcd_store *store, struct change *change);
	int64_t every;		       /* ms between two looks */
	store_revision revision;       /* as we count; nothing has changed up to it */
	struct store_awaited *awaited; /* for etcd_await_news; NULL: this is etcd_wait */
};

static bool begins_with(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

/*
 * Whether the key name (kind 'k') is below prefix, or keys that begin with name (kind 'p') may be.
 */
static bool concerns(const char *prefix, char kind, const char *name)
{
	bool inner = *prefix && prefix[strlen(prefix) - 1] == '/';
	if (kind == 'p')
		return begins_with(prefix, name) || begins_with(name, prefix);
	return begins_with(name, prefix) && !(inner && !strcmp(name, prefix));
}

/*
 * STATUS_OK: a key below the prefix was deleted at revision `at`. trace: the names in the trace of
 * that revision (txn.c). A key that it names may have been absent before: ask the server.
 */
static enum status read_trace(struct etcd_store *store, const struct change *change,
	const struct text *trace, store_revision at, struct error *err)
{
	enum status status = STATUS_NO;
	for (size_t i = WIRE_STAMP; i < trace->length && status == STATUS_NO;) {
		const char *entry = trace->data + i, *name = entry + 1;
		i += strlen(entry) + 1;
		if (!concerns(change->prefix, *entry, name))
			continue;
		if (*entry == 'p')
			return STATUS_OK;
		struct gateway_reply before = {0};
		struct wire_key key;
		wire_key_set(&key, store->options.prefix, 'k', name);
		status = etcd_read_key(store, &key, at - 1, change->patience, &before, err);
		if (status == STATUS_NO ||
			(status == STATUS_OK && wire_count(before.object, "kvs")))
			status = STATUS_OK;
		else if (status == STATUS_OK)
			status = STATUS_NO;
		gateway_reply_release(&before);
	}
	return status;
}

/*
 * Whether a key below the prefix was deleted after since (as the server counts). Read the traces
 * from the newest to older ones. If there are too many, or they are compacted, the answer is yes.
 */
static enum status find_deletion(struct etcd_store *store, const struct change *change,
	store_revision since, struct json_object *newest, struct error *err)
{
	struct gateway_reply reply = {0};
	struct json_object *kv = newest;
	struct wire_key key;
	enum status status = STATUS_NO;
	wire_key_set(&key, store->options.prefix, 'd', NULL);
	for (int step = 0; status == STATUS_NO; step++) {
		store_revision at = wire_number(kv, "mod_revision");
		struct text trace = {0};
		if (at <= since)
			break;
		trace.data = wire_bytes(kv, "value", &trace.length);
		status = !trace.data || step == TRACES ? STATUS_OK
						       : read_trace(store, change, &trace, at, err);
		text_release(&trace);
		if (status != STATUS_NO)
			break;
		gateway_reply_release(&reply);
		status = etcd_read_key(store, &key, at - 1, change->patience, &reply, err);
		if (!status_is_error(status))
			status = status == STATUS_OK ? STATUS_NO : STATUS_OK;
		kv = wire_element(reply.object, "kvs", 0);
	}
	gateway_reply_release(&reply);
	return status;
}

/* Look for a key that was put after `revision`, and for a trace of one that was deleted. */
static enum status look_below(
	struct etcd_store *store, struct change *change, int64_t deadline, struct error *err)
{
	struct text body = {0};
	struct gateway_reply reply = {0};
	struct wire_key trace;
	store_revision since = change->revision, revision = 0;
	change->patience = deadline;
	wire_key_set(&trace, store->options.prefix, 'd', NULL);
	text_add(&body, "{\"success\":[{\"request_range\":{");
	wire_add_keys(&body, &change->keys);
	wire_add(&body, "\"keys_only\":true,\"limit\":\"1\"");
	wire_add_number(&body, "min_mod_revision", etcd_revision(store, since) + 1);
	text_add(&body, "}},{\"request_range\":{");
	wire_add_key(&body, &trace);
	text_add(&body, "}}]}");
	enum status status = etcd_read(store, "/v3/kv/txn", &body, deadline, &reply, err);
	if (status == STATUS_OK) {
		revision = etcd_answered(store, &reply);
		struct json_object *put = wire_response(reply.object, 0, "response_range");
		struct json_object *deleted = wire_response(reply.object, 1, "response_range");
		/* Since `since`, the server was set back: report a change. */
		bool other = since && (since <= store->offset || since > revision);
		if (wire_count(put, "kvs") == 0 && !other)
			status = find_deletion(store, change, etcd_revision(store, since),
				wire_element(deleted, "kvs", 0), err);
	}
	if (!status_is_error(status))
		change->revision = revision;
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

static bool told_below(const struct etcd_store *store, struct change *change)
{
	return store->watch.changed + store->offset > change->revision;
}

/* Ask for the count of the group's news; 0: there is none. */
static enum status ask_news(struct etcd_store *store, struct change *change, uint32_t *count,
	int64_t deadline, struct error *err)
{
	struct gateway_reply reply = {0};
	enum status status = etcd_read_key(store, &change->keys.first, 0, deadline, &reply, err);
	if (status == STATUS_OK) {
		*count = (uint32_t)wire_number(wire_element(reply.object, "kvs", 0), "version");
		change->revision = etcd_answered(store, &reply);
	}
	gateway_reply_release(&reply);
	return status;
}

static enum status look_at_news(
	struct etcd_store *store, struct change *change, int64_t deadline, struct error *err)
{
	uint32_t count = 0;
	enum status status = ask_news(store, change, &count, deadline, err);
	if (status != STATUS_OK)
		return status;
	if (count == change->awaited->heard)
		return STATUS_NO;
	change->awaited->heard = count;
	return STATUS_OK;
}

/* The stream may be behind an answer: ignore news that the caller knows already. */
static bool told_news(const struct etcd_store *store, struct change *change)
{
	const struct watch *watch = &store->watch;
	uint32_t count = (uint32_t)watch->version;
	if (!watch->changed || (count && (int32_t)(count - change->awaited->heard) <= 0))
		return false;
	change->awaited->heard = count;
	return true;
}

/*
 * Look. It ends when wake is readable, and may go on a little after the deadline: a look that is
 * given up and begun again costs the server the same work twice. STATUS_TIMEOUT: wake or the time
 * ended it.
 */
static enum status look(struct etcd_store *store, struct change *change, int64_t deadline, int wake,
	struct error *err)
{
	int64_t patience = clock_after(store->base.patience);
	int64_t until = clock_earlier(clock_later(deadline, clock_after(LOOK_LEAST)), patience);
	store->gateway.wake = wake;
	enum status status = change->look(store, change, until, err);
	store->gateway.wake = -1;
	bool given_up = descriptor_is_ready(wake) || (until < patience && clock_now() >= until);
	return status == STATUS_TEMPORARY && given_up ? STATUS_TIMEOUT : status;
}

/*
 * Open the stream if it is closed and the time `again` has come, and wait for a message, wake, or
 * the time `until`.
 */
static void follow(struct etcd_store *store, const struct change *change, int64_t again,
	int64_t until, int wake)
{
	struct error unused;
	struct watch *watch = &store->watch;
	store_revision from = etcd_revision(store, change->revision) + 1;
	bool fits = watch_is_open_for(watch, &store->gateway, &change->keys) && watch->from <= from;
	if (!fits && clock_now() < again)
		until = clock_earlier(until, again);
	else if (!fits &&
		 watch_open(watch, &store->gateway, &change->keys, from, &unused) != STATUS_OK)
		until = clock_earlier(until, clock_after(clock_jitter(PAUSE)));
	watch_sleep(watch, wake, until);
}

static enum status wait_for(struct etcd_store *store, struct change *change, int64_t deadline,
	int wake, struct error *err)
{
	struct error unused;
	struct watch *watch = &store->watch;
	int64_t next = 0;   /* when to look; at once if there is no stream yet */
	int64_t again = 0;  /* when to open a stream again */
	size_t in_vain = 0; /* the streams in a row that soon ended */
	store_revision from = etcd_revision(store, change->revision) + 1;
	/* A stream is enough for news (the caller has a count), and from the newest revision on. */
	bool current = change->awaited || change->revision >= store->newest;
	if (watch_is_open_for(watch, &store->gateway, &change->keys) && watch->from <= from &&
		current)
		next = clock_after(change->every);
	for (;;) {
		if (descriptor_is_ready(wake))
			return STATUS_NO;
		if (watch->open &&
			watch_read(watch, &store->gateway, NULL, &unused) != WATCH_FLOWS) {
			gateway_turn(&store->gateway);
			next = 0;
			in_vain = clock_now() - watch->began < PAUSE ? in_vain + 1 : 0;
			if (in_vain >= store->options.count)
				again = clock_after(clock_jitter(PAUSE));
		}
		if (watch_is_open_for(watch, &store->gateway, &change->keys) &&
			change->told(store, change))
			return STATUS_OK;
		int64_t now = clock_now();
		if (now >= next || (now >= deadline && !change->awaited)) {
			enum status status = look(store, change, deadline, wake, err);
			if (status == STATUS_TIMEOUT)
				return clock_now() >= deadline ? STATUS_TIMEOUT : STATUS_NO;
			if (status != STATUS_NO)
				return status;
			store->base.unchanged = now;
			next = clock_after(change->every);
		}
		if (now >= deadline)
			return STATUS_TIMEOUT;
		follow(store, change, again, clock_earlier(next, deadline), wake);
	}
}

enum status etcd_wait(struct store *base, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct change change = {.prefix = prefix,
		.look = look_below,
		.told = told_below,
		.every = LOOK_EVERY,
		.revision = *since};
	wire_keys_below(&change.keys, store->options.prefix, 'k', prefix);
	enum status status = wait_for(store, &change, deadline, wake, err);
	/* The stream may be behind what others have read: ask for the newest revision. */
	if (status == STATUS_OK && told_below(store, &change)) {
		struct gateway_reply reply = {0};
		status = etcd_read_key(
			store, &change.keys.first, 0, clock_after(base->patience), &reply, err);
		if (status == STATUS_OK)
			change.revision = etcd_answered(store, &reply);
		gateway_reply_release(&reply);
	}
	if (!status_is_error(status) || status == STATUS_TIMEOUT)
		*since = change.revision;
	return status;
}

static struct change news_of(const struct etcd_store *store, const char *group)
{
	struct change change = {.look = look_at_news, .told = told_news, .every = LOOK_EVERY};
	wire_key_set(&change.keys.first, store->options.prefix, 'n', group);
	return change;
}

uint32_t etcd_news(struct store *base, const char *group)
{
	struct etcd_store *store = etcd_of(base);
	struct error unused;
	struct change change = news_of(store, group);
	uint32_t count = 0;
	(void)ask_news(store, &change, &count, clock_after(base->patience), &unused);
	return count;
}

enum status etcd_await_news(struct store *base, struct store_awaited *awaited, int64_t deadline,
	int wake, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct change change = news_of(store, awaited->group);
	change.revision = awaited->since;
	change.awaited = awaited;
	if (awaited->age)
		change.every = awaited->age;
	return wait_for(store, &change, deadline, wake, err);
}
