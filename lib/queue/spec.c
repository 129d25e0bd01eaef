/* SPDX-License-Identifier: MIT */
#include "queue/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/xalloc.h"

#define SIGNAL_MAX 127 /* a shell exits with 128 + signal */

/* ---- Words ---- */

static const char *const state_words[] = {
	"blocked", "waiting", "running", "succeeded", "failed", "cancelled", "damaged"};
static const char *const halt_words[] = {"never", "soon", "now"};
static const char *const ending_words[] = {"exited", "signalled", "timed-out", "preempted", "lost",
	"cancelled", "cannot", "machine", NULL};
#define COUNT(words) (sizeof(words) / sizeof(*(words)))

const char *queue_state_word(enum queue_state state)
{
	return state_words[state];
}

bool queue_state_parse(const char *word, enum queue_state *state)
{
	size_t index;
	if (!parse_word(state_words, COUNT(state_words), word, &index))
		return false;
	*state = (enum queue_state)index;
	return true;
}

const char *queue_halt_word(enum queue_halt halt)
{
	return halt_words[halt];
}

bool queue_halt_parse(const char *word, enum queue_halt *halt)
{
	size_t index;
	if (!parse_word(halt_words, COUNT(halt_words), word, &index))
		return false;
	*halt = (enum queue_halt)index;
	return true;
}

int queue_ending_code(const struct queue_ending *ending)
{
	switch (ending->kind) {
	case ENDING_TIMED_OUT: return CODE_TIMEOUT;
	case ENDING_SIGNALLED: return 128 + ending->number;
	case ENDING_EXITED:
	case ENDING_CANNOT:
	case ENDING_MACHINE: return ending->code;
	case ENDING_PREEMPTED: return CODE_PREEMPTED;
	case ENDING_LOST: return CODE_BROKEN;
	case ENDING_CANCELLED: break;
	}
	return CODE_NO;
}

void queue_ending_describe(const struct queue_ending *ending, char text[64])
{
	switch (ending->kind) {
	case ENDING_EXITED: snprintf(text, 64, "ended with exit code %d", ending->code); return;
	case ENDING_SIGNALLED: snprintf(text, 64, "died of signal %d", ending->number); return;
	case ENDING_TIMED_OUT: snprintf(text, 64, "ran into its --timeout"); return;
	case ENDING_PREEMPTED: snprintf(text, 64, "was preempted"); return;
	case ENDING_LOST: snprintf(text, 64, "lost its worker"); return;
	case ENDING_CANCELLED: snprintf(text, 64, "was cancelled"); return;
	case ENDING_CANNOT: snprintf(text, 64, "could not start"); return;
	case ENDING_MACHINE: snprintf(text, 64, "could not run on its machine"); return;
	}
}

/* ---- The columns spec and result ---- */

#define ITEM(member) JSON_MEMBER(struct queue_item, member)
static const struct json_field item_fields[] = {
	{"command", JSON_WORDS, JSON_REQUIRED, ITEM(argv)},
	{"environment", JSON_WORDS, 0, ITEM(environment)},
	{"resources", JSON_WORDS, 0, ITEM(resources)},
	{"directory", JSON_STRING, 0, ITEM(directory)},
	{"stdin", JSON_STRING, 0, ITEM(input)},
	{"stdout", JSON_STRING, 0, ITEM(output)},
	{"max_attempts", JSON_UNSIGNED, 0, ITEM(max_attempts)},
	{"max_transient", JSON_UNSIGNED, JSON_ALWAYS, ITEM(max_transient)},
	{"shell", JSON_BOOL, 0, ITEM(shell)},
	{"timeout_ms", JSON_TIME, JSON_SECONDS, ITEM(timeout), .shown = "timeout"},
	{"scheduled_ms", JSON_TIME, JSON_INSTANT, ITEM(scheduled), .shown = "scheduled"},
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

#define RESULT(member) JSON_MEMBER(struct queue_result, member)
static const struct json_field result_fields[] = {
	{NULL, JSON_PART, 0, RESULT(ending), .more = ending_fields},
	{"worker", JSON_TEXT, 0, RESULT(worker)},
	{"host", JSON_TEXT, 0, RESULT(host)},
	{"started_ms", JSON_TIME, JSON_INSTANT, RESULT(started), .shown = "started"},
	{"ended_ms", JSON_TIME, JSON_INSTANT, RESULT(ended), .shown = "ended"},
	{"user_ms", JSON_TIME, JSON_SHOWN | JSON_SECONDS, RESULT(user), .shown = "user"},
	{"system_ms", JSON_TIME, JSON_SHOWN | JSON_SECONDS, RESULT(system), .shown = "system"},
	{"memory", JSON_UNSIGNED, JSON_SHOWN, RESULT(memory), .shown = "memory_bytes"},
	{"out", JSON_UNSIGNED, JSON_SHOWN, RESULT(out), .shown = "stdout_bytes"},
	{"err", JSON_UNSIGNED, JSON_SHOWN, RESULT(err), .shown = "stderr_bytes"},
	{0},
};

#define PROCESS(member) JSON_MEMBER(struct process_identity, member)
static const struct json_field process_fields[] = {
	{"host", JSON_TEXT, JSON_REQUIRED, PROCESS(host)},
	{"boot", JSON_TEXT, JSON_REQUIRED, PROCESS(boot), .shown = ""},
	{"pid_namespace", JSON_UNSIGNED, JSON_REQUIRED, PROCESS(pid_namespace), .shown = ""},
	{"pid", JSON_SIGNED, JSON_REQUIRED, PROCESS(pid), 1, INT32_MAX},
	{"start", JSON_UNSIGNED, JSON_REQUIRED, PROCESS(start), .shown = ""},
	{"time_namespace", JSON_UNSIGNED, JSON_REQUIRED, PROCESS(time_namespace), .shown = ""},
	{0},
};

#define WORKER(member) JSON_MEMBER(struct queue_worker, member)
static const struct json_field worker_fields[] = {
	{"worker", JSON_TEXT, JSON_REQUIRED, WORKER(name)},
	{"index", JSON_UNSIGNED, JSON_REQUIRED, WORKER(index)},
	{"slots", JSON_UNSIGNED, JSON_REQUIRED, WORKER(slots)},
	{"period_ms", JSON_SIGNED, JSON_REQUIRED, WORKER(period), 1, JSON_TIME_MAX, .shown = ""},
	{"limit", JSON_UNSIGNED, JSON_REQUIRED, WORKER(limit), 1, INT64_MAX, .shown = ""},
	{"started_ms", JSON_TIME, JSON_REQUIRED | JSON_INSTANT, WORKER(started),
		.shown = "started"},
	{NULL, JSON_PART, 0, WORKER(process), .more = process_fields},
	{0},
};

/* Read a record. False: text is not a whole one. */
static bool read_record(const struct json_field *fields, const char *text, void *record)
{
	if (json_read_record(fields, text, strlen(text), record, NULL) == JSON_WELL)
		return true;
	json_release_record(fields, record);
	return false;
}

struct json_object *spec_write_item(const struct queue_item *item)
{
	return json_write_record(item_fields, item);
}

bool spec_read_item(const char *text, struct queue_item *item)
{
	bool well = read_record(item_fields, text, item);
	if (well && item->argv[0])
		return true;
	json_release_record(item_fields, item);
	item->argv = xcalloc(2, sizeof(*item->argv));
	item->argv[0] = xstrdup("(damaged)");
	item->damaged = true;
	return false;
}

void queue_item_release(struct queue_item *item)
{
	json_release_record(item_fields, item);
	free(item->tag);
	*item = (struct queue_item){0};
}

struct json_object *spec_write_result(const struct queue_result *result)
{
	return json_write_record(result_fields, result);
}

bool spec_read_result(const char *text, struct queue_result *result)
{
	*result = (struct queue_result){0};
	bool well = read_record(result_fields, text, result);
	if (!well)
		*result = (struct queue_result){0};
	return well;
}

struct json_object *spec_write_worker(const struct queue_worker *worker)
{
	return json_write_record(worker_fields, worker);
}

bool spec_read_worker(const char *text, struct queue_worker *worker)
{
	return read_record(worker_fields, text, worker);
}

static size_t words_bytes(char *const *words)
{
	size_t bytes = 0;
	for (; words && *words; words++)
		bytes += strlen(*words) + 4;
	return bytes;
}

size_t spec_bytes(const struct queue_item *item)
{
	const char *const texts[] = {item->tag, item->directory, item->input, item->output};
	size_t bytes = words_bytes(item->argv) + words_bytes(item->environment) +
		       words_bytes(item->resources);
	for (size_t i = 0; i < COUNT(texts); i++)
		bytes += texts[i] ? strlen(texts[i]) : 0;
	return bytes + 200; /* the other columns, and the indexes */
}

/* ---- What users see ---- */

#define VIEW(member) JSON_MEMBER(struct queue_view, member)
static const struct json_field view_fields[] = {
	{"id", JSON_UNSIGNED, JSON_ALWAYS, VIEW(item.id)},
	{"state", JSON_WORD, JSON_ALWAYS, VIEW(state), .more = state_words},
	{NULL, JSON_PART, 0, VIEW(item), .more = item_fields},
	{"tag", JSON_STRING, 0, VIEW(item.tag)},
	{"priority", JSON_SIGNED, JSON_ALWAYS, VIEW(item.priority)},
	{"halt", JSON_WORD, JSON_ALWAYS, VIEW(item.halt), .more = halt_words},
	{"needs", JSON_TIME, JSON_SECONDS, VIEW(item.needs)},
	{"starts", JSON_UNSIGNED, JSON_ALWAYS, VIEW(history.starts)},
	{"attempts", JSON_UNSIGNED, JSON_ALWAYS, VIEW(history.attempts)},
	{"transients", JSON_UNSIGNED, JSON_ALWAYS, VIEW(history.transients)},
	{"preempted", JSON_UNSIGNED, JSON_ALWAYS, VIEW(history.preempted)},
	{"lost", JSON_UNSIGNED, JSON_ALWAYS, VIEW(history.lost)},
	{"refused", JSON_UNSIGNED, JSON_ALWAYS, VIEW(history.refused)},
	{"after", JSON_STRING, 0, VIEW(after)},
	{"worker", JSON_TEXT, 0, VIEW(result.worker)},
	{"host", JSON_TEXT, 0, VIEW(result.host)},
	{"since", JSON_TIME, JSON_INSTANT, VIEW(since)},
	{"cancelling", JSON_BOOL, 0, VIEW(told)},
	{"because", JSON_UNSIGNED, 0, VIEW(because)},
	{0},
};

struct json_object *spec_show_view(const struct queue_view *view)
{
	struct json_object *object = json_object_new_object();
	json_show_fields(view_fields, view, object);
	if (!view->result.ended)
		return object;
	json_show_fields(result_fields, &view->result, object);
	json_put_signed(object, "exit", queue_ending_code(&view->result.ending));
	return object;
}

static const struct json_field worker_shown[] = {
	{NULL, JSON_PART, 0, .more = worker_fields},
	{"token", JSON_TEXT, 0, WORKER(token)},
	{"number", JSON_UNSIGNED, JSON_ALWAYS, WORKER(number)},
	{"running", JSON_UNSIGNED, JSON_ALWAYS, WORKER(running)},
	{"faults", JSON_UNSIGNED, JSON_ALWAYS, WORKER(faults)},
	{"life", JSON_TIME, JSON_SECONDS, WORKER(life)},
	{0},
};

struct json_object *spec_show_worker(const struct queue_worker *worker)
{
	struct json_object *object = json_object_new_object();
	json_show_fields(worker_shown, worker, object);
	return object;
}
