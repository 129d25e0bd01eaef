/* SPDX-License-Identifier: MIT */
/*
 * Parses all numbers, durations and names from outside. The whole string must be a value: decimal,
 * within its range, without signs and blanks. Each function returns STATUS_OK, or STATUS_USAGE with
 * an error that names `what` (an option, a variable) and the text.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Parse decimal digits, leading zeros allowed; min <= value <= max. */
enum status parse_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *value,
	const char *what, struct error *err);

/* Numbers, in the order in which they were given. Release with parse_numbers_release. */
struct parse_numbers {
	uint64_t *items;
	size_t count, room;
};
#define PARSE_NUMBERS_MAX 1000000 /* in one list */
/*
 * Add the numbers of a list with ranges, "3-7,9", each from 1 to max. After an error, numbers has
 * those before the refused one.
 */
enum status parse_numbers(const char *text, uint64_t max, struct parse_numbers *numbers,
	const char *what, struct error *err);
/* Sort the numbers and drop duplicates. */
void parse_numbers_sort(struct parse_numbers *numbers);
void parse_numbers_release(struct parse_numbers *numbers);

/*
 * Parse a duration into milliseconds: "90", "90s" (seconds), "250ms", "2m", "1h30m", "1d". Units
 * must come in descending order, each at most once, and there are no fractions. At most 100 years.
 */
enum status parse_duration(
	const char *text, int64_t *milliseconds, const char *what, struct error *err);

/*
 * Parse a number of bytes: "4096", "10K" and "10KiB" (1024), "10KB" (1000), up to E; no fractions.
 * At least 1.
 */
enum status parse_bytes(const char *text, uint64_t *bytes, const char *what, struct error *err);

/* Parse an instant "@SECONDS" after 1970 UTC, as date(1) takes it, into milliseconds. SECONDS: 1
 * to 253402300799 (the year 9999). */
enum status parse_instant(const char *text, int64_t *utc, const char *what, struct error *err);

/*
 * Check a name of a run, queue or the like: 1 to 128 bytes out of A-Z a-z 0-9 . _ : @ + - and not
 * starting with '.' or '-'. Names are used in keys and file names.
 */
enum status parse_name(const char *text, const char *what, struct error *err);

/* Parse a signal: a name (TERM or SIGTERM) or a number. */
enum status parse_signal(const char *text, int *number, const char *what, struct error *err);
/* Add the signals of a list, "TERM,USR1" (NULL: none), to set: after an error, those before it. */
enum status parse_signals(const char *list, sigset_t *set, const char *what, struct error *err);

/* Return true if word is one of words; *index is then its index. */
bool parse_word(const char *const *words, size_t count, const char *word, size_t *index);

/*
 * Return the one of words that the user probably meant: it differs from word in a few letters, or
 * is the only one that begins with word. NULL: none.
 */
const char *parse_nearest(const char *const *words, size_t count, const char *word);

/* Read a decimal of at most 18 digits without leading zeros. False: text is not one. */
bool parse_decimal(const char *text, uint64_t *value);

#endif
