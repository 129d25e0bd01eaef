/* SPDX-License-Identifier: MIT */
/*
 * The whole unit test harness: one program per file, TAP on stdout; main ends with
 * "return unit_end();", which exits 1 if a test failed.
 *
 *	CHECK(a == b);                          one test
 *	CHECK(a == b, "row %d: they agree", i); one test, with a name
 *	TEST("what it shows") { CHECK(a); CHECK_EQ(b, 3); }   one test of several checks
 */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int unit_count, unit_failures;
static const char *unit_name; /* of the TEST we are in */
static bool unit_bad;	      /* a check in it has failed */

static inline bool unit_begin(const char *name)
{
	if (unit_name) {
		printf("%sok %d - %s\n", unit_bad ? "not " : "", ++unit_count, unit_name);
		unit_failures += unit_bad;
		fflush(stdout);
	}
	unit_bad = false;
	unit_name = name;
	return name != NULL;
}

static inline int unit_end(void)
{
	unit_begin(NULL);
	printf("1..%d\n", unit_count);
	return unit_failures ? 1 : 0;
}

#define TEST(name) if (unit_begin(name))

/* format begins with a blank; nothing behind it: the condition itself says what is shown. */
__attribute__((format(printf, 5, 6), unused)) static bool unit_check(
	bool held, const char *file, int line, const char *condition, const char *format, ...)
{
	if (!held)
		printf("# %s:%d: not true: %s\n", file, line, condition);
	if (unit_name) {
		unit_bad |= !held;
		return held;
	}
	va_list arguments;
	va_start(arguments, format);
	printf("%sok %d -", held ? "" : "not ", ++unit_count);
	if (format[1])
		vprintf(format, arguments);
	else
		printf(" %s", condition);
	printf("\n");
	fflush(stdout); /* the next one may crash */
	va_end(arguments);
	unit_failures += !held;
	return held;
}

__attribute__((unused)) static bool unit_check_text(
	const char *got, const char *wanted, const char *what, const char *file, int line)
{
	bool held = unit_check(got && !strcmp(got, wanted), file, line, what, " ");
	if (!held)
		printf("# got:    %s\n# wanted: %s\n", got ? got : "(null)", wanted);
	return held;
}

__attribute__((unused)) static bool unit_check_equal(
	long long got, long long wanted, const char *what, const char *file, int line)
{
	bool held = unit_check(got == wanted, file, line, what, " ");
	if (!held)
		printf("# got:    %lld\n# wanted: %lld\n", got, wanted);
	return held;
}

/* Each answers whether it held. */
#define CHECK(condition, ...)                                                                      \
	unit_check((condition), __FILE__, __LINE__, #condition, " " __VA_ARGS__)
#define CHECK_TEXT(got, wanted) unit_check_text(got, wanted, #got, __FILE__, __LINE__)
#define CHECK_EQ(got, wanted)                                                                      \
	unit_check_equal(                                                                          \
		(long long)(got), (long long)(wanted), #got " == " #wanted, __FILE__, __LINE__)

#endif
