/* SPDX-License-Identifier: MIT */
/*
 * Words from a command line or the environment. The first byte of an input says what the rest is:
 * 'p' numbers, durations, sizes, names, signals; 's' a set of tasks.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "live/progress.h"
#include "proto/keys.h"
#include "support/fuzz.h"

static void check_numbers(const char *text)
{
	struct error err;
	uint64_t value;
	int64_t time;
	int number;
	char again[32];
	if (parse_unsigned(text, 5, 500, &value, "n", &err) == STATUS_OK)
		FUZZ_HOLDS(value >= 5 && value <= 500);
	struct parse_numbers numbers = {0};
	if (parse_numbers(text, 5000, &numbers, "n", &err) == STATUS_OK) {
		FUZZ_HOLDS(numbers.count >= 1 && numbers.count <= PARSE_NUMBERS_MAX);
		size_t count = numbers.count;
		parse_numbers_sort(&numbers);
		FUZZ_HOLDS(numbers.count <= count && numbers.items[0] >= 1 &&
			   numbers.items[numbers.count - 1] <= 5000);
	}
	parse_numbers_release(&numbers);
	if (parse_decimal(text, &value)) {
		snprintf(again, sizeof(again), "%" PRIu64, value);
		FUZZ_HOLDS(strcmp(again, text) == 0);
	}
	if (parse_duration(text, &time, "d", &err) == STATUS_OK) {
		int64_t same;
		FUZZ_HOLDS(time >= 0 && time <= (int64_t)100 * 366 * 86400000);
		snprintf(again, sizeof(again), "%" PRId64 "ms", time);
		FUZZ_HOLDS(parse_duration(again, &same, "d", &err) == STATUS_OK && same == time);
	}
	if (parse_bytes(text, &value, "b", &err) == STATUS_OK)
		FUZZ_HOLDS(value >= 1);
	if (parse_instant(text, &time, "i", &err) == STATUS_OK) {
		char utc[32];
		FUZZ_HOLDS(time > 0);
		clock_format_utc(time, utc);
	}
	if (parse_signal(text, &number, "s", &err) == STATUS_OK)
		FUZZ_HOLDS(number > 0 && number < SIGRTMIN);
}

static void check_names(const char *text)
{
	static const char *const words[] = {"keep-last", "keep-best", "help", "a", "", "restarts"};
	struct progress_rules rules = {0};
	struct error err;
	size_t index;
	char shown[64];
	if (parse_name(text, "n", &err) == STATUS_OK)
		FUZZ_HOLDS(strlen(text) <= 128 && !strchr(text, '/') && *text != '.');
	const char *near = parse_nearest(words, 6, text);
	FUZZ_HOLDS(!near || parse_word(words, 6, near, &index));
	for (int i = 0; i < 2; i++)
		if (progress_add_section(&rules, text, &err) == STATUS_OK)
			FUZZ_HOLDS(rules.count == 1 && rules.sections[0].limit >= 0);
	text_escape(shown, sizeof(shown), text, strlen(text));
	for (const char *at = shown; *at; at++)
		FUZZ_HOLDS((unsigned char)*at >= ' ' && *at != 0x7f);
	FUZZ_HOLDS(text_is_utf8(shown, strlen(shown)) && !strstr(shown, "\xc2\x9b") &&
		   !strstr(shown, "\xe2\x80\xae"));
	struct text quoted = {0};
	text_add_shell_word(&quoted, text);
	text_add_json_string(&quoted, text);
	FUZZ_HOLDS(!quoted.too_long);
	text_release(&quoted);
}

static void check_set(const char *text)
{
	bool set[300] = {false}, again[300] = {false};
	struct text written = {0};
	if (!keys_read_set(text, 300, set))
		return;
	keys_write_marks(300, set, &written);
	FUZZ_HOLDS(keys_read_set(text_string(&written), 300, again));
	FUZZ_HOLDS(memcmp(set, again, sizeof(set)) == 0);
	text_release(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *text = fuzz_text(data + 1, size - 1);
	switch (*data) {
	case 'p':
		check_numbers(text);
		check_names(text);
		break;
	case 's': check_set(text); break;
	}
	free(text);
	return 0;
}
