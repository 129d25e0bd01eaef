/* SPDX-License-Identifier: MIT */
/*
 * clock_offset DESCRIPTOR: measure how the clock of a machine of tests/support/nfs differs from
 * ours. Prints two numbers of nanoseconds: the offset, which added to our CLOCK_MONOTONIC gives
 * that machine's, and the largest error of it. DESCRIPTOR is a connection to this program there:
 *
 * clock_offset: answer each byte of standard input with one line, the time.
 *
 * The machine reads its clock after we have sent the byte and before we have its answer. Of many
 * answers, use the one that came soonest.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define QUESTIONS 100

static int64_t nanoseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int answer(void)
{
	char byte;
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		char line[32];
		int length = snprintf(line, sizeof(line), "%" PRId64 "\n", nanoseconds());
		if (write(STDOUT_FILENO, line, (size_t)length) != length)
			return 1;
	}
	return 0;
}

/* Read one line from the machine, a byte at a time. False: the machine is gone. */
static bool read_time(int machine, int64_t *time)
{
	char line[32];
	size_t length = 0;
	while (length < sizeof(line) - 1 && read(machine, line + length, 1) == 1) {
		if (line[length++] != '\n')
			continue;
		line[length] = '\0';
		*time = strtoll(line, NULL, 10);
		return true;
	}
	return false;
}

static int ask(int machine)
{
	int64_t offset = 0, narrowest = INT64_MAX;
	for (int i = 0; i < QUESTIONS; i++) {
		int64_t there, before = nanoseconds();
		if (write(machine, "?", 1) != 1 || !read_time(machine, &there))
			return 1;
		int64_t width = nanoseconds() - before;
		if (width >= narrowest)
			continue;
		narrowest = width;
		offset = there - (before + width / 2);
	}
	printf("%" PRId64 " %" PRId64 "\n", offset, narrowest / 2 + 1);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return answer();
	if (ask(atoi(argv[1])) == 0)
		return 0;
	fprintf(stderr, "clock_offset: the machine is gone\n");
	return 1;
}
