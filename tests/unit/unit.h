/* SPDX-License-Identifier: MIT */
/*
 * Unit tests: one program per file, TAP on stdout. CHECK(condition) is one test; main ends with
 * "return unit_end();", which exits 1 if one failed.
 */
#ifndef UNIT_H
#define UNIT_H

#include <stdio.h>
#include <string.h>

static int unit_count, unit_failed;

static inline void unit_check(int good, const char *what, const char *file, int line)
{
	unit_count++;
	printf("%sok %d - %s\n", good ? "" : "not ", unit_count, what);
	fflush(stdout); /* the next one may crash */
	if (!good) {
		unit_failed++;
		printf("# %s:%d\n", file, line);
	}
}

static inline void unit_check_text(
	const char *got, const char *wanted, const char *what, const char *file, int line)
{
	unit_check(!strcmp(got, wanted), what, file, line);
	if (strcmp(got, wanted) != 0)
		printf("# got:    %s\n# wanted: %s\n", got, wanted);
}

#define CHECK(condition)	unit_check((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define CHECK_TEXT(got, wanted) unit_check_text(got, wanted, #got, __FILE__, __LINE__)

static inline int unit_end(void)
{
	printf("1..%d\n", unit_count);
	return unit_failed ? 1 : 0;
}

#endif
