/* SPDX-License-Identifier: MIT */
/* Open a queue, schedule commands, keep the descriptions of resources. */
#include "queue/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "queue/spec.h"
#include "queue/sql.h"

enum status queue_open(struct queue *queue, struct store *store, const char *name,
	const char *files, struct error *err)
{
	enum status status = parse_name(name, "queue", err);
	if (status != STATUS_OK)
		return status;
	if (!store_files(store) && !files)
		return error_set(err, STATUS_USAGE,
			"queues need a store on a filesystem, and %s is none: choose another"
			" --store",
			store_where(store));
	*queue = (struct queue){.store = store};
	snprintf(queue->name, sizeof(queue->name), "%s", name);
	queue->files = files ? xstrdup(files) : xprintf("%s/%s", store_files(store), name);
	return STATUS_OK;
}

void queue_release(struct queue *queue)
{
	free(queue->files);
	queue->files = NULL;
}

void queue_draw_token(char token[QUEUE_TOKEN])
{
	uint64_t number = 0;
	while (!number)
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			number = 0;
	snprintf(token, QUEUE_TOKEN, "%016" PRIx64, number);
}

/* ---- Schedule ---- */

struct scheduling {
	struct queue_item *items;
	size_t count;
	struct queue_schedule *how;
	const char *key; /* in the table once: the name, or "call NONCE", which no name can be */
	uint64_t number; /* of the first item there */
	size_t first;	 /* items before it were scheduled by an earlier call */
	/* What they are after, and has not succeeded. */
	struct parse_numbers open;
	uint64_t because; /* one of them has failed or was cancelled: the command that failed */
	bool broken;	  /* ... so these are cancelled */
	uint64_t absent;
};

/* Give the items the ids that earlier calls have given them. */
static void find_earlier(struct sql *s, struct scheduling *x)
{
	x->first = 0;
	while (x->first < x->count) {
		int64_t id = sql_number(s,
			"SELECT id + ?3 - number FROM once WHERE queue=?1 AND key=?2"
			" AND number<=?3 AND ?3<number+count",
			SQL(x->key), SQL(x->number + x->first));
		if (!id)
			return;
		x->items[x->first++].id = (uint64_t)id;
	}
}

static void look_at_one(struct sql *s, struct scheduling *x, uint64_t id)
{
	sqlite3_stmt *rows = sql_rows(s,
		"SELECT state, coalesce(because, id) FROM command WHERE queue=?1 AND id=?2",
		SQL(id));
	if (!sql_next(s, rows)) {
		x->absent = x->absent ? x->absent : id;
		return;
	}
	enum queue_state state = sql_state(rows, 0);
	if (state > QUEUE_SUCCEEDED && !x->broken) {
		x->broken = true;
		x->because = sql_unsigned(rows, 1);
	}
	if (state != QUEUE_SUCCEEDED)
		sql_ids_add(&x->open, id);
	sqlite3_reset(rows);
}

static void insert(struct sql *s, const struct scheduling *x, size_t index, uint64_t id)
{
	struct queue_item *item = &x->items[index];
	struct json_object *json = spec_write_item(item);
	item->id = id;
	sql_do(s,
		"INSERT INTO command(queue, id, state, priority, needs, tag, halt, spec)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
		SQL(id), SQL(x->open.count ? "blocked" : "waiting"), SQL(item->priority),
		SQL(item->needs), SQL(item->tag), SQL(queue_halt_word(item->halt)),
		SQL(json_line(json)));
	json_object_put(json);
	for (size_t i = 0; i < x->open.count; i++)
		sql_do(s, "INSERT OR IGNORE INTO after(queue, needs, id) VALUES(?1, ?2, ?3)",
			SQL(x->open.items[i]), SQL(id));
	if (x->broken)
		sql_over(s, id, QUEUE_CANCELLED, x->because, NULL);
}

/* Whether the new commands do not fit. A call fits into an empty queue, however many it has. */
static bool is_full(struct sql *s, const struct scheduling *x)
{
	uint64_t limit = x->how->limit, count = x->count - x->first;
	if (!limit)
		return false;
	uint64_t waiting = (uint64_t)sql_number(s,
		"SELECT count(*) FROM (SELECT 1 FROM command WHERE queue=?1"
		" AND state IN ('waiting', 'blocked') LIMIT ?2)",
		SQL(limit));
	return waiting && waiting + count > limit;
}

static enum status schedule(struct sql *s, void *context, struct error *err)
{
	struct scheduling *x = context;
	x->open.count = 0;
	x->absent = 0;
	x->broken = false;
	find_earlier(s, x);
	size_t count = x->count - x->first;
	if (!count)
		return STATUS_OK;
	if (s->now.failure)
		return error_set(
			err, STATUS_BROKEN, "a command has failed, and nobody was told yet");
	if (is_full(s, x))
		return STATUS_NO;
	for (size_t i = 0; i < x->how->after_count; i++)
		look_at_one(s, x, x->how->after[i]);
	if (x->absent)
		return error_set(err, STATUS_USAGE,
			"--after: there is no command %" PRIu64 " in this queue", x->absent);
	if (x->open.count > QUEUE_AFTER_MAX / count)
		return error_set(err, STATUS_USAGE,
			"%zu commands after %zu others each: at most %d such pairs at a time",
			count, x->open.count, QUEUE_AFTER_MAX);
	uint64_t id = s->now.next;
	for (size_t i = 0; i < count; i++)
		insert(s, x, x->first + i, id + i);
	s->now.next += count;
	sql_do(s, "INSERT INTO once(queue, key, number, id, count) VALUES(?1, ?2, ?3, ?4, ?5)",
		SQL(x->key), SQL(x->number + x->first), SQL(id), SQL(count));
	s->woken[QUEUE_WORK] = true;
	return STATUS_OK;
}

enum status queue_schedule(struct queue *queue, struct queue_item *items, size_t count,
	struct queue_schedule *how, struct error *err)
{
	char call[8 + QUEUE_TOKEN];
	struct scheduling x = {.items = items, .count = count, .how = how};
	for (size_t i = 0; i < count; i++)
		if (spec_bytes(&items[i]) > QUEUE_ITEM_MAX)
			return error_set(err, STATUS_USAGE,
				"a command with its variables has more than %d bytes: put long "
				"arguments into a file",
				QUEUE_ITEM_MAX);
	if (!*how->nonce)
		queue_draw_token(how->nonce);
	snprintf(call, sizeof(call), "call %s", how->nonce);
	x.key = how->once ? how->once : call;
	x.number = how->once ? how->number : 0;
	enum status status = sql_call(queue, true, schedule, &x, err);
	if (!status_is_error(status))
		*how->nonce = '\0';
	free(x.open.items);
	return status;
}

/* ---- Resources ---- */

struct resource {
	char name[80];	 /* of the setting */
	const char *put; /* NULL: it is only read */
	char *got;
};

static enum status visit_resource(struct sql *s, void *context, struct error *err)
{
	(void)err;
	struct resource *resource = context;
	if (resource->put)
		sql_do(s, "INSERT OR REPLACE INTO setting(queue, name, value) VALUES(?1, ?2, ?3)",
			SQL(resource->name), SQL(resource->put));
	sqlite3_stmt *rows = sql_rows(
		s, "SELECT value FROM setting WHERE queue=?1 AND name=?2", SQL(resource->name));
	free(resource->got);
	resource->got = sql_next(s, rows) ? xstrdup(sql_text(rows, 0)) : NULL;
	sqlite3_reset(rows);
	return resource->got ? STATUS_OK : STATUS_NO;
}

enum status queue_resource_put(
	struct queue *queue, const char *name, const struct queue_item *item, struct error *err)
{
	struct json_object *json = spec_write_item(item);
	struct resource resource = {.put = json_line(json)};
	snprintf(resource.name, sizeof(resource.name), "resource %s", name);
	enum status status = sql_call(queue, true, visit_resource, &resource, err);
	free(resource.got);
	json_object_put(json);
	return status;
}

enum status queue_resource_get(
	struct queue *queue, const char *name, struct queue_item *item, struct error *err)
{
	struct resource resource = {0};
	*item = (struct queue_item){0};
	snprintf(resource.name, sizeof(resource.name), "resource %s", name);
	enum status status = sql_call(queue, false, visit_resource, &resource, err);
	if (status == STATUS_OK && !spec_read_item(resource.got, item))
		status = error_set(err, STATUS_DAMAGED,
			"the description of resource %s cannot be read: give it again with "
			"preempt-queue resource",
			name);
	free(resource.got);
	return status;
}
