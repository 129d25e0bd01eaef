/* SPDX-License-Identifier: MIT */
/* Reading logs: operations.h has their format. */
#include "operations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST ((size_t)1 << 30) /* bytes of one log */

/* The log that is being read. */
struct reading {
	struct history *history;
	const char *name;
	size_t line;
	unsigned process, life;
	bool begun;
	size_t first;		/* its first operation */
	int64_t offset, bound;	/* nanoseconds */
	struct operation *open; /* the one whose answer is awaited; NULL: none */
	char *rest;		/* of the line */
	struct error *err;
};

static enum status wrong(struct reading *reading, const char *what)
{
	return error_set(
		reading->err, STATUS_USAGE, "%s, line %zu: %s", reading->name, reading->line, what);
}

/* Room for one more element of an array. Memory that runs out ends the program. */
static void *grow(void *array, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity ? *capacity * 2 : 1024;
	array = realloc(array, *capacity * size);
	if (!array)
		abort();
	return array;
}
#define ONE_MORE(history, array, counter)                                                          \
	((history)->array = grow((history)->array, (history)->counter,                             \
		 &(history)->array##_capacity, sizeof(*(history)->array)),                         \
		&(history)->array[(history)->counter++])

/* The number of a word in a table that grows; -1: it is full. */
static int intern(char **table, int *count, int most, const char *word)
{
	for (int i = 0; i < *count; i++)
		if (!strcmp(table[i], word))
			return i;
	if (*count == most)
		return -1;
	table[*count] = strdup(word);
	if (!table[*count])
		abort();
	return (*count)++;
}

static int key_number(struct history *history, const char *word)
{
	return intern(history->keys, &history->key_count, HISTORY_KEYS, word);
}

/* The next word of the line; NULL: there is none. */
static char *word(struct reading *reading)
{
	char *found = strsep(&reading->rest, " ");
	return found && *found ? found : NULL;
}

static bool take_number(const char *text, int64_t *number)
{
	char *end;
	if (!text || !*text)
		return false;
	errno = 0;
	*number = strtoll(text, &end, 10);
	return errno == 0 && !*end;
}

static bool number(struct reading *reading, int64_t *value)
{
	return take_number(word(reading), value);
}

/* "?KEY=REVISION" */
static bool take_compare(struct history *history, char *text)
{
	char *equals = strrchr(text, '=');
	int64_t revision;
	if (!equals || !take_number(equals + 1, &revision))
		return false;
	*equals = '\0';
	int key = key_number(history, text + 1);
	if (key < 0)
		return false;
	*ONE_MORE(history, compares, compare_count) = (struct key_compare){key, revision};
	return true;
}

/* "+pKEY" */
static bool take_part(struct history *history, const char *text)
{
	static const char letters[] = "pdg";
	const char *letter = text[1] ? strchr(letters, text[1]) : NULL;
	int key = letter && text[2] ? key_number(history, text + 2) : -1;
	if (key < 0)
		return false;
	*ONE_MORE(history, parts, part_count) =
		(struct key_operation){(enum store_op_kind)(letter - letters), key, *text == '-'};
	return true;
}

/* "KEY=0" or "KEY=REVISION:VALUE"; a value that no operation can have put becomes 0. */
static bool take_entry(struct history *history, char *text)
{
	char *equals = strrchr(text, '=');
	unsigned process, life, n;
	char behind;
	if (!equals)
		return false;
	*equals = '\0';
	struct key_entry entry = {.key = key_number(history, text)};
	char *colon = strchr(equals + 1, ':');
	if (colon)
		*colon = '\0';
	if (entry.key < 0 || !take_number(equals + 1, &entry.revision) ||
		(colon != NULL) != (entry.revision != 0))
		return false;
	if (colon && sscanf(colon + 1, "%u.%u.%u%c", &process, &life, &n, &behind) == 3 &&
		process < 0xffff && life <= 0xffff)
		entry.value = OPERATION_NAME(process, life, n);
	*ONE_MORE(history, entries, entry_count) = entry;
	return true;
}

static bool take_transaction(struct reading *reading, struct operation *operation)
{
	for (char *text; (text = word(reading));) {
		if (*text == '?') {
			if (!take_compare(reading->history, text))
				return false;
			operation->compare_count++;
		} else if (*text == '+' || *text == '-') {
			if (!take_part(reading->history, text))
				return false;
			operation->part_count++;
		} else {
			return false;
		}
	}
	return true;
}

static bool take_range(struct reading *reading, struct operation *operation)
{
	struct history *history = reading->history;
	int64_t limit = 0;
	const char *prefix = word(reading);
	if (!prefix || !number(reading, &operation->since))
		return false;
	operation->prefix =
		intern(history->prefixes, &history->prefix_count, HISTORY_PREFIXES, prefix);
	if (operation->kind == WAIT && !number(reading, &limit))
		return false;
	operation->limit = limit * 1000000;
	return operation->prefix >= 0;
}

static enum status take_call(struct reading *reading)
{
	static const char *const kinds[] = {"txn", "list", "wait"};
	struct history *history = reading->history;
	int64_t n, instant;
	if (!number(reading, &n) || n < 0 || n > UINT32_MAX || !number(reading, &instant))
		return wrong(reading, "a call has a number and an instant");
	reading->open = NULL;
	const char *kind = word(reading);
	struct operation *operation = ONE_MORE(history, operations, count);
	*operation = (struct operation){
		.name = OPERATION_NAME(reading->process, reading->life, n),
		.call = instant,
		.back = HISTORY_LATER,
		.unchanged = INT64_MIN,
		.prefix = -1,
		.compare = history->compare_count,
		.part = history->part_count,
		.entry = history->entry_count,
	};
	for (int i = 0; kind && i < 3; i++)
		if (!strcmp(kind, kinds[i])) {
			operation->kind = (enum operation_kind)i;
			reading->open = operation;
		}
	if (!reading->open ||
		!(operation->kind == TRANSACTION ? take_transaction(reading, operation)
						 : take_range(reading, operation)))
		return wrong(reading, "this call cannot be understood");
	return STATUS_OK;
}

static bool take_entries(struct reading *reading, struct operation *operation)
{
	operation->entry = reading->history->entry_count;
	for (char *text; (text = word(reading)); operation->entry_count++)
		if (!take_entry(reading->history, text))
			return false;
	return true;
}

/* What was answered, from the word behind the instant on. */
static bool take_answer(struct reading *reading, struct operation *operation)
{
	const char *what = word(reading);
	if (!what)
		return false;
	operation->outcome = ANSWERED;
	if (!strcmp(what, "refused") || !strcmp(what, "unknown")) {
		operation->outcome = *what == 'r' ? NO_EFFECT : UNKNOWN;
		return true;
	}
	if (!number(reading, &operation->revision))
		return false;
	operation->held = !strcmp(what, "held");
	if (!strcmp(what, "held") || !strcmp(what, "not"))
		return operation->kind == TRANSACTION && take_entries(reading, operation);
	if (!strcmp(what, "list"))
		return operation->kind == LIST && take_entries(reading, operation);
	if (!strcmp(what, "changed"))
		return operation->kind == WAIT;
	operation->outcome = QUIET;
	if (strcmp(what, "quiet") != 0 || operation->kind != WAIT ||
		!number(reading, &operation->unchanged))
		return false;
	if (operation->unchanged == 0)
		operation->unchanged = INT64_MIN;
	return true;
}

static enum status take_back(struct reading *reading)
{
	struct operation *operation = reading->open;
	int64_t n;
	if (!number(reading, &n) || !operation || n != NAME_NUMBER(operation->name))
		return wrong(reading, "this is the answer to no call");
	if (!number(reading, &operation->back) || !take_answer(reading, operation))
		return wrong(reading, "this answer cannot be understood");
	/* It may still take effect when its caller has given up. */
	if (operation->outcome == UNKNOWN)
		operation->back = HISTORY_LATER;
	reading->open = NULL;
	return STATUS_OK;
}

static enum status take_head(struct reading *reading)
{
	struct history *history = reading->history;
	int64_t format, process, life, base;
	if (!number(reading, &format) || format != 1 || !number(reading, &process) || process < 0 ||
		process >= 0xffff || !number(reading, &life) || life < 0 || life > 0xffff ||
		!number(reading, &base))
		return wrong(reading, "this head cannot be understood");
	reading->process = (unsigned)process;
	reading->life = (unsigned)life;
	reading->begun = true;
	if (!history->begun || base < history->base)
		history->base = base;
	history->begun = true;
	return STATUS_OK;
}

static enum status take_clock(struct reading *reading)
{
	if (!number(reading, &reading->offset) || !number(reading, &reading->bound) ||
		reading->bound < 0)
		return wrong(reading, "a clock has an offset and a bound in microseconds");
	reading->offset *= 1000;
	reading->bound *= 1000;
	return STATUS_OK;
}

static enum status take_line(struct reading *reading, char *line)
{
	reading->line++;
	reading->rest = line;
	const char *first = word(reading);
	if (first && !reading->begun && !strcmp(first, "history"))
		return take_head(reading);
	if (!first || !reading->begun)
		return wrong(reading, "this is not a log of a history");
	if (!strcmp(first, "clock"))
		return take_clock(reading);
	if (!strcmp(first, "call"))
		return take_call(reading);
	if (!strcmp(first, "back"))
		return take_back(reading);
	return wrong(reading, "this line cannot be understood");
}

/* Onto the common clock: each operation is made as long as it may have been. */
static void set_clock(const struct reading *reading)
{
	struct history *history = reading->history;
	for (size_t i = reading->first; i < history->count; i++) {
		struct operation *operation = &history->operations[i];
		operation->call += reading->offset - reading->bound;
		if (operation->back != HISTORY_LATER)
			operation->back += reading->offset + reading->bound;
		if (operation->unchanged != INT64_MIN)
			operation->unchanged += reading->offset - reading->bound;
	}
}

enum status history_add(
	struct history *history, const char *name, char *text, size_t length, struct error *err)
{
	struct reading reading = {
		.history = history, .name = name, .first = history->count, .err = err};
	enum status status = STATUS_OK;
	for (char *end; status == STATUS_OK && (end = memchr(text, '\n', length));) {
		*end = '\0';
		status = take_line(&reading, text);
		length -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	set_clock(&reading);
	return status;
}

enum status history_read(struct history *history, const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t length = 0;
	if (!file || (getdelim(&text, &length, '\0', file) < 0 && ferror(file))) {
		int number = errno;
		if (file)
			fclose(file);
		free(text);
		return error_set(err, error_status_of_errno(number), "cannot read %s: %s", path,
			strerror(number));
	}
	long size = ftell(file);
	fclose(file);
	enum status status = size < 0 || (size_t)size > FILE_MOST
				     ? error_set(err, STATUS_USAGE, "%s is no log", path)
				     : history_add(history, path, text, (size_t)size, err);
	free(text);
	return status;
}

static int by_name(const void *a, const void *b, void *context)
{
	const struct history *history = context;
	operation_name x = history->operations[*(const uint32_t *)a].name;
	operation_name y = history->operations[*(const uint32_t *)b].name;
	return x < y ? -1 : x > y;
}

/* As store_list: a prefix that ends in '/' does not contain itself. */
static bool is_under(const char *key, const char *prefix)
{
	size_t length = strlen(prefix);
	return !strncmp(key, prefix, length) &&
	       (key[length] || !length || prefix[length - 1] != '/');
}

enum status history_finish(struct history *history, struct error *err)
{
	for (int p = 0; p < history->prefix_count; p++)
		for (int k = 0; k < history->key_count; k++)
			if (is_under(history->keys[k], history->prefixes[p]))
				history->under[p] |= (uint64_t)1 << k;
	history->by_name = calloc(history->count + 1, sizeof(*history->by_name));
	if (!history->by_name)
		abort();
	for (size_t i = 0; i < history->count; i++)
		history->by_name[i] = (uint32_t)i;
	qsort_r(history->by_name, history->count, sizeof(*history->by_name), by_name, history);
	for (size_t i = 1; i < history->count; i++) {
		operation_name name = history->operations[history->by_name[i]].name;
		if (name == history->operations[history->by_name[i - 1]].name)
			return error_set(err, STATUS_USAGE,
				"operation %u.%u.%u is in the logs twice: were logs of two recordings "
				"mixed?",
				NAME_PROCESS(name), NAME_LIFE(name), NAME_NUMBER(name));
	}
	return STATUS_OK;
}

const struct operation *history_find(const struct history *history, operation_name name)
{
	size_t low = 0, high = history->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct operation *at = &history->operations[history->by_name[middle]];
		if (at->name == name)
			return at;
		if (at->name < name)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void history_release(struct history *history)
{
	free(history->operations);
	free(history->compares);
	free(history->parts);
	free(history->entries);
	free(history->by_name);
	for (int k = 0; k < history->key_count; k++)
		free(history->keys[k]);
	for (int p = 0; p < history->prefix_count; p++)
		free(history->prefixes[p]);
	*history = (struct history){0};
}
