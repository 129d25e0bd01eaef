/* SPDX-License-Identifier: MIT */
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/mounts.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "store/backend.h"

#define PATIENCE   30000 /* milliseconds */
#define LIST_LIMIT 1000000
#define TASKS_MAX  1000000

static const struct store_backend *backends[8] = {&store_sqlite, &store_etcd};
static size_t backend_count = 2;

void store_register(const struct store_backend *backend)
{
	if (backend_count == sizeof(backends) / sizeof(backends[0]))
		abort();
	backends[backend_count++] = backend;
}

static enum status find_backend(
	const char *scheme, const struct store_backend **backend, struct error *err)
{
	for (size_t i = 0; i < backend_count; i++)
		if (!strcmp(backends[i]->scheme, scheme)) {
			*backend = backends[i];
			return STATUS_OK;
		}
	return error_set(err, STATUS_USAGE,
		"unknown kind of store \"%s\"; write sqlite:PATH, or ./PATH for a file of that "
		"name",
		scheme);
}

/* Backends rely on an err that is not NULL. */
#define WITH_ERROR(err)                                                                            \
	struct error unasked;                                                                      \
	if (!(err))                                                                                \
	(err) = &unasked

enum status store_open(
	struct store **store, const char *url, unsigned flags, int64_t deadline, struct error *err)
{
	WITH_ERROR(err);
	struct store_url parsed;
	const struct store_backend *backend = NULL;
	struct store *opened = NULL;
	enum status status = url_parse(url, &parsed, err);
	if (status != STATUS_OK)
		return status;
	status = find_backend(parsed.scheme, &backend, err);
	if (status == STATUS_OK)
		status = mounts_check(err);
	if (status == STATUS_OK)
		status = backend->open(&opened, &parsed, flags, deadline, err);
	if (status == STATUS_OK) {
		opened->backend = backend;
		opened->flags = flags;
		opened->patience = PATIENCE;
		*store = opened;
	}
	url_release(&parsed);
	return status;
}

void store_close(struct store *store)
{
	if (store)
		store->backend->close(store);
}

void store_set_patience(struct store *store, int64_t milliseconds)
{
	store->patience = milliseconds;
}

enum status store_open_patient(struct store **store, const char *url, unsigned flags,
	int64_t milliseconds, struct error *err)
{
	enum status status = store_open(store, url, flags, clock_after(milliseconds), err);
	if (status == STATUS_OK)
		store_set_patience(*store, milliseconds);
	return status;
}

/* Not less than 1: a negative patience would be no limit. */
void store_set_deadline(struct store *store, int64_t deadline)
{
	store_set_patience(store, clock_later(deadline - clock_now(), 1));
}

int64_t store_asked_at(const struct store *store)
{
	return store->asked_at;
}

size_t store_operations(const struct store *store)
{
	return store->backend->operations;
}

const char *store_where(const struct store *store)
{
	return store->where;
}

const char *store_files(const struct store *store)
{
	return store->files;
}

enum status store_check_private(struct store *store, struct error *err)
{
	WITH_ERROR(err);
	return store->backend->check_private(store, err);
}

bool store_is_local(const struct store *store)
{
	return store->local;
}

void store_entry_release(struct store_entry *entry)
{
	free(entry->key);
	free(entry->value);
	*entry = (struct store_entry){0};
}

void store_answer_release(struct store_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++)
		store_entry_release(&answer->entries[i]);
	free(answer->entries);
	*answer = (struct store_answer){0};
}

static enum status check_key(const char *key, struct error *err)
{
	size_t length = strlen(key);
	if (length == 0)
		return error_set(err, STATUS_USAGE, "a key cannot be empty");
	if (length > STORE_KEY_MAX)
		return error_set(err, STATUS_USAGE,
			"key \"%.32s...\" has %zu bytes; at most %d are allowed", key, length,
			STORE_KEY_MAX);
	return STATUS_OK;
}

static enum status check_prefix(const char *prefix, struct error *err)
{
	return *prefix ? check_key(prefix, err) : STATUS_OK;
}

static enum status refuse_writing(const struct store *store, struct error *err)
{
	return error_set(err, STATUS_USAGE, "store %s was opened for reading only", store->where);
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each part of a group must be a valid name, so that no path leads out of the store. */
static enum status check_group(const char *group, struct error *err)
{
	char *copy = xstrdup(group), *rest = copy;
	enum status status = STATUS_OK;
	for (char *part; status == STATUS_OK && (part = strsep(&rest, "/"));)
		status = parse_name(part, "group of beats", err);
	free(copy);
	return status;
}

bool store_ops_change(const struct store_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind != STORE_GET)
			return true;
	return false;
}

bool store_request_changes(const struct store_request *request)
{
	return store_ops_change(request->then, request->then_count) ||
	       store_ops_change(request->otherwise, request->otherwise_count);
}

/* No transaction may change a key twice, because etcd refuses that. */
static enum status check_distinct(const struct store_op *ops, size_t count, struct error *err)
{
	const char **keys = xcalloc(count + 1, sizeof(*keys));
	size_t changed = 0;
	enum status status = STATUS_OK;
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind != STORE_GET)
			keys[changed++] = ops[i].key;
	qsort(keys, changed, sizeof(*keys), compare_keys);
	for (size_t i = 1; i < changed && status == STATUS_OK; i++)
		if (!strcmp(keys[i - 1], keys[i]))
			status = error_set(err, STATUS_USAGE,
				"key \"%.64s\" is changed twice in one transaction", keys[i]);
	free(keys);
	return status;
}

static enum status check_ops(
	const struct store *store, const struct store_op *ops, size_t count, struct error *err)
{
	enum status status = STATUS_OK;
	if (count > store->backend->operations)
		return error_set(err, STATUS_USAGE,
			"a transaction has %zu operations; at most %zu are allowed", count,
			store->backend->operations);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		const struct store_op *op = &ops[i];
		status = check_key(op->key, err);
		if (status != STATUS_OK || op->kind == STORE_GET)
			continue;
		if (store->flags & STORE_READ_ONLY)
			return refuse_writing(store, err);
		if (op->kind == STORE_PUT && op->length > STORE_VALUE_MAX)
			return error_set(err, STATUS_USAGE,
				"the value of key \"%.64s\" has %zu bytes; at most %d are allowed",
				op->key, op->length, STORE_VALUE_MAX);
	}
	return status == STATUS_OK ? check_distinct(ops, count, err) : status;
}

enum status store_txn(struct store *store, const struct store_request *request,
	struct store_answer *answer, struct error *err)
{
	WITH_ERROR(err);
	struct store_answer got = {.known = true};
	enum status status = STATUS_OK;
	if (request->compare_count > store->backend->operations)
		status = error_set(err, STATUS_USAGE,
			"a transaction has %zu compares; at most %zu are allowed",
			request->compare_count, store->backend->operations);
	for (size_t i = 0; i < request->compare_count && status == STATUS_OK; i++)
		status = check_key(request->compares[i].key, err);
	if (status == STATUS_OK)
		status = check_ops(store, request->then, request->then_count, err);
	if (status == STATUS_OK)
		status = check_ops(store, request->otherwise, request->otherwise_count, err);
	if (status == STATUS_OK && request->group)
		status = check_group(request->group, err);
	for (size_t i = 0; i < STORE_COUNTS && status == STATUS_OK; i++)
		if (request->count[i])
			status = check_prefix(request->count[i], err);
	store->asked_at = clock_now();
	if (status == STATUS_OK)
		status = store->backend->txn(
			store, request, clock_after(store->patience), &got, err);
	store->asked_at = 0;
	if (status != STATUS_OK) {
		bool known = got.known;
		store_answer_release(&got);
		answer->known = known;
		return status;
	}
	*answer = got;
	return STATUS_OK;
}

static enum status check_skip(const struct store_range *range, struct error *err)
{
	size_t count = 0;
	for (; range->skip && range->skip[count]; count++)
		if (!*range->skip[count] ||
			strlen(range->prefix) + strlen(range->skip[count]) > STORE_KEY_MAX)
			return error_set(err, STATUS_USAGE, "what is skipped cannot be \"%.32s\"",
				range->skip[count]);
	return count <= STORE_SKIP
		       ? STATUS_OK
		       : error_set(err, STATUS_USAGE, "at most %d may be skipped", STORE_SKIP);
}

enum status store_list(struct store *store, const struct store_range *range,
	struct store_answer *answer, struct error *err)
{
	WITH_ERROR(err);
	struct store_answer got = {0};
	struct store_range checked = *range;
	if (!checked.prefix)
		checked.prefix = "";
	if (checked.limit == 0 || checked.limit > LIST_LIMIT)
		checked.limit = LIST_LIMIT;
	enum status status = check_prefix(checked.prefix, err);
	if (status == STATUS_OK && checked.after)
		status = check_prefix(checked.after, err);
	if (status == STATUS_OK)
		status = check_skip(&checked, err);
	for (size_t i = 0; i < STORE_COUNTS && status == STATUS_OK; i++)
		if (checked.count[i])
			status = check_prefix(checked.count[i], err);
	store->asked_at = clock_now();
	if (status == STATUS_OK)
		status = store->backend->list(
			store, &checked, clock_after(store->patience), &got, err);
	store->asked_at = 0;
	if (status != STATUS_OK) {
		store_answer_release(&got);
		return status;
	}
	*answer = got;
	return STATUS_OK;
}

enum status store_wait(struct store *store, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err)
{
	WITH_ERROR(err);
	enum status status = check_prefix(prefix, err);
	if (status != STATUS_OK)
		return status;
	store->waited_since = *since;
	store->waited_group = 0;
	store->unchanged = 0;
	return store->backend->wait(store, prefix, since, deadline, wake, err);
}

uint32_t store_news(struct store *store, const char *group)
{
	struct error unused;
	return check_group(group, &unused) == STATUS_OK ? store->backend->news(store, group) : 0;
}

enum status store_await_news(struct store *store, struct store_awaited *awaited, int64_t deadline,
	int wake, struct error *err)
{
	WITH_ERROR(err);
	store_revision since = awaited->since;
	enum status status = check_group(awaited->group, err);
	if (status != STATUS_OK)
		return status;
	if (awaited->heard == 0) {
		status = store_wait(store, awaited->prefix, &since, deadline, wake, err);
		if (status == STATUS_OK)
			awaited->heard = store_news(store, awaited->group);
		return status;
	}
	uint64_t hash = XXH64(awaited->group, strlen(awaited->group), 1);
	bool again = store->waited_group == hash && store->waited_heard == awaited->heard &&
		     store->waited_since == awaited->since;
	if (!again)
		store->unchanged = 0;
	store->waited_since = awaited->since;
	store->waited_group = hash;
	store->waited_heard = awaited->heard;
	return store->backend->await_news(store, awaited, deadline, wake, err);
}

int64_t store_unchanged(const struct store *store, store_revision revision)
{
	return store->waited_since <= revision ? store->unchanged : 0;
}

enum status store_beats_prepare(
	struct store *store, const char *group, uint64_t tasks, struct error *err)
{
	WITH_ERROR(err);
	if (tasks > TASKS_MAX)
		return error_set(err, STATUS_USAGE, "%llu tasks: at most %d are allowed",
			(unsigned long long)tasks, TASKS_MAX);
	if (store->flags & STORE_READ_ONLY)
		return refuse_writing(store, err);
	enum status status = check_group(group, err);
	return status == STATUS_OK ? store->backend->beats_prepare(store, group, tasks, err)
				   : status;
}

enum status store_beats(struct store *store, const char *group, uint64_t first,
	const struct store_beat *beats, size_t count, struct error *err)
{
	WITH_ERROR(err);
	if (store->flags & STORE_READ_ONLY)
		return refuse_writing(store, err);
	enum status status = check_group(group, err);
	if (status != STATUS_OK)
		return status;
	if (store->backend->beats)
		return store->backend->beats(store, group, first, beats, count, err);
	for (size_t i = 0; i < count; i++) {
		enum status one = store->backend->beat(store, group, first + i, &beats[i], err);
		status = status == STATUS_OK ? one : status;
	}
	return status;
}

enum status store_beat(struct store *store, const char *group, uint64_t task,
	const struct store_beat *beat, struct error *err)
{
	return store_beats(store, group, task, beat, 1, err);
}

enum status store_beat_read(struct store *store, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err)
{
	WITH_ERROR(err);
	enum status status = check_group(group, err);
	return status == STATUS_OK ? store->backend->beat_read(store, group, task, beat, err)
				   : status;
}

/* Read the beats in one call of the backend. */
static void read_at_once(struct store *store, const char *group, uint64_t first,
	struct store_beat_reading *readings, size_t count)
{
	struct store_beat *beats = xcalloc(count + 1, sizeof(*beats));
	struct error unused;
	int64_t began = clock_now();
	enum status status = check_group(group, &unused);
	if (status == STATUS_OK)
		status = store->backend->beats_read(store, group, first, beats, count, &unused);
	int64_t took = clock_now() - began;
	for (size_t i = 0; i < count; i++)
		readings[i] = (struct store_beat_reading){
			.status = status == STATUS_OK && !beats[i].token ? STATUS_NO : status,
			.took = took,
			.beat = beats[i]};
	free(beats);
}

void store_beats_read(struct store *store, const char *group, uint64_t first,
	struct store_beat_reading *readings, size_t count)
{
	if (store->backend->beats_read) {
		read_at_once(store, group, first, readings, count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		int64_t began = clock_now();
		readings[i].status =
			store_beat_read(store, group, first + i, &readings[i].beat, NULL);
		readings[i].took = clock_now() - began;
	}
}

enum status store_beats_remove(struct store *store, const char *group, struct error *err)
{
	WITH_ERROR(err);
	if (store->flags & STORE_READ_ONLY)
		return refuse_writing(store, err);
	enum status status = check_group(group, err);
	return status == STATUS_OK ? store->backend->beats_remove(store, group, err) : status;
}

enum status store_purge(struct store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, struct error *err)
{
	WITH_ERROR(err);
	enum status status = check_key(prefix, err);
	for (size_t i = 0; i < compare_count && status == STATUS_OK; i++)
		status = check_key(compares[i].key, err);
	if (status == STATUS_OK && (store->flags & STORE_READ_ONLY))
		status = refuse_writing(store, err);
	if (status != STATUS_OK)
		return status;
	return store->backend->purge(
		store, prefix, compares, compare_count, clock_after(store->patience), err);
}

enum status store_run(struct store *store, struct store_operation *operation, struct error *err)
{
	WITH_ERROR(err);
	if (!store->backend->run)
		return error_set(err, STATUS_USAGE,
			"store %s keeps no tables: queues need a store on a filesystem; choose "
			"another --store",
			store->where);
	if (operation->write && (store->flags & STORE_READ_ONLY))
		return refuse_writing(store, err);
	store->asked_at = clock_now();
	enum status status =
		store->backend->run(store, operation, clock_after(store->patience), err);
	store->asked_at = 0;
	return status;
}

enum status store_get(
	struct store *store, const char *key, struct store_entry *entry, struct error *err)
{
	struct store_op get = {.kind = STORE_GET, .key = key};
	struct store_request request = {.then = &get, .then_count = 1};
	struct store_answer answer = {0};
	enum status status = store_txn(store, &request, &answer, err);
	if (status != STATUS_OK)
		return status;
	if (!answer.entries[0].value) {
		status = error_set(err, STATUS_NO, "there is no key \"%s\"", key);
	} else {
		*entry = answer.entries[0];
		answer.entries[0] = (struct store_entry){0};
	}
	store_answer_release(&answer);
	return status;
}

enum status store_put_if_absent(struct store *store, const char *key, const char *value,
	struct store_entry *existing, struct error *err)
{
	struct store_compare absent = {.key = key};
	struct store_op put = {
		.kind = STORE_PUT, .key = key, .value = value, .length = strlen(value)};
	struct store_op get = {.kind = STORE_GET, .key = key};
	struct store_request request = {.compares = &absent,
		.compare_count = 1,
		.then = &put,
		.then_count = 1,
		.otherwise = &get,
		.otherwise_count = 1};
	struct store_answer answer = {0};
	enum status status = store_txn(store, &request, &answer, err);
	if (status != STATUS_OK)
		return status;
	if (!answer.held) {
		status = error_set(err, STATUS_NO, "key \"%s\" is there already", key);
		if (existing) {
			*existing = answer.entries[0];
			answer.entries[0] = (struct store_entry){0};
		}
	}
	store_answer_release(&answer);
	return status;
}

enum status store_put(struct store *store, const char *key, const char *value,
	store_revision *revision, struct error *err)
{
	struct store_op put = {
		.kind = STORE_PUT, .key = key, .value = value, .length = strlen(value)};
	struct store_request request = {.then = &put, .then_count = 1};
	struct store_answer answer = {0};
	enum status status = store_txn(store, &request, &answer, err);
	if (status == STATUS_OK && revision)
		*revision = answer.revision;
	store_answer_release(&answer);
	return status;
}

enum status store_delete(struct store *store, const char *key, struct error *err)
{
	struct store_op delete = {.kind = STORE_DELETE, .key = key};
	struct store_request request = {.then = &delete, .then_count = 1};
	struct store_answer answer = {0};
	enum status status = store_txn(store, &request, &answer, err);
	store_answer_release(&answer);
	return status;
}
