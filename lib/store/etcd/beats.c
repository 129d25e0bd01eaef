/* SPDX-License-Identifier: MIT */
/*
 * Beats and news. The beats of an agent are in one key, 48 bytes for each task. The news of a group
 * is a key whose version is the count of news, and whose value is the number of tasks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/etcd/session.h"

#define BEAT 48 /* bytes: three numbers of 16 digits */

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

/* Send a transaction that may be sent twice. STATUS_NO: its compares do not hold. */
static enum status ask(struct etcd_store *store, struct text *body, struct error *err)
{
	struct gateway_reply reply = {0};
	enum status status = etcd_ask(store, GATEWAY_REPEAT, "/v3/kv/txn", body,
		clock_after(store->base.patience), &reply, err);
	if (status == STATUS_OK && !wire_flag(reply.object, "succeeded"))
		status = STATUS_NO;
	gateway_reply_release(&reply);
	return status;
}

/*
 * A compare which holds if the group is prepared for a number of tasks that is less or greater than
 * count. The server compares texts, which is right for numbers of equal length.
 */
static void add_tasks(
	struct text *body, const struct wire_key *news, const char *result, const char *count)
{
	wire_add(body, "{");
	wire_add_key(body, news);
	text_addf(body, ",\"target\":\"VALUE\",\"result\":\"%s\"", result);
	wire_add_bytes(body, "value", count, strlen(count));
	text_add(body, "}");
}

/* If the group is prepared already, for fewer tasks, replace their number. */
enum status etcd_beats_prepare(
	struct store *base, const char *group, uint64_t tasks, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text body = {0};
	struct wire_key key = news_key(store, group);
	char count[24];
	(void)snprintf(count, sizeof(count), "%08" PRIu64, tasks);
	wire_begin_unless(&body, &key);
	wire_add_put(&body, &key, count, strlen(count));
	text_add(&body, "],\"failure\":[{\"request_txn\":{\"compare\":[");
	add_tasks(&body, &key, "LESS", count);
	text_add(&body, "],\"success\":[");
	wire_add_put(&body, &key, count, strlen(count));
	text_add(&body, "]}}]}");
	enum status status = ask(store, &body, err);
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status etcd_beats_remove(struct store *base, const char *group, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text body = {0};
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
	return ask(store, &body, err);
}

enum status etcd_beat(struct store *base, const char *group, uint64_t first,
	const struct store_beat *beats, size_t count, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct text value = {0}, body = {0};
	struct wire_key news = news_key(store, group), key = beat_key(store, group, first);
	char last[24];
	(void)snprintf(last, sizeof(last), "%08" PRIu64, first + count - 1);
	for (size_t i = 0; i < count; i++)
		text_addf(&value, "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, beats[i].token,
			beats[i].sequence, beats[i].step);
	text_add(&body, "{\"compare\":[");
	add_tasks(&body, &news, "GREATER", last);
	text_add(&body, "],\"success\":[");
	wire_add_put(&body, &key, value.data, value.length);
	text_add(&body, "]}");
	enum status status = ask(store, &body, err);
	text_release(&value);
	if (status == STATUS_NO)
		error_set(err, STATUS_NO,
			"the beats of %s were not prepared for task %s, or were removed", group,
			last);
	return status;
}

/* ---- Read beats ---- */

/* Where we keep 1 + the first task of the record that had this task's beat; 0: not known. */
static uint32_t *first_of(struct etcd_store *store, const char *group, uint64_t task)
{
	size_t at = (uint32_t)task * 2654435761u >> 26; /* ranges begin at multiples of 1,024 */
	if (strcmp(store->read_group, group) != 0)
		memset(store->firsts, 0, sizeof(store->firsts));
	snprintf(store->read_group, sizeof(store->read_group), "%s", group);
	if (store->firsts[at].task != task)
		store->firsts[at].first = 0;
	store->firsts[at].task = task;
	return &store->firsts[at].first;
}

/* Take from a record the beats that it has of count tasks from first. Returns its first task. */
static uint64_t take_beats(
	struct json_object *kv, uint64_t first, struct store_beat *beats, size_t count)
{
	size_t key_length = 0, length = 0;
	char *key = wire_bytes(kv, "key", &key_length), *value = wire_bytes(kv, "value", &length);
	const char *slash = key ? strrchr(key, '/') : NULL;
	uint64_t begin = slash ? strtoull(slash + 1, NULL, 10) : 0;
	for (size_t i = 0; slash && value && i < count; i++) {
		struct store_beat found;
		uint64_t at = first + i - begin; /* huge if it begins later */
		if (at < length / BEAT &&
			sscanf(value + BEAT * at, "%16" SCNx64 "%16" SCNx64 "%16" SCNx64,
				&found.token, &found.sequence, &found.step) == 3)
			beats[i] = found;
	}
	free(key);
	free(value);
	return begin;
}

/*
 * Read a range of records, or with `last` only its last record. If two have a beat of one task, the
 * one that begins later counts. *begin: where the record begins that was read first.
 */
static enum status read_records(struct etcd_store *store, const struct wire_keys *keys, bool last,
	uint64_t first, struct store_beat *beats, size_t count, uint64_t *begin, struct error *err)
{
	struct text body = {0};
	struct gateway_reply reply = {0};
	text_add(&body, "{");
	wire_add_keys(&body, keys);
	if (last)
		wire_add(&body,
			"\"sort_order\":\"DESCEND\",\"sort_target\":\"KEY\",\"limit\":\"1\"");
	text_add(&body, "}");
	enum status status = etcd_ask(store, GATEWAY_READ, "/v3/kv/range", &body,
		clock_after(store->base.patience), &reply, err);
	for (size_t i = 0; status == STATUS_OK && i < wire_count(reply.object, "kvs"); i++) {
		uint64_t its =
			take_beats(wire_element(reply.object, "kvs", i), first, beats, count);
		*begin = i == 0 ? its : *begin;
	}
	gateway_reply_release(&reply);
	return status;
}

/*
 * The record with the beat of task `first` may begin before that task: it is the last one that
 * begins there or before, and once found is read by its key.
 */
enum status etcd_beats_read(struct store *base, const char *group, uint64_t first,
	struct store_beat *beats, size_t count, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	uint32_t *known = first_of(store, group, first);
	uint64_t begin = *known ? *known - 1 : first;
	enum status status = STATUS_OK;
	struct wire_keys keys = {beat_key(store, group, 0), beat_key(store, group, first)};
	if (!*known) {
		wire_key_next(&keys.end);
		status = read_records(store, &keys, true, first, beats, count, &begin, err);
	}
	if (status == STATUS_OK && (*known || count > 1)) {
		keys = (struct wire_keys){
			beat_key(store, group, begin), beat_key(store, group, first + count)};
		status = read_records(store, &keys, false, first, beats, count, &begin, err);
	}
	*known = status == STATUS_OK && beats[0].token ? (uint32_t)begin + 1 : 0;
	return status;
}

enum status etcd_beat_read(struct store *base, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err)
{
	struct store_beat found = {0};
	enum status status = etcd_beats_read(base, group, task, &found, 1, err);
	if (status == STATUS_OK && !found.token)
		status = error_set(err, STATUS_NO, "%s/%" PRIu64 " has not beaten", group, task);
	if (status == STATUS_OK)
		*beat = found;
	return status;
}
