/* SPDX-License-Identifier: MIT */
/*
 * Beats and news. The beats of an agent are in one key, 48 bytes for each task. The key has the
 * agent's lease, which only removes the key when the agent is long gone: whether a task is silent
 * is judged by changes, as with other stores. The news of a group is a key whose version is the
 * count of news, and whose value is the number of tasks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/etcd/session.h"

#define LEASE_LIFE  3600    /* seconds */
#define LEASE_RENEW 1200000 /* milliseconds after which a lease is renewed */

static struct wire_key news_key(const struct etcd_store *store, const char *group)
{
	struct wire_key key;
	wire_key_set(&key, store->options.prefix, 'n', group);
	return key;
}

static struct wire_key beat_key(const struct etcd_store *store, const char *group, uint64_t task)
{
	struct wire_key key;
	char *name = xprintf("%s/%08" PRIu64, group, task);
	wire_key_set(&key, store->options.prefix, 'b', name);
	free(name);
	return key;
}

static enum status ask(struct etcd_store *store, const struct text *body,
	struct gateway_reply *reply, struct error *err)
{
	return etcd_repeat(
		store, "/v3/kv/txn", body, clock_after(store->base.patience), reply, err);
}

/* ---- The lease ---- */

/* Renew the lease. If it has ended, the answer has no TTL, and store->lease becomes 0. */
static enum status renew(struct etcd_store *store, struct error *err)
{
	struct text body = {0};
	struct gateway_reply reply = {0};
	text_add(&body, "{");
	wire_add_number(&body, "ID", store->lease);
	text_add(&body, "}");
	/* Not etcd_repeat, which compares revisions: the answer is not about the keys. */
	enum status status = gateway_repeat(&store->gateway, "/v3/lease/keepalive",
		text_string(&body), clock_after(store->base.patience), &reply, err);
	if (status == STATUS_OK && wire_number(wire_object(reply.object, "result"), "TTL") <= 0)
		store->lease = 0;
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

static enum status have_lease(struct etcd_store *store, struct error *err)
{
	enum status status = STATUS_OK;
	if (store->lease && clock_now() < store->lease_renew)
		return STATUS_OK;
	if (store->lease)
		status = renew(store, err);
	if (status == STATUS_OK && !store->lease)
		status = gateway_grant(&store->gateway, LEASE_LIFE,
			clock_after(store->base.patience), &store->lease, err);
	if (status == STATUS_OK)
		store->lease_renew = clock_after(LEASE_RENEW);
	return status;
}

/* ---- Prepare and remove ---- */

/*
 * If the group is prepared already, for fewer tasks, replace their number. The server compares
 * texts, which is right for numbers of equal length.
 */
enum status etcd_beats_prepare(
	struct store *base, const char *group, uint64_t tasks, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text body = {0};
	struct gateway_reply reply = {0};
	struct wire_key key = news_key(store, group);
	char count[24];
	(void)snprintf(count, sizeof(count), "%08" PRIu64, tasks);
	text_add(&body, "{\"compare\":[");
	wire_add_compare(&body, &key, false);
	text_add(&body, "],\"success\":[");
	wire_add_put(&body, &key, count, strlen(count));
	text_add(&body, "],\"failure\":[{\"request_txn\":{\"compare\":[{");
	wire_add_key(&body, &key);
	wire_add(&body, "\"target\":\"VALUE\",\"result\":\"LESS\"");
	wire_add_bytes(&body, "value", count, strlen(count));
	text_add(&body, "}],\"success\":[");
	wire_add_put(&body, &key, count, strlen(count));
	text_add(&body, "]}}]}");
	enum status status = ask(store, &body, &reply, err);
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

enum status etcd_beats_remove(struct store *base, const char *group, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text body = {0};
	struct gateway_reply reply = {0};
	struct wire_keys keys[3] = {{.first = news_key(store, group)}};
	char *inner = xprintf("%s/", group);
	wire_keys_below(&keys[1], store->options.prefix, 'n', inner);
	wire_keys_below(&keys[2], store->options.prefix, 'b', inner);
	text_add(&body, "{\"success\":[");
	for (size_t i = 0; i < 3; i++) {
		wire_add(&body, "{\"request_delete_range\":{");
		wire_add_keys(&body, &keys[i]);
		text_add(&body, "}}");
	}
	text_add(&body, "]}");
	free(inner);
	store->group_made = 0;
	enum status status = ask(store, &body, &reply, err);
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

/* ---- Beat ---- */

/* Learn, if not known, since when the group is prepared, and for how many tasks. */
static enum status learn_group(struct etcd_store *store, const char *group, struct error *err)
{
	struct gateway_reply reply = {0};
	struct wire_key key = news_key(store, group);
	size_t length;
	if (store->group_made && !strcmp(store->group, group))
		return STATUS_OK;
	store->group_made = 0;
	enum status status =
		etcd_read_key(store, &key, 0, clock_after(store->base.patience), &reply, err);
	struct json_object *kv = status == STATUS_OK ? wire_element(reply.object, "kvs", 0) : NULL;
	if (kv) {
		char *value = wire_bytes(kv, "value", &length);
		snprintf(store->group, sizeof(store->group), "%s", group);
		store->group_tasks = value ? strtoull(value, NULL, 10) : 0;
		store->group_made = wire_number(kv, "create_revision");
		free(value);
	} else if (status == STATUS_OK) {
		status = error_set(err, STATUS_NO, "the beats of %s were not prepared", group);
	}
	gateway_reply_release(&reply);
	return status;
}

/* STATUS_NO with GATEWAY_NOT_FOUND in reply->code: the lease has ended. */
static enum status put_beats(struct etcd_store *store, const char *group, uint64_t first,
	const struct text *value, struct gateway_reply *reply, struct error *err)
{
	struct text body = {0};
	struct wire_key news = news_key(store, group), key = beat_key(store, group, first);
	text_add(&body, "{\"compare\":[{");
	wire_add_key(&body, &news);
	wire_add(&body, "\"target\":\"CREATE\",\"result\":\"EQUAL\"");
	wire_add_number(&body, "create_revision", store->group_made);
	text_add(&body, "}],\"success\":[{\"request_put\":{");
	wire_add_key(&body, &key);
	wire_add_bytes(&body, "value", value->data, value->length);
	wire_add_number(&body, "lease", store->lease);
	text_add(&body, "}}]}");
	enum status status = ask(store, &body, reply, err);
	if (status == STATUS_OK && !wire_flag(reply->object, "succeeded")) {
		store->group_made = 0;
		status = error_set(err, STATUS_NO, "the beats of %s were removed", group);
	}
	text_release(&body);
	return status;
}

enum status etcd_beat(struct store *base, const char *group, uint64_t first,
	const struct store_beat *beats, size_t count, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text value = {0};
	for (size_t i = 0; i < count; i++)
		text_addf(&value, "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, beats[i].token,
			beats[i].sequence, beats[i].step);
	enum status status = STATUS_OK;
	for (int again = 0; again < 2; again++) {
		struct gateway_reply reply = {0};
		status = learn_group(store, group, err);
		if (status == STATUS_OK && first + count > store->group_tasks) {
			store->group_made = 0; /* it may be prepared for more now */
			status = learn_group(store, group, err);
		}
		if (status == STATUS_OK && first + count > store->group_tasks)
			status = error_set(err, STATUS_NO,
				"the beats of %s were not prepared for task %" PRIu64, group,
				first + count - 1);
		if (status == STATUS_OK)
			status = have_lease(store, err);
		if (status == STATUS_OK)
			status = put_beats(store, group, first, &value, &reply, err);
		bool dead = status == STATUS_NO && reply.code == GATEWAY_NOT_FOUND;
		gateway_reply_release(&reply);
		if (!dead)
			break;
		store->lease = 0;
	}
	text_release(&value);
	return status;
}

/* ---- Read a beat ---- */

/* Where we keep 1 + the first task of the record that had this task's beat; 0: not known. */
static uint32_t *first_of(struct etcd_store *store, const char *group, uint64_t task)
{
	if (strcmp(store->read_group, group) != 0) {
		snprintf(store->read_group, sizeof(store->read_group), "%s", group);
		store->first_count = 0;
	}
	if (task >= store->first_count) {
		size_t count = task + 64;
		store->firsts = xrealloc(store->firsts, count, sizeof(*store->firsts));
		memset(store->firsts + store->first_count, 0,
			(count - store->first_count) * sizeof(*store->firsts));
		store->first_count = count;
	}
	return &store->firsts[task];
}

/* Ask for the record that begins at first - 1; first 0: the last that begins at or before task. */
static void write_search(struct etcd_store *store, const char *group, uint64_t task, uint32_t first,
	struct text *body)
{
	struct wire_keys keys = {.first = beat_key(store, group, first ? first - 1 : 0)};
	text_add(body, "{");
	if (!first) {
		keys.end = beat_key(store, group, task);
		wire_key_next(&keys.end);
		wire_add(
			body, "\"sort_order\":\"DESCEND\",\"sort_target\":\"KEY\",\"limit\":\"1\"");
	}
	wire_add_keys(body, &keys);
	text_add(body, "}");
}

#define BEAT 48 /* bytes: three numbers of 16 digits */

static bool read_beat(const char *value, size_t length, uint64_t i, struct store_beat *beat)
{
	return i < length / BEAT &&
	       sscanf(value + BEAT * i, "%16" SCNx64 "%16" SCNx64 "%16" SCNx64, &beat->token,
		       &beat->sequence, &beat->step) == 3 &&
	       beat->token;
}

/* Take from a record the beats that it has of count tasks from first. *begin: its first task. */
static void take_beats(struct json_object *kv, uint64_t first, struct store_beat *beats,
	size_t count, uint64_t *begin)
{
	size_t key_length = 0, length = 0;
	char *key = wire_bytes(kv, "key", &key_length), *value = wire_bytes(kv, "value", &length);
	const char *slash = key ? strrchr(key, '/') : NULL;
	*begin = slash ? strtoull(slash + 1, NULL, 10) : 0;
	for (size_t i = 0; slash && value && i < count; i++) {
		struct store_beat found = {0};
		if (*begin <= first + i && read_beat(value, length, first + i - *begin, &found))
			beats[i] = found;
	}
	free(key);
	free(value);
}

enum status etcd_beat_read(struct store *base, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text body = {0};
	struct gateway_reply reply = {0};
	uint32_t *first = first_of(store, group, task);
	write_search(store, group, task, *first, &body);
	enum status status =
		etcd_read(store, "/v3/kv/range", &body, clock_after(base->patience), &reply, err);
	struct json_object *kv = status == STATUS_OK ? wire_element(reply.object, "kvs", 0) : NULL;
	struct store_beat found = {0};
	uint64_t begin = 0;
	if (kv)
		take_beats(kv, task, &found, 1, &begin);
	*first = found.token ? (uint32_t)begin + 1 : 0;
	if (found.token) {
		*beat = found;
	} else if (status == STATUS_OK) {
		status = error_set(err, STATUS_NO, "%s/%" PRIu64 " has not beaten", group, task);
	}
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

/*
 * The record with the beat of task `first` may begin before that task. If two records have a beat
 * of one task, the record that begins later counts, as in etcd_beat_read.
 */
enum status etcd_beats_read(struct store *base, const char *group, uint64_t first,
	struct store_beat *beats, size_t count, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text body = {0};
	struct gateway_reply reply = {0};
	uint64_t begin;
	enum status status = etcd_beat_read(base, group, first, &beats[0], err);
	uint32_t *known = first_of(store, group, first);
	struct wire_keys keys = {beat_key(store, group, *known ? *known - 1 : first),
		beat_key(store, group, first + count)};
	if (status_is_error(status) || count == 1)
		return status == STATUS_NO ? STATUS_OK : status;
	text_add(&body, "{");
	wire_add_keys(&body, &keys);
	text_add(&body, "}");
	status = etcd_read(store, "/v3/kv/range", &body, clock_after(base->patience), &reply, err);
	for (size_t i = 0; status == STATUS_OK && i < wire_count(reply.object, "kvs"); i++)
		take_beats(wire_element(reply.object, "kvs", i), first, beats, count, &begin);
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}
