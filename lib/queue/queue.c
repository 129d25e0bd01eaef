/* SPDX-License-Identifier: MIT */
#include "queue/queue.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/parse.h"
#include "base/xalloc.h"

enum status queue_open(struct queue *queue, struct store *store, const char *name,
	const char *files, struct error *err)
{
	struct queue made = {.store = store, .tallied = -1, .who = "@clients"};
	enum status status = parse_name(name, "queue", err);
	if (status != STATUS_OK)
		return status;
	if (!files && !store_files(store))
		return error_set(err, STATUS_USAGE,
			"store %s has no place for long outputs: add ?files=DIR to its URL, or give "
			"--files DIR",
			store_where(store));
	snprintf(made.name, sizeof(made.name), "%s", name);
	snprintf(made.prefix, sizeof(made.prefix), "queue/%s/", name);
	made.files = files ? xstrdup(files) : xprintf("%s/%s", store_files(store), name);
	*queue = made;
	return STATUS_OK;
}

void queue_release(struct queue *queue)
{
	free(queue->files);
	*queue = (struct queue){0};
}

void queue_key(const struct queue *queue, char key[QUEUE_KEY_MAX], const char *format, ...)
{
	va_list list;
	int length = snprintf(key, QUEUE_KEY_MAX, "%s", queue->prefix);
	va_start(list, format);
	vsnprintf(key + length, QUEUE_KEY_MAX - (size_t)length, format, list);
	va_end(list);
}

void queue_key_waiting(
	const struct queue *queue, char key[QUEUE_KEY_MAX], int priority, uint64_t id)
{
	queue_key(queue, key, "wait/%04d/%010" PRIu64, QUEUE_PRIORITY_MAX - priority, id);
}

void queue_key_at(const struct queue *queue, char key[QUEUE_KEY_MAX], const char *what, uint64_t id)
{
	queue_key(queue, key, "%s/%010" PRIu64, what, id);
}

enum status queue_list(const struct queue *queue, const char *what, struct store_range range,
	struct store_answer *answer, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	queue_key(queue, prefix, "%s/", what);
	range.prefix = prefix;
	return store_list(queue->store, &range, answer, err);
}

enum status queue_get(const struct queue *queue, const char *key, const struct queue_record *kind,
	void *record, store_revision *revision, struct error *err)
{
	struct store_entry entry = {0};
	enum status status = store_get(queue->store, key, &entry, err);
	if (status == STATUS_OK)
		status = queue_read(kind, &entry, record, err);
	if (revision)
		*revision = entry.revision;
	store_entry_release(&entry);
	return status;
}

void queue_draw_token(char token[17])
{
	uint64_t number = 0;
	/* For 8 bytes getrandom fails only if a signal interrupts it. */
	while (getrandom(&number, sizeof(number), 0) != sizeof(number) || number == 0)
		;
	snprintf(token, 17, "%016" PRIx64, number);
}

enum status queue_count(struct queue *queue, struct queue_count *count, struct error *err)
{
	struct queue_tally all = {0}, one;
	struct store_answer answer = {0};
	enum status status = queue_list(queue, "count", (struct store_range){0}, &answer, err);
	for (size_t i = 0; status == STATUS_OK && i < answer.count; i++) {
		const struct store_entry *entry = &answer.entries[i];
		status = queue_read(&queue_tally_record, entry, &one, err);
		if (status == STATUS_OK)
			queue_tally_add(&all, &one);
	}
	if (status == STATUS_OK) {
		queue_tally_count(&all, count);
		count->revision = answer.revision;
	}
	store_answer_release(&answer);
	return status;
}

enum status queue_settings_get(
	struct queue *queue, struct queue_settings *settings, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	*settings = (struct queue_settings){0};
	queue_key(queue, key, "settings");
	enum status status = queue_get(queue, key, &queue_settings_record, settings, NULL, err);
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status queue_settings_put(
	struct queue *queue, const struct queue_settings *settings, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct json_object *object = queue_write(&queue_settings_record, settings);
	queue_key(queue, key, "settings");
	enum status status = store_put(queue->store, key, json_line(object), NULL, err);
	json_object_put(object);
	return status;
}
