/* SPDX-License-Identifier: MIT */
/*
 * The whole unit test harness: one program per file, TAP on stdout. CHECK is one test; main ends
 * with "return unit_end();", which exits 1 if one failed.
 */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int unit_count, unit_failures;

/* format begins with a blank; nothing behind it: the condition itself says what is shown. */
__attribute__((format(printf, 5, 6), unused)) static bool unit_check(bool held, const char *file,
	int line, const char *condition, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	printf("%sok %d -", held ? "" : "not ", ++unit_count);
	if (format[1])
		vprintf(format, arguments);
	else
		printf(" %s", condition);
	printf("\n");
	va_end(arguments);
	if (!held) {
		unit_failures++;
		printf("# %s at %s:%d\n", condition, file, line);
	}
	return held;
}

/* CHECK(condition) or CHECK(condition, "what it shows", ...); answers whether it held. */
#define CHECK(condition, ...)                                                                      \
	unit_check((condition), __FILE__, __LINE__, #condition, " " __VA_ARGS__)

__attribute__((unused)) static bool unit_check_text(const char *got, const char *wanted,
	const char *what, const char *file, int line)
{
	bool held = unit_check(!strcmp(got, wanted), file, line, what, " ");
	if (!held)
		printf("# got:    %s\n# wanted: %s\n", got, wanted);
	return held;
}

#define CHECK_TEXT(got, wanted) unit_check_text(got, wanted, #got, __FILE__, __LINE__)

static inline int unit_end(void)
{
	printf("1..%d\n", unit_count);
	return unit_failures ? 1 : 0;
}

#endif
