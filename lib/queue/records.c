/* SPDX-License-Identifier: MIT */
#include "queue/records.h"

#include <stdlib.h>
#include <string.h>

#include "queue/queue.h"
#include "queue/template.h"

#include "base/parse.h"
#include "base/xalloc.h"

static const char *const state_words[] = {"waiting", "running", "succeeded", "failed", "cancelled"};
static const char *const ending_words[] = {
	"exited", "signalled", "timed-out", "preempted", "lost", "cancelled", "cannot"};

#define QUEUE_SIGNAL_MAX 127 /* a shell says 128 more */

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

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

const char *queue_ending_word(enum queue_ending_kind kind)
{
	return ending_words[kind];
}

int queue_ending_code(const struct queue_ending *ending)
{
	switch (ending->kind) {
	case ENDING_TIMED_OUT: return STATUS_TIMEOUT;
	case ENDING_SIGNALLED: return 128 + ending->number;
	case ENDING_EXITED:
	case ENDING_CANNOT: return ending->code;
	case ENDING_PREEMPTED: return CODE_PREEMPTED;
	case ENDING_LOST: return CODE_BROKEN;
	case ENDING_CANCELLED: break;
	}
	return STATUS_NO;
}

/* ---- Members of an object ---- */

static bool get_copy(const struct json_object *object, const char *member, char **copy)
{
	const char *value;
	return !json_get_text(object, member, &value) || (*copy = xstrdup(value));
}

static void put_text(struct json_object *object, const char *member, const char *value)
{
	if (value && *value)
		json_put_text(object, member, value);
}

static void put_number(struct json_object *object, const char *member, uint64_t value)
{
	if (value)
		json_put_unsigned(object, member, value);
}

static void put_time(struct json_object *object, const char *member, int64_t value)
{
	if (value)
		json_put_signed(object, member, value);
}

enum status queue_damaged(const char *key, struct error *err)
{
	return error_set(err, STATUS_DAMAGED,
		"key %s is not a record of a queue, or was written by a newer version: not used",
		key);
}

/* ---- What was asked ---- */

void queue_item_release(struct queue_item *item)
{
	template_free(item->argv);
	template_free(item->environment);
	template_free(item->resources);
	free(item->directory);
	free(item->tag);
	free(item->input);
	free(item->batch);
	*item = (struct queue_item){0};
}

void queue_item_unreadable(struct queue_item *item, uint64_t id)
{
	*item = (struct queue_item){.id = id, .argv = xcalloc(2, sizeof(*item->argv))};
	item->argv[0] = xstrdup("(damaged)");
}

static const char *const halt_words[] = {"now", "soon", "never"};

const char *queue_halt_word(enum queue_halt halt)
{
	return halt_words[halt];
}

bool queue_halt_parse(const char *word, enum queue_halt *halt)
{
	size_t index;
	if (!parse_word(halt_words, sizeof(halt_words) / sizeof(*halt_words), word, &index))
		return false;
	*halt = (enum queue_halt)index;
	return true;
}

/* As 0.1.0 wrote it, too. False: a word that is none. */
static bool get_halt(struct json_object *object, enum queue_halt *halt)
{
	const char *word;
	bool keep_going = false;
	if (json_get_bool(object, "keep_going", &keep_going) && keep_going)
		*halt = HALT_NEVER;
	return !json_get_text(object, "halt", &word) || queue_halt_parse(word, halt);
}

struct json_object *queue_item_write(const struct queue_item *item)
{
	struct json_object *object = json_object_new_object();
	json_put_words(object, "command", item->argv);
	json_put_words(object, "environment", item->environment);
	json_put_words(object, "resources", item->resources);
	put_text(object, "directory", item->directory);
	put_text(object, "tag", item->tag);
	put_text(object, "stdin", item->input);
	put_text(object, "batch", item->batch);
	if (item->priority)
		json_put_signed(object, "priority", item->priority);
	put_number(object, "max_attempts", item->max_attempts);
	json_put_unsigned(object, "max_transient", item->max_transient);
	put_time(object, "timeout_ms", item->timeout);
	if (item->shell)
		json_put_bool(object, "shell", true);
	if (item->halt)
		json_put_text(object, "halt", halt_words[item->halt]);
	if (item->halt == HALT_NEVER) /* for versions that do not know halt */
		json_put_bool(object, "keep_going", true);
	put_time(object, "scheduled", item->scheduled);
	return object;
}

enum status queue_item_read(const char *key, const char *value, size_t length,
	struct queue_item *item, struct error *err)
{
	struct queue_item read = {0};
	struct json_object *object = json_parse(value, length);
	int64_t priority = 0;
	bool good = object && json_get_words(object, "command", &read.argv) && read.argv &&
		    read.argv[0] && json_get_words(object, "environment", &read.environment) &&
		    json_get_words(object, "resources", &read.resources) &&
		    get_copy(object, "directory", &read.directory) &&
		    get_copy(object, "tag", &read.tag) && get_copy(object, "stdin", &read.input) &&
		    get_copy(object, "batch", &read.batch);
	if (good) {
		json_get_signed(object, "priority", &priority);
		json_get_unsigned(object, "max_attempts", &read.max_attempts);
		json_get_unsigned(object, "max_transient", &read.max_transient);
		json_get_time(object, "timeout_ms", &read.timeout);
		json_get_bool(object, "shell", &read.shell);
		good = get_halt(object, &read.halt);
		json_get_time(object, "scheduled", &read.scheduled);
		good &= priority >= -QUEUE_PRIORITY_MAX && priority <= QUEUE_PRIORITY_MAX;
		read.priority = (int)priority;
	}
	json_object_put(object);
	if (!good || !queue_key_id(key, &read.id)) {
		queue_item_release(&read);
		return queue_damaged(key, err);
	}
	*item = read;
	return STATUS_OK;
}

/* ---- Where it is ---- */

static void put_history(struct json_object *object, const struct queue_history *history)
{
	put_number(object, "starts", history->starts);
	put_number(object, "attempts", history->attempts);
	put_number(object, "transients", history->transients);
	put_number(object, "preempted", history->preempted);
	put_number(object, "lost", history->lost);
}

static void get_history(const struct json_object *object, struct queue_history *history)
{
	json_get_unsigned(object, "starts", &history->starts);
	json_get_unsigned(object, "attempts", &history->attempts);
	json_get_unsigned(object, "transients", &history->transients);
	json_get_unsigned(object, "preempted", &history->preempted);
	json_get_unsigned(object, "lost", &history->lost);
}

struct json_object *queue_history_write(const struct queue_history *history)
{
	struct json_object *object = json_object_new_object();
	put_history(object, history);
	return object;
}

enum status queue_history_read(const char *key, const char *value, size_t length,
	struct queue_history *history, struct error *err)
{
	struct json_object *object = json_parse(value, length);
	if (!object)
		return queue_damaged(key, err);
	*history = (struct queue_history){0};
	get_history(object, history);
	json_object_put(object);
	return STATUS_OK;
}

struct json_object *queue_lease_write(const struct queue_lease *lease)
{
	struct json_object *object = json_object_new_object();
	json_put_text(object, "token", lease->token);
	json_put_text(object, "worker_token", lease->worker_token);
	json_put_text(object, "worker", lease->worker);
	json_put_text(object, "host", lease->host);
	json_put_signed(object, "since", lease->since);
	put_history(object, &lease->history);
	return object;
}

enum status queue_lease_read(const char *key, const char *value, size_t length,
	struct queue_lease *lease, struct error *err)
{
	struct queue_lease read = {0};
	struct json_object *object = json_parse(value, length);
	bool good = object && json_copy_text(object, "token", read.token, sizeof(read.token)) &&
		    json_copy_text(
			    object, "worker_token", read.worker_token, sizeof(read.worker_token)) &&
		    json_get_time(object, "since", &read.since);
	if (good) {
		json_copy_text(object, "worker", read.worker, sizeof(read.worker));
		json_copy_text(object, "host", read.host, sizeof(read.host));
		get_history(object, &read.history);
		*lease = read;
	}
	json_object_put(object);
	return good ? STATUS_OK : queue_damaged(key, err);
}

void queue_ending_put(struct json_object *object, const struct queue_ending *ending)
{
	json_put_text(object, "ending", queue_ending_word(ending->kind));
	if (ending->number)
		json_put_signed(object, "signal", ending->number);
	json_put_signed(object, "code", ending->code);
	put_text(object, "text", ending->text);
}

bool queue_ending_get(const struct json_object *object, struct queue_ending *ending)
{
	const char *word;
	size_t index;
	int code = 0, number = 0;
	if (!json_get_text(object, "ending", &word) ||
		!parse_word(ending_words, COUNT(ending_words), word, &index))
		return false;
	json_get_code(object, "code", &code);
	json_get_code(object, "signal", &number);
	if (number > QUEUE_SIGNAL_MAX)
		number = 0;
	*ending = (struct queue_ending){
		.kind = (enum queue_ending_kind)index, .code = code, .number = number};
	json_copy_text(object, "text", ending->text, sizeof(ending->text));
	return true;
}

struct json_object *queue_result_write(const struct queue_result *result)
{
	struct json_object *object = json_object_new_object();
	json_put_text(object, "state", queue_state_word(result->state));
	queue_ending_put(object, &result->ending);
	put_history(object, &result->history);
	put_number(object, "because", result->because);
	put_text(object, "token", result->token);
	put_text(object, "worker", result->worker);
	put_text(object, "host", result->host);
	put_time(object, "started", result->started);
	put_time(object, "ended", result->ended);
	put_time(object, "user_ms", result->user);
	put_time(object, "system_ms", result->system);
	put_number(object, "memory", result->memory);
	put_number(object, "out", result->out);
	put_number(object, "err", result->err);
	if (result->out_filed)
		json_put_bool(object, "out_filed", true);
	if (result->err_filed)
		json_put_bool(object, "err_filed", true);
	return object;
}

enum status queue_result_read(const char *key, const char *value, size_t length,
	struct queue_result *result, struct error *err)
{
	struct queue_result read = {0};
	const char *word;
	struct json_object *object = json_parse(value, length);
	bool good = object && json_get_text(object, "state", &word) &&
		    queue_state_parse(word, &read.state) && read.state >= QUEUE_SUCCEEDED &&
		    queue_ending_get(object, &read.ending);
	if (good) {
		get_history(object, &read.history);
		json_get_unsigned(object, "because", &read.because);
		json_copy_text(object, "token", read.token, sizeof(read.token));
		json_copy_text(object, "worker", read.worker, sizeof(read.worker));
		json_copy_text(object, "host", read.host, sizeof(read.host));
		json_get_time(object, "started", &read.started);
		json_get_time(object, "ended", &read.ended);
		json_get_time(object, "user_ms", &read.user);
		json_get_time(object, "system_ms", &read.system);
		json_get_unsigned(object, "memory", &read.memory);
		json_get_unsigned(object, "out", &read.out);
		json_get_unsigned(object, "err", &read.err);
		json_get_bool(object, "out_filed", &read.out_filed);
		json_get_bool(object, "err_filed", &read.err_filed);
		*result = read;
	}
	json_object_put(object);
	return good ? STATUS_OK : queue_damaged(key, err);
}
