/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a change. The server reports changes in a stream, one for each open store. We also
 * ask it with a request, the look: before the stream is opened, after it broke, at the deadline
 * (except for news, because its readers then read the keys themselves), and every minute (for news:
 * as the caller wants). The stream begins after the revision up to which a look has found no
 * change, so that none is missed.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/process/descriptor.h"
#include "store/etcd/session.h"

/* All in milliseconds. */
#define LOOK_EVERY 60000 /* between two looks */
#define LOOK_LEAST 2000	 /* a look may take this long, even if the deadline comes before */
#define PAUSE	   500	 /* the longest pause before a stream is opened again */

#define MESSAGE_MOST ((size_t)256 << 20)

struct change {
	struct wire_keys keys;
	/* STATUS_OK: there is a change. STATUS_NO: none is found, and none is up to `revision`. */
	enum status (*look)(struct etcd_store *store, struct change *change, int64_t deadline,
		struct error *err);
	/* Whether the stream has reported a change. */
	bool (*told)(const struct etcd_store *store, struct change *change);
	int64_t every;		       /* ms between two looks */
	store_revision revision;       /* nothing has changed up to it */
	struct store_awaited *awaited; /* for etcd_await_news; NULL: this is etcd_wait */
};

/* ---- The stream ---- */

static bool same_key(const struct wire_key *a, const struct wire_key *b)
{
	return a->length == b->length && !memcmp(a->bytes, b->bytes, a->length);
}

/* Whether the stream is for this change, and to the endpoint that the gateway asks now. */
static bool is_followed(const struct etcd_store *store, const struct change *change)
{
	const struct watch *watch = &store->watch;
	return watch->open && watch->endpoint == store->gateway.at &&
	       watch->from <= change->revision + 1 &&
	       same_key(&watch->keys.first, &change->keys.first) &&
	       same_key(&watch->keys.end, &change->keys.end);
}

/* Open the stream after `revision`, in place of the present one. */
static void open_stream(struct etcd_store *store, const struct change *change)
{
	struct error unused;
	struct text body = {0};
	struct watch *watch = &store->watch;
	struct http *http = watch->http;
	if (!http && http_open(&http, &unused) != STATUS_OK)
		return;
	*watch = (struct watch){.http = http,
		.began = clock_now(),
		.endpoint = store->gateway.at,
		.keys = change->keys,
		.from = change->revision + 1};
	text_add(&body, "{\"create_request\":{");
	wire_add_keys(&body, &change->keys);
	wire_add_number(&body, "start_revision", watch->from);
	text_add(&body, "}}\n");
	watch->open =
		gateway_begin(&store->gateway, http, "/v3/watch", &body, &unused) == STATUS_OK;
	text_release(&body);
}

/* Read a message, which is a line of the stream. False: the server has ended the stream. */
static bool read_message(struct watch *watch, struct json_object *message)
{
	struct json_object *result = wire_object(message, "result");
	int64_t revision = wire_number(wire_object(result, "header"), "revision");
	if (!result || wire_flag(result, "canceled"))
		return false;
	/* A server whose revision is lower than ours has an old state. */
	if (wire_flag(result, "created") && revision + 1 < watch->from)
		return false;
	size_t count = wire_count(result, "events");
	if (count) {
		struct json_object *kv =
			wire_object(wire_element(result, "events", count - 1), "kv");
		watch->changed = wire_number(kv, "mod_revision");
		watch->version = wire_number(kv, "version");
	}
	return true;
}

static bool read_lines(struct watch *watch)
{
	const struct text *body = &http_answer(watch->http)->body;
	bool flows = true;
	size_t begin = 0;
	for (const char *line, *end; flows && begin < body->length;
		begin += (size_t)(end - line) + 1) {
		line = body->data + begin;
		end = memchr(line, '\n', body->length - begin);
		if (!end)
			break;
		struct json_object *message =
			json_parse_limited(line, (size_t)(end - line), MESSAGE_MOST);
		flows = end == line || read_message(watch, message);
		json_object_put(message);
	}
	if (begin)
		http_forget(watch->http, begin);
	return flows;
}

/* Read the messages that have arrived, without waiting. False: the stream has ended. */
static bool read_stream(struct watch *watch)
{
	struct error unused;
	enum http_state state = http_step(watch->http, clock_now(), &unused);
	watch->open = state != HTTP_FAILED && read_lines(watch) && state != HTTP_DONE;
	if (!watch->open)
		http_stop(watch->http);
	return watch->open;
}

/*
 * Open the stream if it is closed and the time `again` has come, and wait for a message, wake (-1:
 * none), or the time `until`.
 */
static void follow(struct etcd_store *store, const struct change *change, int64_t again,
	int64_t until, int wake)
{
	const struct watch *watch = &store->watch;
	bool followed = is_followed(store, change);
	if (!followed && clock_now() < again)
		until = clock_earlier(until, again);
	else if (!followed)
		open_stream(store, change);
	until = clock_earlier(
		until, watch->open ? http_due(watch->http) : clock_after(clock_jitter(PAUSE)));
	struct pollfd polled[] = {{.fd = wake, .events = POLLIN},
		{.fd = watch->open ? http_descriptor(watch->http) : -1, .events = POLLIN}};
	(void)poll(polled, 2, clock_poll_timeout(until));
}

/* ---- Changes below a prefix ---- */

/*
 * Look for a key that was put after `revision`, and for deletions: there was none anywhere if their
 * mark is older, and there was one below the prefix if fewer keys are there than at `revision`. If
 * neither is so, a key may have been put and deleted since. Only the stream can tell, so `revision`
 * stays.
 */
static enum status look_below(
	struct etcd_store *store, struct change *change, int64_t deadline, struct error *err)
{
	struct text body = {0};
	struct gateway_reply reply = {0};
	struct wire_key mark;
	store_revision since = change->revision;
	int64_t asked = clock_now();
	wire_key_set(&mark, store->options.prefix, 'd', NULL);
	text_add(&body, "{\"success\":[{\"request_range\":{");
	wire_add_keys(&body, &change->keys);
	wire_add(&body, "\"keys_only\":true,\"limit\":\"1\"");
	wire_add_number(&body, "min_mod_revision", since + 1);
	text_add(&body, "}},{\"request_range\":{");
	wire_add_key(&body, &mark);
	if (since) {
		text_add(&body, "}},{\"request_range\":{");
		wire_add_keys(&body, &change->keys);
		wire_add(&body, "\"count_only\":true");
		wire_add_number(&body, "revision", since);
	}
	text_add(&body, "}}]}");
	enum status status =
		etcd_ask(store, GATEWAY_READ, "/v3/kv/txn", &body, deadline, &reply, err);
	if (status == STATUS_OK) {
		struct json_object *now = wire_response(reply.object, 0, "response_range"),
				   *then = wire_response(reply.object, 2, "response_range"),
				   *marked = wire_response(reply.object, 1, "response_range");
		bool deleted = wire_number(wire_element(marked, "kvs", 0), "mod_revision") > since;
		bool fewer = deleted && wire_number(now, "count") < wire_number(then, "count");
		if (wire_count(now, "kvs") == 0 && !fewer)
			status = STATUS_NO;
		if (status == STATUS_OK || !deleted)
			change->revision = etcd_answered(&reply);
		if (status == STATUS_NO && !deleted)
			store->base.unchanged = asked;
	} else if (status == STATUS_NO) {
		status = STATUS_OK; /* what was at `revision` is forgotten */
	}
	gateway_reply_release(&reply);
	return status;
}

static bool told_below(const struct etcd_store *store, struct change *change)
{
	return store->watch.changed > change->revision;
}

/* ---- News ---- */

/* Ask for the count of the group's news; 0: there is none. */
static enum status ask_news(struct etcd_store *store, struct change *change, uint32_t *count,
	int64_t deadline, struct error *err)
{
	struct gateway_reply reply = {0};
	enum status status = etcd_read_key(store, &change->keys.first, deadline, &reply, err);
	if (status == STATUS_OK) {
		*count = (uint32_t)wire_number(wire_element(reply.object, "kvs", 0), "version");
		change->revision = etcd_answered(&reply);
	}
	gateway_reply_release(&reply);
	return status;
}

static enum status look_at_news(
	struct etcd_store *store, struct change *change, int64_t deadline, struct error *err)
{
	uint32_t count = 0;
	int64_t asked = clock_now();
	enum status status = ask_news(store, change, &count, deadline, err);
	if (status != STATUS_OK)
		return status;
	if (count == change->awaited->heard) {
		store->base.unchanged = asked;
		return STATUS_NO;
	}
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

/* ---- Waiting ---- */

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

static enum status wait_for(struct etcd_store *store, struct change *change, int64_t deadline,
	int wake, struct error *err)
{
	struct watch *watch = &store->watch;
	int64_t next = is_followed(store, change) ? clock_after(change->every) : 0; /* look */
	int64_t again = 0;  /* when to open a stream again */
	size_t in_vain = 0; /* the streams in a row that soon ended */
	for (;;) {
		if (descriptor_is_ready(wake))
			return STATUS_NO;
		if (watch->open && !read_stream(watch)) {
			gateway_turn(&store->gateway);
			next = 0;
			in_vain = clock_now() - watch->began < PAUSE ? in_vain + 1 : 0;
			if (in_vain >= store->options.count)
				again = clock_after(clock_jitter(PAUSE));
		}
		if (is_followed(store, change) && change->told(store, change))
			return STATUS_OK;
		int64_t now = clock_now();
		if (now >= next || (now >= deadline && !change->awaited)) {
			enum status status = look(store, change, deadline, wake, err);
			if (status == STATUS_TIMEOUT)
				return clock_now() >= deadline ? STATUS_TIMEOUT : STATUS_NO;
			if (status != STATUS_NO)
				return status;
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
	struct change change = {
		.look = look_below, .told = told_below, .every = LOOK_EVERY, .revision = *since};
	wire_keys_below(&change.keys, store->options.prefix, 'k', prefix);
	enum status status = wait_for(store, &change, deadline, wake, err);
	/* The stream may be behind what others have read: ask for the newest revision. */
	if (status == STATUS_OK && (told_below(store, &change) || change.revision == *since)) {
		struct gateway_reply reply = {0};
		status = etcd_read_key(
			store, &change.keys.first, clock_after(base->patience), &reply, err);
		if (status == STATUS_OK)
			change.revision = etcd_answered(&reply);
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
