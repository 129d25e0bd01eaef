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
#include "support/backends/shim.h"

#define STORES 256

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
	int *bells; /* of the handles that wait */
	size_t waiting, room;
};

struct memory_store {
	struct store base;
	struct content *content;
	bool shimmed;
	int bell;	       /* -1: it has not waited yet */
	int64_t looked;	       /* when its last wait saw no change; 0: never */
	store_revision newest; /* of the store, then */
};

static const struct memory_observer *observer;
static struct shim *shim;

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

static void *copy_bytes(const void *bytes, size_t length)
{
	char *copy = xcalloc(1, length + 1);
	if (length)
		memcpy(copy, bytes, length);
	return copy;
}

/* value: NULL: it has none any more. */
static void set_value(struct node *node, const void *value, size_t length)
{
	char *copy = value ? copy_bytes(value, length) : NULL;
	free(node->value);
	node->value = copy;
	node->length = length;
}

/* Whether a key is below a prefix; one that ends with a slash leaves itself out. */
static bool is_below(const char *key, const char *prefix)
{
	size_t length = strlen(prefix);
	return !strncmp(key, prefix, length) &&
	       !(length && prefix[length - 1] == '/' && !key[length]);
}

/* The index of the first node below prefix, and behind the key `after` if that is not NULL. */
static size_t first_below(const struct table *table, const char *prefix, const char *after)
{
	bool later = after && strcmp(after, prefix) >= 0;
	size_t at = table_lower_bound(table, later ? after : prefix);
	if (at < table->count &&
		(later ? !strcmp(table->nodes[at]->key, after)
		       : !strcmp(table->nodes[at]->key, prefix) && !is_below(prefix, prefix)))
		at++;
	return at;
}

/* The node at an index; NULL: those below prefix have ended. */
static struct node *node_below(const struct table *table, const char *prefix, size_t at)
{
	return at < table->count && is_below(table->nodes[at]->key, prefix) ? table->nodes[at]
									    : NULL;
}

static void table_remove_below(struct table *table, const char *prefix)
{
	size_t kept = 0;
	for (size_t i = 0; i < table->count; i++) {
		struct node *node = table->nodes[i];
		if (!is_below(node->key, prefix)) {
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
		table_remove_below(&content->keys, "");
		table_remove_below(&content->beats, "");
		free(content->keys.nodes);
		free(content->beats.nodes);
		free(content->bells);
		free(content->name);
		free(content);
	}
}

static struct memory_store *handle_of(struct store *store)
{
	return (struct memory_store *)store;
}

static struct content *content_of(struct store *store)
{
	return handle_of(store)->content;
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

/* ---- What the shim makes of a call ---- */

/* Count the call, and let the time before it pass. */
static struct shim_fate begin(bool shimmed, enum shim_call call, int64_t deadline)
{
	struct shim_fate fate = {0};
	if (!shimmed)
		return fate;
	shim->calls[call]++;
	shim->decide(shim->context, call, deadline, &fate);
	if (fate.before > 0)
		shim->sleep(shim->context, fate.before);
	return fate;
}

/* Let the time after the call pass; its status as the caller sees it. */
static enum status end(const struct shim_fate *fate, enum status status, struct error *err)
{
	if (fate->after > 0)
		shim->sleep(shim->context, fate->after);
	if (fate->loss == SHIM_NOTHING_LOST || fate->loss == SHIM_PRETENDED)
		return status;
	return error_set(err, STATUS_TEMPORARY, "the shim has lost the %s",
		fate->loss == SHIM_ANSWER_LOST ? "answer" : "request");
}

static bool is_done(const struct shim_fate *fate)
{
	return fate->loss == SHIM_NOTHING_LOST || fate->loss == SHIM_ANSWER_LOST;
}

static void count_bytes(bool shimmed, const struct store_answer *answer)
{
	size_t bytes = 0;
	if (!shimmed || !shim->answered)
		return;
	for (size_t i = 0; i < answer->count; i++)
		bytes += strlen(answer->entries[i].key) + answer->entries[i].length;
	shim->answered(shim->context, bytes);
}

/* ---- Opening ---- */

static enum status memory_open(struct store **opened, const struct store_url *url, unsigned flags,
	int64_t deadline, struct error *err)
{
	bool shimmed = !strcmp(url->scheme, "shim");
	bool create = (flags & STORE_CREATE) && !(flags & STORE_READ_ONLY);
	const char *name = url->path + (shimmed ? strlen("memory:") : 0);
	struct content *content = NULL;
	enum status status = STATUS_OK;
	if (url->count)
		return error_set(err, STATUS_USAGE, "store memory:%s: unknown parameter %s", name,
			url->parameters[0].name);
	struct shim_fate fate = begin(shimmed, SHIM_OPEN, deadline);
	if (is_done(&fate) && !(content = find_content(name, create)))
		status = error_set(err, create ? STATUS_TEMPORARY : STATUS_NO,
			"store memory:%s is not there", name);
	status = end(&fate, status, err);
	if (status != STATUS_OK)
		return status;
	struct memory_store *store = xcalloc(1, sizeof(*store));
	store->content = content;
	store->shimmed = shimmed;
	store->base.where = xstrdup(name);
	store->base.files = xprintf("%s.queue", name);
	store->base.local = true;
	store->bell = -1;
	*opened = &store->base;
	return STATUS_OK;
}

static void memory_close(struct store *base)
{
	struct memory_store *store = handle_of(base);
	if (store->bell >= 0)
		close(store->bell);
	free(store->base.where);
	free(store->base.files);
	free(store);
}

/* ---- Transactions and lists ---- */

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

static struct store_entry copy_entry(const char *key, const struct node *node)
{
	struct store_entry entry = {.key = xstrdup(key)};
	if (node && node->value) {
		entry.value = copy_bytes(node->value, node->length);
		entry.length = node->length;
		entry.revision = node->revision;
	}
	return entry;
}

static void run(struct content *content, const struct store_op *ops, size_t count,
	struct store_answer *answer)
{
	bool changed = false;
	answer->entries = xcalloc(count + 1, sizeof(*answer->entries));
	for (size_t i = 0; i < count; i++) {
		struct node *node = table_find(&content->keys, ops[i].key);
		if (ops[i].kind == STORE_GET) {
			answer->entries[answer->count++] = copy_entry(ops[i].key, node);
			continue;
		}
		if (ops[i].kind == STORE_DELETE && (!node || !node->value))
			continue;
		node = table_insert(&content->keys, ops[i].key);
		if (ops[i].kind == STORE_PUT)
			set_value(node, ops[i].value, ops[i].length);
		else
			set_value(node, NULL, 0);
		node->revision = content->revision + 1;
		changed = true;
	}
	content->revision += changed;
	answer->revision = content->revision;
	if (changed && observer)
		observer->changed(observer->context, ops, count, content->revision);
}

static void news_key(const char *group, char key[STORE_KEY_MAX])
{
	snprintf(key, STORE_KEY_MAX, "%s/news", group);
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
		set_value(node, &count, sizeof(count));
	return count;
}

/* How many keys there are below each prefix. */
static void count_below(const struct content *content, const char *const prefixes[STORE_COUNTS],
	struct store_answer *answer)
{
	const struct table *table = &content->keys;
	for (size_t k = 0; k < STORE_COUNTS; k++) {
		const char *prefix = prefixes[k];
		const struct node *node;
		for (size_t i = prefix ? first_below(table, prefix, NULL) : table->count;
			prefix && (node = node_below(table, prefix, i)); i++)
			answer->counted[k] += node->value != NULL;
	}
}

static void do_transaction(
	struct content *content, const struct store_request *request, struct store_answer *answer)
{
	store_revision before = content->revision;
	answer->held = hold(content, request->compares, request->compare_count);
	if (answer->held)
		run(content, request->then, request->then_count, answer);
	else
		run(content, request->otherwise, request->otherwise_count, answer);
	if (request->group)
		answer->news = count_news(
			content, request->group, request->news && content->revision > before);
	count_below(content, request->count, answer);
	for (size_t i = 0; content->revision > before && i < content->waiting; i++)
		bell_ring(content->bells[i]);
}

/* A transaction that takes effect after it was given up: the request and all that it names. */
struct late {
	struct content *content;
	struct store_request request;
	void **copies;
	size_t count, capacity;
};

static void *keep(struct late *late, const void *bytes, size_t length)
{
	late->copies = xgrow(late->copies, late->count, &late->capacity, sizeof(*late->copies));
	return late->copies[late->count++] = copy_bytes(bytes, length);
}

static const char *keep_text(struct late *late, const char *text)
{
	return text ? keep(late, text, strlen(text)) : NULL;
}

static const struct store_op *keep_ops(struct late *late, const struct store_op *ops, size_t count)
{
	struct store_op *copy = keep(late, ops, count * sizeof(*ops));
	for (size_t i = 0; i < count; i++) {
		copy[i].key = keep_text(late, ops[i].key);
		if (ops[i].value)
			copy[i].value = keep(late, ops[i].value, ops[i].length);
	}
	return copy;
}

static void run_late(void *what)
{
	struct late *late = what;
	struct store_answer answer = {0};
	do_transaction(late->content, &late->request, &answer);
	store_answer_release(&answer);
	while (late->count)
		free(late->copies[--late->count]);
	free(late->copies);
	free(late);
}

static void do_later(struct content *content, const struct store_request *request, int64_t after)
{
	struct late *late = xcalloc(1, sizeof(*late));
	struct store_request *copy = &late->request;
	late->content = content;
	*copy = *request;
	struct store_compare *compares =
		keep(late, copy->compares, copy->compare_count * sizeof(*compares));
	for (size_t i = 0; i < copy->compare_count; i++)
		compares[i].key = keep_text(late, compares[i].key);
	copy->compares = compares;
	copy->then = keep_ops(late, copy->then, copy->then_count);
	copy->otherwise = keep_ops(late, copy->otherwise, copy->otherwise_count);
	copy->group = keep_text(late, copy->group);
	for (size_t i = 0; i < STORE_COUNTS; i++)
		copy->count[i] = keep_text(late, copy->count[i]);
	shim->later(shim->context, after, run_late, late);
}

static enum status memory_txn(struct store *store, const struct store_request *request,
	int64_t deadline, struct store_answer *answer, struct error *err)
{
	bool writes = store_request_changes(request), shimmed = handle_of(store)->shimmed;
	struct shim_fate fate = begin(shimmed, writes ? SHIM_TXN : SHIM_READ, deadline);
	struct store_request asked = *request;
	if (shimmed && shim->alter)
		shim->alter(shim->context, &asked);
	if (is_done(&fate))
		do_transaction(content_of(store), &asked, answer);
	if (fate.loss == SHIM_LATE && writes)
		do_later(content_of(store), &asked, fate.after + fate.late);
	count_bytes(shimmed, answer);
	answer->held |= fate.loss == SHIM_PRETENDED;
	answer->known = fate.loss == SHIM_REQUEST_LOST || fate.loss == SHIM_PRETENDED ||
			fate.loss == SHIM_NOTHING_LOST;
	return end(&fate, STATUS_OK, err);
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
	const struct content *content = content_of(store);
	struct shim_fate fate = begin(handle_of(store)->shimmed, SHIM_READ, deadline);
	const struct table *table = &content->keys;
	size_t capacity = 0, i = first_below(table, range->prefix, range->after);
	const struct node *node;
	for (; is_done(&fate) && (node = node_below(table, range->prefix, i)); i++) {
		if (!node->value || node->revision <= range->since || is_skipped(range, node->key))
			continue;
		answer->more = answer->count == range->limit;
		if (answer->more)
			break;
		answer->entries =
			xgrow(answer->entries, answer->count, &capacity, sizeof(*answer->entries));
		answer->entries[answer->count++] = copy_entry(node->key, node);
	}
	if (is_done(&fate)) {
		count_below(content, range->count, answer);
		answer->revision = content->revision;
	}
	count_bytes(handle_of(store)->shimmed, answer);
	return end(&fate, STATUS_OK, err);
}

/* ---- Waiting ---- */

/* What is waited for: a change below a prefix, or news. */
struct look {
	bool (*has_come)(struct memory_store *store, const struct look *look, bool woken);
	const char *prefix; /* of a change: */
	store_revision *since;
	struct store_awaited *awaited; /* of news */
};

/* woken: this is the last look, and nothing is learned of it. */
static bool has_change(struct memory_store *store, const struct look *look, bool woken)
{
	const struct content *content = store->content;
	store_revision since = *look->since;
	const struct node *node;
	bool changed = false;
	for (size_t i = first_below(&content->keys, look->prefix, NULL);
		!changed && content->revision > since &&
		(node = node_below(&content->keys, look->prefix, i));
		i++)
		changed = node->revision > since;
	if (!woken)
		*look->since = content->revision;
	if (!changed) {
		store->looked = clock_now();
		store->newest = content->revision;
	}
	if (store->looked && (!changed || since >= store->newest))
		store->base.unchanged = store->looked;
	return changed;
}

static bool has_news(struct memory_store *store, const struct look *look, bool woken)
{
	uint32_t count = count_news(store->content, look->awaited->group, false);
	bool more = count != look->awaited->heard;
	if (!more)
		store->base.unchanged = clock_now();
	if (more && !woken)
		look->awaited->heard = count;
	return more;
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

/* Until it has come, deadline, or wake is readable (STATUS_NO). The bell rings at every change. */
static enum status look_until(
	struct memory_store *store, const struct look *look, int64_t deadline, int wake)
{
	struct content *content = store->content;
	enum status status;
	bool woken = descriptor_is_ready(wake);
	if (store->bell < 0)
		store->bell = bell_open();
	content->bells =
		xgrow(content->bells, content->waiting, &content->room, sizeof(*content->bells));
	content->bells[content->waiting++] = store->bell;
	for (;;) {
		bool come = look->has_come(store, look, woken);
		status = woken ? STATUS_NO : come ? STATUS_OK : STATUS_TIMEOUT;
		if (status != STATUS_TIMEOUT || clock_now() >= deadline)
			break;
		woken = sleep_until(store, deadline, wake);
	}
	for (size_t i = 0; i < content->waiting; i++)
		if (content->bells[i] == store->bell) {
			content->bells[i] = content->bells[--content->waiting];
			break;
		}
	return status;
}

static bool is_readable_by(int descriptor, int64_t deadline)
{
	struct pollfd polled = {.fd = descriptor, .events = POLLIN};
	return poll(&polled, 1, clock_poll_timeout(deadline)) > 0;
}

/* In slices, each of which has a fate; what has come takes its time to be seen. */
static enum status wait_for(
	struct store *base, const struct look *look, int64_t deadline, int wake, struct error *err)
{
	struct memory_store *store = handle_of(base);
	const store_revision since = look->since ? *look->since : 0;
	const uint32_t heard = look->awaited ? look->awaited->heard : 0;
	for (;;) {
		int64_t until = store->shimmed ? clock_after(shim->slice) : deadline;
		until = until < deadline ? until : deadline;
		struct shim_fate fate = begin(store->shimmed, SHIM_WAIT, until);
		enum status status = STATUS_TIMEOUT;
		if (fate.loss == SHIM_UNSEEN) {
			fate.loss = SHIM_NOTHING_LOST;
			if (is_readable_by(wake, until))
				status = STATUS_NO;
		} else if (is_done(&fate)) {
			status = look_until(store, look, until, wake);
		}
		if (fate.loss == SHIM_NOTHING_LOST && status == STATUS_TIMEOUT && until < deadline)
			continue;
		if (status == STATUS_OK && fate.after > 0 &&
			is_readable_by(wake, clock_after(fate.after / 1000 + 1))) {
			status = STATUS_NO;
			if (look->awaited)
				look->awaited->heard = heard;
			else
				*look->since = since;
		}
		fate.after = 0;
		return end(&fate, status, err);
	}
}

static enum status memory_wait(struct store *store, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err)
{
	const struct look look = {.has_come = has_change, .prefix = prefix, .since = since};
	return wait_for(store, &look, deadline, wake, err);
}

static enum status memory_await_news(struct store *store, struct store_awaited *awaited,
	int64_t deadline, int wake, struct error *err)
{
	const struct look look = {.has_come = has_news, .awaited = awaited};
	return wait_for(store, &look, deadline, wake, err);
}

static uint32_t memory_news(struct store *store, const char *group)
{
	struct shim_fate fate = begin(handle_of(store)->shimmed, SHIM_BEAT_READ, CLOCK_NEVER);
	uint32_t count = is_done(&fate) ? count_news(content_of(store), group, false) : 0;
	return end(&fate, STATUS_OK, NULL) == STATUS_OK ? count : 0;
}

/* ---- Beats ---- */

static void beat_key(const char *group, uint64_t task, char key[STORE_KEY_MAX])
{
	snprintf(key, STORE_KEY_MAX, "%s/%020llu", group, (unsigned long long)task);
}

static enum status memory_beats_prepare(
	struct store *store, const char *group, uint64_t tasks, struct error *err)
{
	struct shim_fate fate = begin(handle_of(store)->shimmed, SHIM_OTHER, CLOCK_NEVER);
	struct table *beats = &content_of(store)->beats;
	char key[STORE_KEY_MAX];
	for (uint64_t i = 0; is_done(&fate) && i < tasks; i++) {
		beat_key(group, i, key);
		(void)table_insert(beats, key);
	}
	news_key(group, key);
	struct node *news = is_done(&fate) ? table_insert(beats, key) : NULL;
	if (news && !news->value)
		set_value(news, &(uint32_t){1}, sizeof(uint32_t));
	return end(&fate, STATUS_OK, err);
}

static enum status memory_beat(struct store *store, const char *group, uint64_t task,
	const struct store_beat *beat, struct error *err)
{
	struct shim_fate fate = begin(handle_of(store)->shimmed, SHIM_BEAT, CLOCK_NEVER);
	enum status status = STATUS_OK;
	char key[STORE_KEY_MAX];
	beat_key(group, task, key);
	struct node *node = table_find(&content_of(store)->beats, key);
	if (is_done(&fate) && node)
		set_value(node, beat, sizeof(*beat));
	else if (is_done(&fate))
		status = error_set(err, STATUS_NO, "%s was not prepared", key);
	return end(&fate, status, err);
}

static enum status memory_beat_read(struct store *store, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err)
{
	struct shim_fate fate = begin(handle_of(store)->shimmed, SHIM_BEAT_READ, CLOCK_NEVER);
	enum status status = STATUS_OK;
	char key[STORE_KEY_MAX];
	beat_key(group, task, key);
	const struct node *node = table_find(&content_of(store)->beats, key);
	if (is_done(&fate) && node && node->value)
		memcpy(beat, node->value, sizeof(*beat));
	else if (is_done(&fate))
		status = error_set(err, STATUS_NO, "%s has not beaten", key);
	return end(&fate, status, err);
}

static enum status memory_beats_remove(struct store *store, const char *group, struct error *err)
{
	struct shim_fate fate = begin(handle_of(store)->shimmed, SHIM_OTHER, CLOCK_NEVER);
	char prefix[STORE_KEY_MAX];
	snprintf(prefix, sizeof(prefix), "%s/", group);
	if (is_done(&fate))
		table_remove_below(&content_of(store)->beats, prefix);
	return end(&fate, STATUS_OK, err);
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
	struct shim_fate fate = begin(handle_of(store)->shimmed, SHIM_OTHER, deadline);
	struct content *content = content_of(store);
	enum status status = STATUS_OK;
	if (is_done(&fate) && !hold(content, compares, compare_count))
		status = STATUS_NO;
	else if (is_done(&fate))
		table_remove_below(&content->keys, prefix);
	return end(&fate, status, err);
}

#define FUNCTIONS                                                                                  \
	.operations = 1024, .open = memory_open, .close = memory_close, .txn = memory_txn,         \
	.list = memory_list, .wait = memory_wait, .news = memory_news,                             \
	.await_news = memory_await_news, .beats_prepare = memory_beats_prepare,                    \
	.beat = memory_beat, .beat_read = memory_beat_read, .beats_remove = memory_beats_remove,   \
	.check_private = memory_check_private, .purge = memory_purge

const struct store_backend store_memory = {.scheme = "memory", FUNCTIONS};
static const struct store_backend store_shim = {.scheme = "shim", FUNCTIONS};

void shim_install(struct shim *chosen)
{
	if (!shim)
		store_register(&store_shim);
	shim = chosen;
}
