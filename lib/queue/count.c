/* SPDX-License-Identifier: MIT */
#include "queue/count.h"

#define FIELD(name) offsetof(struct queue_tally, name)
static const struct {
	const char *name;
	size_t offset;
} fields[] = {
	{"scheduled", FIELD(scheduled)},
	{"taken", FIELD(taken)},
	{"returned", FIELD(returned)},
	{"succeeded", FIELD(succeeded)},
	{"failed", FIELD(failed)},
	{"stopped", FIELD(stopped)},
	{"cancelled", FIELD(cancelled)},
	{"reopened_succeeded", FIELD(reopened_succeeded)},
	{"reopened_failed", FIELD(reopened_failed)},
	{"reopened_cancelled", FIELD(reopened_cancelled)},
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

static uint64_t *field_of(struct queue_tally *tally, size_t i)
{
	return (uint64_t *)((char *)tally + fields[i].offset);
}

struct json_object *queue_tally_write(const struct queue_tally *tally)
{
	struct queue_tally copy = *tally;
	struct json_object *object = json_object_new_object();
	for (size_t i = 0; i < FIELDS; i++)
		if (*field_of(&copy, i))
			json_put_unsigned(object, fields[i].name, *field_of(&copy, i));
	return object;
}

enum status queue_tally_read(const char *key, const char *value, size_t length,
	struct queue_tally *tally, struct error *err)
{
	struct json_object *object = json_parse(value, length);
	if (!object)
		return queue_damaged(key, err);
	*tally = (struct queue_tally){0};
	for (size_t i = 0; i < FIELDS; i++)
		json_get_unsigned(object, fields[i].name, field_of(tally, i));
	json_object_put(object);
	return STATUS_OK;
}

void queue_tally_add(struct queue_tally *to, const struct queue_tally *more)
{
	struct queue_tally copy = *more;
	for (size_t i = 0; i < FIELDS; i++)
		*field_of(to, i) += *field_of(&copy, i);
}

void queue_tally_count(const struct queue_tally *all, struct queue_count *count)
{
	uint64_t reopened =
		all->reopened_succeeded + all->reopened_failed + all->reopened_cancelled;
	count->scheduled = all->scheduled;
	count->waiting = all->scheduled + all->returned + reopened - all->taken - all->cancelled;
	count->running = all->taken - all->returned - all->succeeded - all->failed - all->stopped;
	count->succeeded = all->succeeded - all->reopened_succeeded;
	count->failed = all->failed - all->reopened_failed;
	count->cancelled = all->stopped + all->cancelled - all->reopened_cancelled;
}
