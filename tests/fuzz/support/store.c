/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "store/backend.h"
#include "support/fuzz.h"

struct fuzz_store {
	struct store base;
	struct store_entry *entries; /* in the order of their keys, each once */
	size_t count;
	store_revision revision;
};

static int by_key(const void *a, const void *b)
{
	const struct store_entry *one = a, *other = b;
	int order = strcmp(one->key, other->key);
	return order ? order : one->revision < other->revision ? -1 : 1;
}

static const struct store_entry *find(const struct fuzz_store *store, const char *key)
{
	for (size_t i = 0; i < store->count; i++)
		if (!strcmp(store->entries[i].key, key))
			return &store->entries[i];
	return NULL;
}

static void add(struct store_answer *answer, const char *key, const struct store_entry *found)
{
	struct store_entry entry = {.key = fuzz_text(key, strlen(key))};
	if (found) {
		entry.value = fuzz_text(found->value, found->length);
		entry.length = found->length;
		entry.revision = found->revision;
	}
	answer->entries =
		reallocarray(answer->entries, answer->count + 1, sizeof(*answer->entries));
	FUZZ_HOLDS(answer->entries);
	answer->entries[answer->count++] = entry;
}

static enum status txn(struct store *base, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *err)
{
	const struct fuzz_store *store = (const struct fuzz_store *)base;
	(void)deadline;
	(void)err;
	answer->held = true;
	for (size_t i = 0; i < request->compare_count; i++) {
		const struct store_entry *found = find(store, request->compares[i].key);
		answer->held &= request->compares[i].revision == (found ? found->revision : 0);
	}
	const struct store_op *ops = answer->held ? request->then : request->otherwise;
	size_t count = answer->held ? request->then_count : request->otherwise_count;
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind == STORE_GET)
			add(answer, ops[i].key, find(store, ops[i].key));
	answer->revision = store->revision;
	return STATUS_OK;
}

static enum status list(struct store *base, const struct store_range *range, int64_t deadline,
	struct store_answer *answer, struct error *err)
{
	const struct fuzz_store *store = (const struct fuzz_store *)base;
	(void)deadline;
	(void)err;
	answer->revision = store->revision;
	for (size_t i = 0; i < store->count; i++) {
		const struct store_entry *entry = &store->entries[i];
		if (strncmp(entry->key, range->prefix, strlen(range->prefix)) != 0 ||
			(range->after && strcmp(entry->key, range->after) <= 0) ||
			entry->revision <= range->since)
			continue;
		if (answer->count == range->limit) {
			answer->more = true;
			break;
		}
		add(answer, entry->key, entry);
	}
	return STATUS_OK;
}

/* Something has always changed. */
static enum status wait_for(struct store *base, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err)
{
	(void)prefix;
	(void)deadline;
	(void)wake;
	(void)err;
	*since = ((const struct fuzz_store *)base)->revision;
	return STATUS_OK;
}

/* No process counts them. */
static uint32_t news(struct store *base, const char *group)
{
	(void)base;
	(void)group;
	return 0;
}

static enum status beat_read(struct store *base, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err)
{
	(void)base;
	(void)group;
	(void)task;
	(void)err;
	*beat = (struct store_beat){.token = 1, .sequence = 1};
	return STATUS_OK;
}

static void close_store(struct store *base)
{
	struct fuzz_store *store = (struct fuzz_store *)base;
	for (size_t i = 0; i < store->count; i++)
		store_entry_release(&store->entries[i]);
	free(store->entries);
	free(store);
}

static const struct store_backend backend = {.scheme = "fuzz",
	.operations = 2000,
	.close = close_store,
	.txn = txn,
	.list = list,
	.wait = wait_for,
	.news = news,
	.beat_read = beat_read};

/* Of equal keys only the newest stays. */
static void keep_newest(struct fuzz_store *store)
{
	size_t kept = 0;
	for (size_t i = 0; i < store->count; i++) {
		if (i + 1 < store->count &&
			!strcmp(store->entries[i].key, store->entries[i + 1].key))
			store_entry_release(&store->entries[i]);
		else
			store->entries[kept++] = store->entries[i];
	}
	store->count = kept;
}

struct store *fuzz_store(const uint8_t *data, size_t size)
{
	static char where[] = "fuzz";
	struct fuzz_store *store = calloc(1, sizeof(*store));
	FUZZ_HOLDS(store);
	store->base = (struct store){.backend = &backend, .where = where, .patience = 1000};
	for (char *line; (line = fuzz_next(&data, &size, '\n')); free(line)) {
		size_t key = strcspn(line, " ");
		const char *value = line[key] ? line + key + 1 : line + key;
		if (key == 0 || key > STORE_KEY_MAX)
			continue;
		store->entries =
			reallocarray(store->entries, store->count + 1, sizeof(*store->entries));
		FUZZ_HOLDS(store->entries);
		store->entries[store->count++] = (struct store_entry){.key = fuzz_text(line, key),
			.value = fuzz_text(value, strlen(value)),
			.length = strlen(value),
			.revision = ++store->revision};
	}
	if (store->count)
		qsort(store->entries, store->count, sizeof(*store->entries), by_key);
	keep_newest(store);
	return &store->base;
}
