// SPDX-License-Identifier: MIT
#include "training.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint32_t task, tasks = 1;

_Noreturn void fail(const char *format, ...)
{
	char message[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	fprintf(stderr, "train: task %" PRIu32 ": %s\n", task, message);
	exit(1);
}

char *path_of(char path[PATH_SIZE], const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(path, PATH_SIZE, format, arguments);
	va_end(arguments);
	if (length < 0 || length >= PATH_SIZE)
		fail("a path is too long: %.60s...", path);
	return path;
}

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);
	if (!memory)
		fail("out of memory");
	return memory;
}

double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void sleep_for(double seconds)
{
	if (seconds <= 0)
		return;
	struct timespec rest = {.tv_sec = (time_t)seconds};
	rest.tv_nsec = (long)((seconds - (double)rest.tv_sec) * 1e9);
	while (nanosleep(&rest, &rest) && errno == EINTR)
		;
}

uint64_t hash(uint64_t start, const void *bytes, size_t size)
{
	for (const unsigned char *byte = bytes; size--; byte++)
		start = (start ^ *byte) * 1099511628211u;
	return start;
}

// The mixing function of splitmix64, once per number.
uint64_t random_at(uint64_t seed, uint64_t stream, uint64_t index)
{
	const uint64_t number[] = {stream, index};
	for (int i = 0; i < 2; i++) {
		seed += 0x9e3779b97f4a7c15u * (number[i] + 1);
		seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
		seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
		seed ^= seed >> 31;
	}
	return seed;
}
