/* SPDX-License-Identifier: MIT */
#include "store/etcd/outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define FENCE_LIFE 86400 /* seconds; no request is under way for longer than this */

static void fence_key(const struct etcd_store *store, struct wire_key *key)
{
	char name[16];
	snprintf(name, sizeof(name), "%08x", store->client);
	wire_key_set(key, store->options.prefix, 'f', name);
}

void outcome_write_fence(const struct etcd_store *store, struct text *body)
{
	struct wire_key key;
	fence_key(store, &key);
	wire_add_compare(body, &key, false);
}

void outcome_new_client(struct etcd_store *store)
{
	if (getrandom(&store->client, sizeof(store->client), 0) != sizeof(store->client))
		store->client = (uint32_t)clock_now() ^ (uint32_t)(uintptr_t)store;
}

/* Put the fence, with a lease that removes it later. */
static enum status put_fence(struct etcd_store *store, const struct wire_key *key, int64_t deadline)
{
	struct error unused;
	struct text put = {0};
	struct gateway_reply reply = {0};
	int64_t lease;
	enum status status = gateway_grant(&store->gateway, FENCE_LIFE, deadline, &lease, &unused);
	if (status != STATUS_OK)
		return status;
	text_add(&put, "{");
	wire_add_key(&put, key);
	wire_add_number(&put, "lease", lease);
	text_add(&put, "}");
	status = gateway_repeat(
		&store->gateway, "/v3/kv/put", text_string(&put), deadline, &reply, &unused);
	gateway_reply_release(&reply);
	text_release(&put);
	return status;
}

struct search {
	const struct wire_key *fence;
	char stamps[2][WIRE_STAMP + 1]; /* one for each branch */
	struct outcome *outcome;
	bool fenced; /* the fence was read; later events do not matter */
};

static void look_at(void *context, struct json_object *event)
{
	struct search *search = context;
	struct json_object *kv = wire_object(event, "kv");
	size_t key_length, length;
	char *key = wire_bytes(kv, "key", &key_length), *value = wire_bytes(kv, "value", &length);
	if (key && key_length == search->fence->length &&
		!memcmp(key, search->fence->bytes, key_length))
		search->fenced = true;
	for (int i = 0; i < 2 && value && length >= WIRE_STAMP && !search->fenced; i++) {
		if (memcmp(value, search->stamps[i], WIRE_STAMP) != 0)
			continue;
		search->outcome->done = true;
		search->outcome->then = i == 0;
		search->outcome->revision = wire_number(kv, "mod_revision");
	}
	free(key);
	free(value);
}

/* Read all events up to the fence. */
static enum status read_history(struct etcd_store *store, struct search *search, int64_t deadline)
{
	struct error unused;
	struct watch watch = {0};
	struct wire_keys keys;
	struct watch_reader reader = {.tell = look_at, .context = search};
	/* The range of the kinds d, f and k: trace, fences and keys. */
	wire_key_set(&keys.first, store->options.prefix, 'd', NULL);
	wire_key_set(&keys.end, store->options.prefix, 'k', "");
	wire_key_end(&keys.end);
	enum watch_state state = WATCH_ENDED;
	while (!search->fenced && clock_now() < deadline) {
		if (state == WATCH_ENDED &&
			watch_open(&watch, &store->gateway, &keys, search->outcome->since + 1,
				&unused) != STATUS_OK)
			break;
		watch_sleep(&watch, -1, deadline);
		state = watch_read(&watch, &store->gateway, &reader, &unused);
		if (state == WATCH_GAP)
			break;
		if (state == WATCH_ENDED && !search->fenced) {
			gateway_turn(&store->gateway);
			clock_sleep_until(clock_earlier(deadline, clock_after(clock_jitter(100))));
		}
	}
	watch_release(&watch);
	return search->fenced ? STATUS_OK : STATUS_TEMPORARY;
}

enum status outcome_find(struct etcd_store *store, int64_t deadline, struct outcome *outcome)
{
	struct wire_key fence;
	struct search search = {.fence = &fence, .outcome = outcome};
	fence_key(store, &fence);
	wire_stamp(search.stamps[0], store->client, store->number, true);
	wire_stamp(search.stamps[1], store->client, store->number, false);
	enum status status = put_fence(store, &fence, deadline);
	if (status == STATUS_OK)
		status = read_history(store, &search, deadline);
	outcome_new_client(store);
	return status;
}
