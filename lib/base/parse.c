/* SPDX-License-Identifier: MIT */
#include "base/parse.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* Read the number at *text, and move *text behind it. False: no digit, or too large. */
static bool digits(const char **text, uint64_t *value)
{
	const char *s = *text;
	uint64_t sum = 0;
	for (; *s >= '0' && *s <= '9'; s++) {
		uint64_t digit = (uint64_t)(*s - '0');
		if (sum > (UINT64_MAX - digit) / 10)
			return false;
		sum = sum * 10 + digit;
	}
	if (s == *text)
		return false;
	*text = s;
	*value = sum;
	return true;
}

enum status parse_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *value,
	const char *what, struct error *err)
{
	const char *end = text;
	uint64_t number;
	if (!digits(&end, &number) || *end != '\0')
		return error_set(err, STATUS_USAGE, "%s: \"%s\" is not a whole number", what, text);
	if (number < min || number > max)
		return error_set(err, STATUS_USAGE, "%s: %s is not between %llu and %llu", what,
			text, (unsigned long long)min, (unsigned long long)max);
	*value = number;
	return STATUS_OK;
}

enum status parse_numbers(const char *text, uint64_t max, struct parse_numbers *numbers,
	const char *what, struct error *err)
{
	for (const char *at = text;; at++) {
		uint64_t first, last;
		bool good = digits(&at, &first);
		last = first;
		if (good && *at == '-') {
			at++;
			good = digits(&at, &last);
		}
		if (!good || (*at && *at != ',') || first < 1 || last > max || first > last)
			return error_set(err, STATUS_USAGE,
				"%s: \"%s\" is neither a number from 1 to %" PRIu64
				" nor a list of them and of ranges, like 3-7,9",
				what, text, max);
		if (last - first >= PARSE_NUMBERS_MAX - numbers->count)
			return error_set(err, STATUS_USAGE, "%s: more than %d numbers: give fewer",
				what, PARSE_NUMBERS_MAX);
		for (; first <= last; first++) {
			numbers->items = xgrow(numbers->items, numbers->count, &numbers->room,
				sizeof(*numbers->items));
			numbers->items[numbers->count++] = first;
		}
		if (!*at)
			return STATUS_OK;
	}
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
	return one < other ? -1 : one > other;
}

void parse_numbers_sort(struct parse_numbers *numbers)
{
	size_t count = 0;
	if (numbers->count)
		qsort(numbers->items, numbers->count, sizeof(*numbers->items), compare_numbers);
	for (size_t i = 0; i < numbers->count; i++)
		if (!count || numbers->items[count - 1] != numbers->items[i])
			numbers->items[count++] = numbers->items[i];
	numbers->count = count;
}

void parse_numbers_release(struct parse_numbers *numbers)
{
	free(numbers->items);
	*numbers = (struct parse_numbers){0};
}

enum status parse_duration(
	const char *text, int64_t *milliseconds, const char *what, struct error *err)
{
	static const struct {
		const char *name;
		uint64_t milliseconds;
	} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
	const uint64_t longest = 100 * 366 * 86400000ull;
	const char *s = text;
	uint64_t total = 0;
	size_t next = 0; /* in units: the largest that may still come */

	do {
		uint64_t number;
		if (!digits(&s, &number))
			goto malformed;
		size_t length = strspn(s, "dhms");
		size_t unit = 3; /* seconds, if none is written */
		if (length == 0 && (*s != '\0' || total || next))
			goto malformed;
		if (length) {
			for (unit = next; unit < sizeof(units) / sizeof(units[0]); unit++)
				if (strlen(units[unit].name) == length &&
					!strncmp(s, units[unit].name, length))
					break;
			if (unit == sizeof(units) / sizeof(units[0]))
				goto malformed;
		}
		s += length;
		next = unit + 1;
		if (number > longest / units[unit].milliseconds)
			return error_set(err, STATUS_USAGE, "%s: \"%s\" is longer than 100 years",
				what, text);
		total += number * units[unit].milliseconds;
	} while (*s);
	if (total > longest)
		return error_set(
			err, STATUS_USAGE, "%s: \"%s\" is longer than 100 years", what, text);
	*milliseconds = (int64_t)total;
	return STATUS_OK;

malformed:
	return error_set(err, STATUS_USAGE,
		"%s: \"%s\" is not a duration; write 90, 90s, 2m, 1h30m or 250ms", what, text);
}

enum status parse_bytes(const char *text, uint64_t *bytes, const char *what, struct error *err)
{
	static const char units[] = "KMGTPE";
	const char *s = text;
	uint64_t number, factor = 1;
	if (!digits(&s, &number))
		goto malformed;
	const char *unit = *s ? strchr(units, *s == 'k' ? 'K' : *s) : NULL;
	if (*s && !unit)
		goto malformed;
	if (unit) {
		bool thousands = strcmp(s + 1, "B") == 0;
		if (s[1] && !thousands && strcmp(s + 1, "iB") != 0)
			goto malformed;
		for (const char *at = units; at <= unit; at++)
			factor *= thousands ? 1000 : 1024;
	}
	if (number == 0 || number > UINT64_MAX / factor)
		return error_set(
			err, STATUS_USAGE, "%s: %s is not between 1 and 16 EiB", what, text);
	*bytes = number * factor;
	return STATUS_OK;

malformed:
	return error_set(err, STATUS_USAGE,
		"%s: \"%s\" is not a number of bytes; write 4096, 10G (1024) or 10GB (1000)", what,
		text);
}

enum status parse_instant(const char *text, int64_t *utc, const char *what, struct error *err)
{
	uint64_t seconds;
	if (*text != '@')
		return error_set(err, STATUS_USAGE,
			"%s: \"%s\" is not an instant; write @SECONDS, as date +@%%s prints it",
			what, text);
	enum status status = parse_unsigned(text + 1, 1, 253402300799, &seconds, what, err);
	if (status == STATUS_OK)
		*utc = (int64_t)seconds * 1000;
	return status;
}

enum status parse_name(const char *text, const char *what, struct error *err)
{
	const char *allowed =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@+-";
	size_t length = strlen(text);
	if (length == 0 || length > 128 || *text == '.' || *text == '-' ||
		text[strspn(text, allowed)] != '\0')
		return error_set(err, STATUS_USAGE,
			"%s: \"%s\" is not a name; use 1 to 128 letters, digits and . _ : @ + -, "
			"not starting with . or -",
			what, text);
	return STATUS_OK;
}

enum status parse_signal(const char *text, int *number, const char *what, struct error *err)
{
	uint64_t value;
	const char *name = strncmp(text, "SIG", 3) ? text : text + 3;
	/* Threads use 32 and 33, which have no name. */
	if (parse_decimal(text, &value) && value < (uint64_t)SIGRTMIN && sigabbrev_np((int)value)) {
		*number = (int)value;
		return STATUS_OK;
	}
	for (int signal = 1; signal < SIGRTMIN; signal++) {
		const char *known = sigabbrev_np(signal);
		if (known && !strcmp(known, name)) {
			*number = signal;
			return STATUS_OK;
		}
	}
	return error_set(
		err, STATUS_USAGE, "%s: \"%s\" is not a signal; write TERM, USR1, ...", what, text);
}

enum status parse_signals(const char *list, sigset_t *set, const char *what, struct error *err)
{
	enum status status = STATUS_OK;
	for (const char *at = list && *list ? list : NULL; at && status == STATUS_OK;) {
		char name[32];
		int number, length = (int)strcspn(at, ",");
		snprintf(name, sizeof(name), "%.*s", length, at);
		status = parse_signal(name, &number, what, err);
		if (status == STATUS_OK)
			sigaddset(set, number);
		at = at[length] == ',' ? at + length + 1 : NULL;
	}
	return status;
}

bool parse_word(const char *const *words, size_t count, const char *word, size_t *index)
{
	for (*index = 0; *index < count; ++*index)
		if (!strcmp(words[*index], word))
			return true;
	return false;
}

#define NEAREST_LONGEST 32 /* bytes; longer words are not compared */

/* How many letters must be added, removed or replaced to turn a into b. */
static size_t distance(const char *a, const char *b)
{
	size_t row[NEAREST_LONGEST + 1];
	for (size_t k = 0; k <= strlen(b); k++)
		row[k] = k;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t k = 0; b[k]; k++) {
			size_t replaced = diagonal + (a[i] != b[k]);
			diagonal = row[k + 1];
			size_t shifted = (row[k] < diagonal ? row[k] : diagonal) + 1;
			row[k + 1] = replaced < shifted ? replaced : shifted;
		}
	}
	return row[strlen(b)];
}

const char *parse_nearest(const char *const *words, size_t count, const char *word)
{
	size_t length = strlen(word), beginnings = 0;
	size_t least = length < 4 ? 2 : 3; /* a similar word has a smaller distance */
	const char *best = NULL, *begins = NULL;
	for (size_t i = 0; i < count && length <= NEAREST_LONGEST; i++) {
		if (strlen(words[i]) > NEAREST_LONGEST)
			continue;
		size_t away = distance(word, words[i]);
		if (away < least && away < length) {
			least = away;
			best = words[i];
		}
		if (length > 1 && !strncmp(words[i], word, length)) {
			begins = words[i];
			beginnings++;
		}
	}
	return best ? best : beginnings == 1 ? begins : NULL;
}

bool parse_decimal(const char *text, uint64_t *value)
{
	const char *end = text;
	uint64_t number;
	if (!digits(&end, &number) || *end || end - text > 18 || (*text == '0' && text[1]))
		return false;
	*value = number;
	return true;
}
