/* SPDX-License-Identifier: MIT */
/* The records of a queue: one table of fields for each. */
#include "queue/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/xalloc.h"

#define SIGNAL_MAX 127 /* a shell exits with 128 + signal */

static const char *const state_words[] = {
	"waiting", "running", "blocked", "succeeded", "failed", "cancelled", NULL};
static const char *const halt_words[] = {"now", "soon", "never", NULL};
static const char *const ending_words[] = {
	"exited", "signalled", "timed-out", "preempted", "lost", "cancelled", "cannot", NULL};

/* ---- The tables ---- */

#define HISTORY(member) JSON_MEMBER(struct queue_history, member)
static const struct json_field history_fields[] = {
	{"starts", JSON_UNSIGNED, JSON_SHOWN, HISTORY(starts)},
	{"attempts", JSON_UNSIGNED, JSON_SHOWN, HISTORY(attempts)},
	{"transients", JSON_UNSIGNED, JSON_SHOWN, HISTORY(transients)},
	{"preempted", JSON_UNSIGNED, JSON_SHOWN, HISTORY(preempted)},
	{"lost", JSON_UNSIGNED, JSON_SHOWN, HISTORY(lost)},
	{0},
};

#define ENDING(member) JSON_MEMBER(struct queue_ending, member)
static const struct json_field ending_fields[] = {
	{"ending", JSON_WORD, JSON_REQUIRED, ENDING(kind), .more = ending_words},
	{"signal", JSON_SIGNED, 0, ENDING(number), .most = SIGNAL_MAX},
	{"code", JSON_SIGNED, JSON_ALWAYS, ENDING(code), .most = 255},
	{"text", JSON_TEXT, 0, ENDING(text)},
	{0},
};

#define ITEM(member) JSON_MEMBER(struct queue_item, member)
static const struct json_field item_fields[] = {
	{"command", JSON_WORDS, JSON_REQUIRED, ITEM(argv)},
	{"environment", JSON_WORDS, 0, ITEM(environment)},
	{"resources", JSON_WORDS, 0, ITEM(resources)},
	{"directory", JSON_STRING, 0, ITEM(directory)},
	{"tag", JSON_STRING, 0, ITEM(tag)},
	{"stdin", JSON_STRING, 0, ITEM(input)},
	{"stdout", JSON_STRING, 0, ITEM(output)},
	{"after", JSON_STRING, 0, ITEM(after), .shown = ""},
	{"batch", JSON_STRING, 0, ITEM(batch), .shown = ""},
	{"priority", JSON_SIGNED, 0, ITEM(priority), -QUEUE_PRIORITY_MAX, QUEUE_PRIORITY_MAX},
	{"max_attempts", JSON_UNSIGNED, 0, ITEM(max_attempts)},
	{"max_transient", JSON_UNSIGNED, JSON_ALWAYS, ITEM(max_transient)},
	{"timeout_ms", JSON_TIME, 0, ITEM(timeout)},
	{"shell", JSON_BOOL, 0, ITEM(shell)},
	{"halt", JSON_WORD, 0, ITEM(halt), .more = halt_words},
	{"scheduled", JSON_TIME, JSON_SHOWN, ITEM(scheduled), .shown = "scheduled_utc"},
	{0},
};

#define BLOCKED(member) JSON_MEMBER(struct queue_blocked, member)
static const struct json_field blocked_fields[] = {
	{"after", JSON_STRING, JSON_REQUIRED, BLOCKED(after)},
	{"priority", JSON_SIGNED, 0, BLOCKED(priority), -QUEUE_PRIORITY_MAX, QUEUE_PRIORITY_MAX},
	{NULL, JSON_PART, 0, BLOCKED(history), .more = history_fields},
	{0},
};
#define SPAN(member) JSON_MEMBER(struct queue_dependents, member), 1, QUEUE_ID_MAX
static const struct json_field dependents_fields[] = {
	{"first", JSON_UNSIGNED, JSON_REQUIRED, SPAN(first)},
	{"last", JSON_UNSIGNED, JSON_REQUIRED, SPAN(last)},
	{0},
};
#define BLOCK(member) JSON_MEMBER(struct queue_block, member)
static const struct json_field block_fields[] = {
	{"last", JSON_UNSIGNED, JSON_REQUIRED, BLOCK(last), 1, QUEUE_ID_MAX},
	{"after", JSON_STRING, JSON_REQUIRED, BLOCK(after)},
	{0},
};

#define LEASE(member) JSON_MEMBER(struct queue_lease, member)
static const struct json_field lease_fields[] = {
	{"token", JSON_TEXT, JSON_REQUIRED, LEASE(token), .shown = ""},
	{"worker_token", JSON_TEXT, JSON_REQUIRED, LEASE(worker_token), .shown = ""},
	{"worker", JSON_TEXT, JSON_ALWAYS, LEASE(worker)},
	{"host", JSON_TEXT, JSON_ALWAYS, LEASE(host)},
	{"since", JSON_TIME, JSON_REQUIRED, LEASE(since), .shown = "since_utc"},
	{NULL, JSON_PART, 0, LEASE(history), .more = history_fields},
	{0},
};

#define RESULT(member) JSON_MEMBER(struct queue_result, member)
static const struct json_field result_fields[] = {
	{"state", JSON_WORD, JSON_REQUIRED, RESULT(state), .more = state_words},
	{NULL, JSON_PART, 0, RESULT(ending), .more = ending_fields},
	{NULL, JSON_PART, 0, RESULT(history), .more = history_fields},
	{"because", JSON_UNSIGNED, 0, RESULT(because), .shown = ""},
	{"token", JSON_TEXT, 0, RESULT(token), .shown = ""},
	{"worker", JSON_TEXT, 0, RESULT(worker)},
	{"host", JSON_TEXT, 0, RESULT(host)},
	{"started", JSON_TIME, 0, RESULT(started), .shown = "started_utc"},
	{"ended", JSON_TIME, JSON_SHOWN, RESULT(ended), .shown = "ended_utc"},
	{"user_ms", JSON_TIME, JSON_SHOWN, RESULT(user)},
	{"system_ms", JSON_TIME, JSON_SHOWN, RESULT(system)},
	{"memory", JSON_UNSIGNED, JSON_SHOWN, RESULT(memory), .shown = "memory_bytes"},
	{"out", JSON_UNSIGNED, JSON_SHOWN, RESULT(out), .shown = "stdout_bytes"},
	{"err", JSON_UNSIGNED, JSON_SHOWN, RESULT(err), .shown = "stderr_bytes"},
	{"out_filed", JSON_BOOL, 0, RESULT(out_filed), .shown = ""},
	{"err_filed", JSON_BOOL, 0, RESULT(err_filed), .shown = ""},
	{0},
};

#define FAILURE(member) JSON_MEMBER(struct queue_failure, member)
static const struct json_field failure_fields[] = {
	{"id", JSON_UNSIGNED, JSON_REQUIRED, FAILURE(id)},
	{NULL, JSON_PART, 0, FAILURE(ending), .more = ending_fields},
	{"worker", JSON_TEXT, 0, FAILURE(worker)},
	{"host", JSON_TEXT, 0, FAILURE(host)},
	{"tag", JSON_TEXT, 0, FAILURE(tag)},
	{"command", JSON_TEXT, 0, FAILURE(command)},
	{"utc", JSON_TIME, 0, FAILURE(utc)},
	{"halt", JSON_WORD, JSON_ALWAYS, FAILURE(halt), .more = halt_words},
	{"stopping", JSON_BOOL, 0, FAILURE(stopping)},
	{"cancelled", JSON_UNSIGNED, 0, FAILURE(cancelled)},
	{0},
};

static const struct json_field settings_fields[] = {
	{"halt", JSON_WORD, JSON_ALWAYS, JSON_MEMBER(struct queue_settings, halt),
		.more = halt_words},
	{0},
};

#define TALLY(name, member)                                                                        \
	{                                                                                          \
		name, JSON_UNSIGNED, 0, JSON_MEMBER(struct queue_tally, member)                    \
	}
static const struct json_field tally_fields[] = {
	TALLY("scheduled", scheduled),
	TALLY("taken", taken),
	TALLY("returned", returned),
	TALLY("succeeded", succeeded),
	TALLY("failed", failed),
	TALLY("stopped", stopped),
	TALLY("cancelled", cancelled),
	TALLY("reopened_succeeded", reopened_succeeded),
	TALLY("reopened_failed", reopened_failed),
	TALLY("reopened_cancelled", reopened_cancelled),
	{"last", JSON_TEXT, 0, JSON_MEMBER(struct queue_tally, last)},
	{0},
};

static bool check_item(void *record, const struct store_entry *entry)
{
	struct queue_item *item = record;
	return item->argv[0] && queue_key_id(entry->key, &item->id);
}

static bool check_result(void *record, const struct store_entry *entry)
{
	(void)entry;
	return ((struct queue_result *)record)->state >= QUEUE_SUCCEEDED;
}

static bool check_failure(void *record, const struct store_entry *entry)
{
	((struct queue_failure *)record)->revision = entry->revision;
	return true;
}

#define RECORD(name, check)                                                                        \
	const struct queue_record queue_##name##_record = {                                        \
		name##_fields, sizeof(struct queue_##name), check}
RECORD(item, check_item);
RECORD(blocked, NULL);
RECORD(dependents, NULL);
RECORD(block, NULL);
RECORD(history, NULL);
RECORD(lease, NULL);
RECORD(result, check_result);
RECORD(failure, check_failure);
RECORD(tally, NULL);
RECORD(settings, NULL);

/* ---- Reading ---- */

enum status queue_damaged(const struct store_entry *entry, struct error *err)
{
	return error_set(err, STATUS_DAMAGED,
		"key %s is not a record of a queue, or was written by a newer version: not used",
		entry->key);
}

enum status queue_read(const struct queue_record *kind, const struct store_entry *entry,
	void *record, struct error *err)
{
	memset(record, 0, kind->size);
	if (entry->value &&
		json_read_record(kind->fields, entry->value, entry->length, record, NULL) ==
			JSON_WELL &&
		(!kind->check || kind->check(record, entry)))
		return STATUS_OK;
	json_release_record(kind->fields, record);
	memset(record, 0, kind->size);
	return queue_damaged(entry, err);
}

struct json_object *queue_write(const struct queue_record *kind, const void *record)
{
	return json_write_record(kind->fields, record);
}

void queue_show(const struct queue_record *kind, const void *record, struct json_object *object)
{
	json_show_fields(kind->fields, record, object);
}

bool queue_key_id(const char *key, uint64_t *id)
{
	const char *slash = strrchr(key, '/');
	return slash && parse_unsigned(slash + 1, 1, QUEUE_ID_MAX, id, "id", NULL) == STATUS_OK;
}

void queue_item_take(const struct store_entry *entry, uint64_t id, struct queue_item *item)
{
	if (queue_read(&queue_item_record, entry, item, NULL) == STATUS_OK)
		return;
	*item = (struct queue_item){
		.id = id, .argv = xcalloc(2, sizeof(*item->argv)), .damaged = true};
	item->argv[0] = xstrdup("(damaged)");
}

void queue_item_release(struct queue_item *item)
{
	json_release_record(item_fields, item);
	*item = (struct queue_item){0};
}

/* ---- Names of states ---- */

static bool find_word(const char *const *words, const char *word, size_t *index)
{
	size_t count = 0;
	while (words[count])
		count++;
	return parse_word(words, count, word, index);
}

const char *queue_state_word(enum queue_state state)
{
	return state_words[state];
}

bool queue_state_parse(const char *word, enum queue_state *state)
{
	size_t index;
	bool found = find_word(state_words, word, &index);
	*state = found ? (enum queue_state)index : *state;
	return found;
}

const char *queue_halt_word(enum queue_halt halt)
{
	return halt_words[halt];
}

bool queue_halt_parse(const char *word, enum queue_halt *halt)
{
	size_t index;
	bool found = find_word(halt_words, word, &index);
	*halt = found ? (enum queue_halt)index : *halt;
	return found;
}

const char *queue_ending_word(enum queue_ending_kind kind)
{
	return ending_words[kind];
}

int queue_ending_code(const struct queue_ending *ending)
{
	switch (ending->kind) {
	case ENDING_TIMED_OUT: return CODE_TIMEOUT;
	case ENDING_SIGNALLED: return 128 + ending->number;
	case ENDING_EXITED:
	case ENDING_CANNOT: return ending->code;
	case ENDING_PREEMPTED: return CODE_PREEMPTED;
	case ENDING_LOST: return CODE_BROKEN;
	case ENDING_CANCELLED: break;
	}
	return CODE_NO;
}

void queue_ending_damaged(struct queue_ending *ending, uint64_t id)
{
	*ending = (struct queue_ending){.kind = ENDING_CANNOT, .code = CODE_CANNOT_RUN};
	snprintf(ending->text, sizeof(ending->text),
		"the record of command %" PRIu64 " in the store is damaged", id);
}

/* ---- Tallies ---- */

void queue_tally_add(struct queue_tally *to, const struct queue_tally *more)
{
	for (const struct json_field *field = tally_fields; field->kind == JSON_UNSIGNED; field++)
		*(uint64_t *)((char *)to + field->offset) +=
			*(const uint64_t *)((const char *)more + field->offset);
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
