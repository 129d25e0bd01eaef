/* SPDX-License-Identifier: MIT */
/*
 * A unit test is a program: TEST("what it shows") { CHECK(...); } in main, then return unit_end().
 * Prints TAP; a failed CHECK says where and fails its test.
 */
#ifndef UNIT_H
#define UNIT_H

#include <stdio.h>
#include <string.h>

static int unit_count, unit_failures, unit_bad;
static const char *unit_name;

static inline int unit_finish(void)
{
	if (unit_name)
		printf("%sok %d - %s\n", unit_bad ? "not " : "", ++unit_count, unit_name);
	unit_failures += unit_bad;
	unit_bad = 0;
	unit_name = NULL;
	fflush(stdout);
	return 1;
}

static inline int unit_end(void)
{
	unit_finish();
	printf("1..%d\n", unit_count);
	return unit_failures != 0;
}

#define TEST(name) if (unit_finish() && (unit_name = (name)))
#define CHECK(expr)                                                                                \
	((expr) ? (void)0                                                                          \
		: (void)(unit_bad = 1,                                                             \
			  printf("# %s:%d: not true: %s\n", __FILE__, __LINE__, #expr)))
#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long unit_a = (long long)(a), unit_b = (long long)(b);                        \
		if (unit_a != unit_b)                                                              \
			unit_bad = 1, printf("# %s:%d: %s is %lld, not %lld\n", __FILE__,          \
					      __LINE__, #a, unit_a, unit_b);                       \
	} while (0)
#define CHECK_TEXT(a, b)                                                                           \
	do {                                                                                       \
		const char *unit_a = (a), *unit_b = (b);                                           \
		if (!unit_a || strcmp(unit_a, unit_b))                                             \
			unit_bad = 1, printf("# %s:%d: %s is \"%s\", not \"%s\"\n", __FILE__,      \
					      __LINE__, #a, unit_a ? unit_a : "(null)", unit_b);   \
	} while (0)

#endif
