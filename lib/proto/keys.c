/* SPDX-License-Identifier: MIT */
#include "proto/keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"

void attempt_name(struct attempt *attempt, const char *run, uint64_t number, uint64_t tasks)
{
	*attempt = (struct attempt){.number = number, .tasks = tasks};
	snprintf(attempt->run, sizeof(attempt->run), "%s", run);
	snprintf(attempt->prefix, sizeof(attempt->prefix), "run/%s/%06llu/", attempt->run,
		(unsigned long long)number);
}

void keys_group(const struct attempt *attempt, char group[KEYS_GROUP])
{
	snprintf(group, KEYS_GROUP, "%s/%06llu", attempt->run, (unsigned long long)attempt->number);
}

void keys_of(const struct attempt *attempt, char key[KEYS_MAX], const char *format, ...)
{
	va_list arguments;
	int length = snprintf(key, KEYS_MAX, "%s", attempt->prefix);
	va_start(arguments, format);
	vsnprintf(key + length, KEYS_MAX - (size_t)length, format, arguments);
	va_end(arguments);
}

void keys_decision(uint64_t round, char name[64])
{
	if (round == 1)
		snprintf(name, 64, "RUN_TO_CHECKPOINT");
	else
		snprintf(name, 64, "LAST_RUN_TO_CHECKPOINT/%llu", (unsigned long long)round);
}

static const char *const then_words[] = {"exit", "continue", "stop"};
static const char *const kind_words[] = {"save", "exit", "each", "none"};
static const char *const reason_words[] = {
	"", "completed", "saved", "preempted", "failed", "peer", "left"};
static const char *const death_words[] = {"silent", "gone", "restarted", "hung"};

#define WORDS(table) (sizeof(table) / sizeof((table)[0]))

const char *keys_then_word(enum agreement_then then)
{
	return then_words[then];
}

bool keys_then_parse(const char *word, enum agreement_then *then)
{
	size_t index;
	if (!parse_word(then_words, WORDS(then_words), word, &index))
		return false;
	*then = (enum agreement_then)index;
	return true;
}

const char *keys_kind_word(enum agreement_kind kind)
{
	return kind_words[kind];
}

bool keys_kind_parse(const char *word, enum agreement_kind *kind)
{
	size_t index;
	if (!parse_word(kind_words, WORDS(kind_words), word, &index))
		return false;
	*kind = (enum agreement_kind)index;
	return true;
}

const char *keys_reason_word(enum agreement_reason reason)
{
	return reason_words[reason];
}

bool keys_reason_parse(const char *word, enum agreement_reason *reason)
{
	size_t index;
	if (!*word || !parse_word(reason_words, WORDS(reason_words), word, &index))
		return false;
	*reason = (enum agreement_reason)index;
	return true;
}

const char *keys_death_word(enum death_cause cause)
{
	return death_words[cause];
}

void keys_write_set(uint64_t tasks, bool (*chosen)(const void *context, uint64_t task),
	const void *context, struct text *text)
{
	struct text_ranges ranges = {.text = text};
	for (uint64_t task = 0; task < tasks; task++)
		if (chosen(context, task))
			text_range(&ranges, task);
	text_ranges_end(&ranges);
}

static bool is_marked(const void *context, uint64_t task)
{
	const bool *marks = context;
	return marks[task];
}

void keys_write_marks(uint64_t tasks, const bool *marks, struct text *text)
{
	keys_write_set(tasks, is_marked, marks, text);
}

bool keys_read_set(const char *text, uint64_t tasks, bool *set)
{
	while (*text) {
		char *end;
		if (*text < '0' || *text > '9')
			return false;
		uint64_t first = strtoull(text, &end, 10);
		uint64_t last = first;
		if (*end == '-') {
			if (end[1] < '0' || end[1] > '9')
				return false;
			last = strtoull(end + 1, &end, 10);
		}
		if (first > last || last >= tasks || (*end && *end != ','))
			return false;
		for (uint64_t i = first; i <= last; i++)
			set[i] = true;
		text = *end ? end + 1 : end;
		if (*end == ',' && !*text)
			return false;
	}
	return true;
}

void keys_error_class(const char *line, char class[64])
{
	static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *rank = *line == '[' ? strstr(line, "]:") : NULL;
	if (rank)
		line = rank + 2 + strspn(rank + 2, " ");
	for (const char *at = line; (at = strpbrk(line, ".: ")) && *at == '.';)
		line = at + 1;
	size_t length = strcspn(line, ": ");
	size_t shout = strspn(line, capitals);
	bool named = shout && shout < length && length < 64 && line[length] != ' ' &&
		     (strcspn(line + 1, capitals) + 1 < length ||
			     (length == 9 && !strncmp(line, "Exception", 9)));
	snprintf(class, 64, "%.*s", named ? (int)length : 0, line);
}
