/* SPDX-License-Identifier: MIT */
/* The whole unit test harness: CHECK prints one TAP line; end main with return unit_end(). */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int unit_count, unit_failures;

__attribute__((format(printf, 4, 5), unused)) static bool unit_check(
	bool held, const char *file, int line, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	printf("%sok %d - ", held ? "" : "not ", ++unit_count);
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	if (!held) {
		unit_failures++;
		printf("# at %s:%d\n", file, line);
	}
	return held;
}

/* CHECK(condition, "what it shows", ...) answers whether the condition held. */
#define CHECK(condition, ...) unit_check((condition), __FILE__, __LINE__, __VA_ARGS__)

static inline int unit_end(void)
{
	printf("1..%d\n", unit_count);
	return unit_failures ? 1 : 0;
}

#endif
