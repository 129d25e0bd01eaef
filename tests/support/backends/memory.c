/* SPDX-License-Identifier: MIT */
#include "support/backends/memory.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/bell.h"
#include "base/process/descriptor.h"
#include "base/xalloc.h"

#define STORES	256
#define WAITING 4096 /* handles that wait at one time */

/* One key, or one beat (its value is a struct store_beat). */
struct node {
	char *key;
	char *value; /* NULL: deleted, or never beaten */
	size_t length;
	store_revision revision;
};

/* Sorted by key. */
struct table {
	struct node **nodes;
	size_t count, capacity;
};

/* What is in one store. */
struct content {
	char *name;
	store_revision revision;
	struct table keys, beats;
	int bells[WAITING]; /* of the handles that wait */
	size_t waiting;
};

struct memory_store {
	struct store base;
	struct content *content;
	int bell;	       /* -1: it has not waited yet */
	int64_t looked;	       /* when its last wait saw no change; 0: never */
	store_revision newest; /* of the store, then */
};

static const struct memory_observer *observer;

void memory_observe(const struct memory_observer *chosen)
{
	observer = chosen;
}

/* ---- Tables ---- */

/* The index of the first node whose key is not below key. */
static size_t table_lower_bound(const struct table *table, const char *key)
{
	size_t low = 0, high = table->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(table->nodes[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* NULL: there never was such a key. */
static struct node *table_find(const struct table *table, const char *key)
{
	size_t at = table_lower_bound(table, key);
	return at < table->count && !strcmp(table->nodes[at]->key, key) ? table->nodes[at] : NULL;
}

static struct node *table_insert(struct table *table, const char *key)
{
	size_t at = table_lower_bound(table, key);
	if (at < table->count && !strcmp(table->nodes[at]->key, key))
		return table->nodes[at];
	table->nodes = xgrow(table->nodes, table->count, &table->capacity, sizeof(*table->nodes));
	memmove(&table->nodes[at + 1], &table->nodes[at],
		(table->count++ - at) * sizeof(*table->nodes));
	struct node *node = table->nodes[at] = xcalloc(1, sizeof(*node));
	node->key = xstrdup(key);
	return node;
}

/* value: NULL: it has none any more. */
static void table_set_value(struct node *node, const void *value, size_t length)
{
	char *copy = value ? xcalloc(1, length + 1) : NULL;
	if (length)
		memcpy(copy, value, length);
	free(node->value);
	node->value = copy;
	node->length = length;
}

/* Remove the nodes whose key begins with prefix. */
static void table_remove_under(struct table *table, const char *prefix)
{
	size_t length = strlen(prefix), kept = 0;
	bool exclusive = length && prefix[length - 1] == '/';
	for (size_t i = 0; i < table->count; i++) {
		struct node *node = table->nodes[i];
		if (strncmp(node->key, prefix, length) || (exclusive && !node->key[length])) {
			table->nodes[kept++] = node;
			continue;
		}
		free(node->value);
		free(node->key);
		free(node);
	}
	table->count = kept;
}

/* ---- The stores ---- */

static struct content *contents[STORES];
static size_t content_count;

void memory_forget(void)
{
	while (content_count) {
		struct content *content = contents[--content_count];
		table_remove_under(&content->keys, "");
		table_remove_under(&content->beats, "");
		free(content->keys.nodes);
		free(content->beats.nodes);
		free(content->name);
		free(content);
	}
}

static struct content *content_of(struct store *store)
{
	return ((struct memory_store *)store)->content;
}

static struct content *find_content(const char *name, bool create)
{
	for (size_t i = 0; i < content_count; i++)
		if (!strcmp(contents[i]->name, name))
			return contents[i];
	if (!create || content_count == STORES)
		return NULL;
	struct content *content = contents[content_count++] = xcalloc(1, sizeof(*content));
	content->name = xstrdup(name);
	return content;
}

static enum status memory_open(struct store **opened, const struct store_url *url, unsigned flags,
	int64_t deadline, struct error *err)
{
	(void)deadline;
	if (url->count)
		return error_set(err, STATUS_USAGE, "store memory:%s: unknown parameter %s",
			url->path, url->parameters[0].name);
	bool create = (flags & STORE_CREATE) && !(flags & STORE_READ_ONLY);
	struct content *content = find_content(url->path, create);
	if (!content)
		return error_set(err, create ? STATUS_TEMPORARY : STATUS_NO,
			"store memory:%s is not there", url->path);
	struct memory_store *store = xcalloc(1, sizeof(*store));
	store->content = content;
	store->base.where = xstrdup(url->path);
	store->base.files = xprintf("%s.queue", url->path);
	store->base.local = true;
	store->bell = -1;
	*opened = &store->base;
	return STATUS_OK;
}

static void memory_close(struct store *base)
{
	struct memory_store *store = (struct memory_store *)base;
	if (store->bell >= 0)
		close(store->bell);
	free(store->base.where);
	free(store->base.files);
	free(store);
}

static bool hold(const struct content *content, const struct store_compare *compares, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct node *node = table_find(&content->keys, compares[i].key);
		store_revision revision = node && node->value ? node->revision : 0;
		if (revision != compares[i].revision)
			return false;
	}
	return true;
}

static bool copy_entry(const char *key, const struct node *node, struct store_entry *entry)
{
	*entry = (struct store_entry){.key = strdup(key)};
	if (!entry->key || !node || !node->value)
		return entry->key;
	entry->value = malloc(node->length + 1);
	if (!entry->value)
		return false;
	memcpy(entry->value, node->value, node->length + 1);
	entry->length = node->length;
	entry->revision = node->revision;
	return true;
}

static void beat_key(const char *group, uint64_t task, char key[STORE_KEY_MAX])
{
	snprintf(key, STORE_KEY_MAX, "%s/%020llu", group, (unsigned long long)task);
}

static void news_key(const char *group, char key[STORE_KEY_MAX])
{
	snprintf(key, STORE_KEY_MAX, "%s/news", group);
}

static void ring_all(const struct content *content)
{
	for (size_t i = 0; i < content->waiting; i++)
		bell_ring(content->bells[i]);
}

/* Carry out the operations. False: out of memory. */
static bool run(struct content *content, const struct store_op *ops, size_t count,
	struct store_answer *answer)
{
	bool changed = false, right = true;
	answer->entries = calloc(count + 1, sizeof(*answer->entries));
	if (!answer->entries)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct node *node = table_find(&content->keys, ops[i].key);
		switch (ops[i].kind) {
		case STORE_GET:
			right &= copy_entry(ops[i].key, node, &answer->entries[answer->count++]);
			break;
		case STORE_PUT:
			node = table_insert(&content->keys, ops[i].key);
			table_set_value(node, ops[i].value, ops[i].length);
			node->revision = content->revision + 1;
			changed = true;
			break;
		case STORE_DELETE:
			if (!node || !node->value)
				break;
			table_set_value(node, NULL, 0);
			node->revision = content->revision + 1;
			changed = true;
			break;
		}
	}
	content->revision += changed;
	answer->revision = content->revision;
	if (changed && observer)
		observer->changed(observer->context, ops, count, content->revision);
	return right;
}

/* The count of a group's news, one more of it first where that is asked for; 0: it has none. */
static uint32_t count_news(const struct content *content, const char *group, bool more)
{
	char key[STORE_KEY_MAX];
	uint32_t count;
	news_key(group, key);
	struct node *node = table_find(&content->beats, key);
	if (!node || !node->value)
		return 0;
	memcpy(&count, node->value, sizeof(count));
	count += more;
	if (more)
		table_set_value(node, &count, sizeof(count));
	return count;
}

/* The first node of a range. */
static size_t first_of(const struct table *table, const char *prefix, const char *after)
{
	size_t length = strlen(prefix);
	bool later = after && strcmp(after, prefix) >= 0;
	bool exclusive = later || (length && prefix[length - 1] == '/');
	const char *lower = later ? after : prefix;
	size_t at = table_lower_bound(table, lower);
	return at + (exclusive && at < table->count && !strcmp(table->nodes[at]->key, lower));
}

/* How many keys there are below each prefix. */
static void count_below(const struct content *content, const char *const prefixes[STORE_COUNTS],
	struct store_answer *answer)
{
	const struct table *table = &content->keys;
	for (size_t k = 0; k < STORE_COUNTS; k++) {
		const char *prefix = prefixes[k];
		for (size_t i = prefix ? first_of(table, prefix, NULL) : table->count;
			i < table->count && !strncmp(table->nodes[i]->key, prefix, strlen(prefix));
			i++)
			answer->counted[k] += table->nodes[i]->value != NULL;
	}
}

static enum status memory_txn(struct store *store, const struct store_request *request,
	int64_t deadline, struct store_answer *answer, struct error *err)
{
	(void)deadline;
	struct content *content = content_of(store);
	store_revision before = content->revision;
	answer->held = hold(content, request->compares, request->compare_count);
	bool right = answer->held
			     ? run(content, request->then, request->then_count, answer)
			     : run(content, request->otherwise, request->otherwise_count, answer);
	if (request->group)
		answer->news = count_news(
			content, request->group, request->news && content->revision > before);
	count_below(content, request->count, answer);
	if (content->revision > before)
		ring_all(content);
	answer->known = right;
	return right ? STATUS_OK : error_set(err, STATUS_TEMPORARY, "out of memory");
}

static bool is_skipped(const struct store_range *range, const char *key)
{
	const char *rest = key + strlen(range->prefix);
	for (size_t i = 0; range->skip && range->skip[i]; i++)
		if (!strncmp(rest, range->skip[i], strlen(range->skip[i])))
			return true;
	return false;
}

static enum status memory_list(struct store *store, const struct store_range *range,
	int64_t deadline, struct store_answer *answer, struct error *err)
{
	struct content *content = content_of(store);
	const struct table *table = &content->keys;
	size_t length = strlen(range->prefix), capacity = 0;
	bool right = true;
	(void)deadline;
	for (size_t i = first_of(table, range->prefix, range->after); i < table->count; i++) {
		const struct node *node = table->nodes[i];
		if (strncmp(node->key, range->prefix, length))
			break;
		if (!node->value || node->revision <= range->since || is_skipped(range, node->key))
			continue;
		answer->more = answer->count == range->limit;
		if (answer->more)
			break;
		if (answer->count == capacity) {
			capacity = capacity ? 2 * capacity : 16;
			struct store_entry *entries =
				realloc(answer->entries, capacity * sizeof(*entries));
			right = entries;
			if (!right)
				break;
			answer->entries = entries;
		}
		right = copy_entry(node->key, node, &answer->entries[answer->count++]);
		if (!right)
			break;
	}
	count_below(content, range->count, answer);
	answer->revision = content->revision;
	return right ? STATUS_OK : error_set(err, STATUS_TEMPORARY, "out of memory");
}

static bool has_changed(const struct content *content, const char *prefix, store_revision since)
{
	const struct table *table = &content->keys;
	size_t length = strlen(prefix);
	if (content->revision <= since)
		return false;
	for (size_t i = first_of(table, prefix, NULL); i < table->count; i++) {
		if (strncmp(table->nodes[i]->key, prefix, length))
			return false;
		if (table->nodes[i]->revision > since)
			return true;
	}
	return false;
}

/* Have the bell rung at every change, or no longer. False: too many wait. */
static bool listen(struct memory_store *store, bool begin)
{
	struct content *content = store->content;
	for (size_t i = 0; i < content->waiting; i++) {
		if (content->bells[i] != store->bell)
			continue;
		if (!begin)
			content->bells[i] = content->bells[--content->waiting];
		return true;
	}
	if (begin && content->waiting == WAITING)
		return false;
	if (begin)
		content->bells[content->waiting++] = store->bell;
	return true;
}

/* Sleep until a change may be there. True: wake became readable. */
static bool sleep_until(const struct memory_store *store, int64_t deadline, int wake)
{
	struct pollfd polled[] = {
		{.fd = wake, .events = POLLIN}, {.fd = store->bell, .events = POLLIN}};
	(void)poll(polled, 2, clock_poll_timeout(deadline));
	if (polled[1].revents)
		bell_hush(store->bell);
	return polled[0].revents;
}

/* What a wait looks at; woken: it looks for the last time. */
struct look {
	bool (*has_come)(struct memory_store *store, struct look *look, bool woken);
	const char *prefix; /* of memory_wait: */
	store_revision *since;
	struct store_awaited *awaited; /* of memory_await_news */
};

/* Until has_come, deadline, or wake is readable (STATUS_NO). */
static enum status wait_for(struct memory_store *store, struct look *look, int64_t deadline,
	int wake, struct error *err)
{
	enum status status = STATUS_OK;
	bool woken = descriptor_is_ready(wake);
	if (store->bell < 0)
		store->bell = bell_open();
	bool right = store->bell >= 0 && listen(store, true);
	while (right) {
		bool come = look->has_come(store, look, woken);
		status = woken ? STATUS_NO : come ? STATUS_OK : STATUS_TIMEOUT;
		if (status != STATUS_TIMEOUT || clock_now() >= deadline)
			break;
		woken = sleep_until(store, deadline, wake);
	}
	(void)listen(store, false);
	if (!right)
		return error_set(
			err, STATUS_TEMPORARY, "too many wait for store %s", store->base.where);
	return status;
}

static bool has_change(struct memory_store *store, struct look *look, bool woken)
{
	store_revision since = *look->since;
	bool changed = has_changed(store->content, look->prefix, since);
	if (!woken)
		*look->since = store->content->revision;
	if (!changed) {
		store->looked = clock_now();
		store->newest = store->content->revision;
	}
	if (!changed || since >= store->newest)
		store->base.unchanged = store->looked;
	return changed;
}

static enum status memory_wait(struct store *base, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err)
{
	struct look look = {.has_come = has_change, .prefix = prefix, .since = since};
	return wait_for((struct memory_store *)base, &look, deadline, wake, err);
}

static uint32_t memory_news(struct store *store, const char *group)
{
	uint32_t count = count_news(content_of(store), group, false);
	return count;
}

static bool has_news(struct memory_store *store, struct look *look, bool woken)
{
	uint32_t count = count_news(store->content, look->awaited->group, false);
	bool more = count != look->awaited->heard;
	if (!more)
		store->base.unchanged = clock_now();
	if (more && !woken)
		look->awaited->heard = count;
	return more;
}

static enum status memory_await_news(struct store *base, struct store_awaited *awaited,
	int64_t deadline, int wake, struct error *err)
{
	struct look look = {.has_come = has_news, .awaited = awaited};
	return wait_for((struct memory_store *)base, &look, deadline, wake, err);
}

static enum status memory_beats_prepare(
	struct store *store, const char *group, uint64_t tasks, struct error *err)
{
	char key[STORE_KEY_MAX];
	(void)err;
	for (uint64_t i = 0; i < tasks; i++) {
		beat_key(group, i, key);
		(void)table_insert(&content_of(store)->beats, key);
	}
	news_key(group, key);
	struct node *news = table_insert(&content_of(store)->beats, key);
	if (!news->value)
		table_set_value(news, &(uint32_t){1}, sizeof(uint32_t));
	return STATUS_OK;
}

static enum status memory_beat(struct store *store, const char *group, uint64_t task,
	const struct store_beat *beat, struct error *err)
{
	char key[STORE_KEY_MAX];
	beat_key(group, task, key);
	struct node *node = table_find(&content_of(store)->beats, key);
	if (node)
		table_set_value(node, beat, sizeof(*beat));
	return node ? STATUS_OK : error_set(err, STATUS_NO, "%s was not prepared", key);
}

static enum status memory_beat_read(struct store *store, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err)
{
	char key[STORE_KEY_MAX];
	beat_key(group, task, key);
	const struct node *node = table_find(&content_of(store)->beats, key);
	bool beaten = node && node->value;
	if (beaten)
		memcpy(beat, node->value, sizeof(*beat));
	return beaten ? STATUS_OK : error_set(err, STATUS_NO, "%s has not beaten", key);
}

static enum status memory_beats_remove(struct store *store, const char *group, struct error *err)
{
	char prefix[STORE_KEY_MAX];
	(void)err;
	snprintf(prefix, sizeof(prefix), "%s/", group);
	table_remove_under(&content_of(store)->beats, prefix);
	return STATUS_OK;
}

static enum status memory_check_private(struct store *store, struct error *err)
{
	(void)store, (void)err;
	return STATUS_OK;
}

static enum status memory_purge(struct store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, int64_t deadline,
	struct error *err)
{
	(void)deadline, (void)err;
	struct content *content = content_of(store);
	bool held = hold(content, compares, compare_count);
	if (held)
		table_remove_under(&content->keys, prefix);
	return held ? STATUS_OK : STATUS_NO;
}

const struct store_backend store_memory = {
	.scheme = "memory",
	.operations = 1024,
	.open = memory_open,
	.close = memory_close,
	.txn = memory_txn,
	.list = memory_list,
	.wait = memory_wait,
	.news = memory_news,
	.await_news = memory_await_news,
	.beats_prepare = memory_beats_prepare,
	.beat = memory_beat,
	.beat_read = memory_beat_read,
	.beats_remove = memory_beats_remove,
	.check_private = memory_check_private,
	.purge = memory_purge,
};
