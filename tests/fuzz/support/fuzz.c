/* SPDX-License-Identifier: MIT */
#include "support/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

_Noreturn void fuzz_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
	abort();
}

char *fuzz_text(const void *data, size_t size)
{
	char *text = malloc(size + 1);
	FUZZ_HOLDS(text);
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

char *fuzz_next(const uint8_t **data, size_t *size, char stop)
{
	if (*size == 0)
		return NULL;
	const uint8_t *end = memchr(*data, stop, *size);
	size_t length = end ? (size_t)(end - *data) : *size;
	char *part = fuzz_text(*data, length);
	*data += length + (end != NULL);
	*size -= length + (end != NULL);
	return part;
}

/* ---- Files ---- */

static char path[256];
static int directory = -1;

void fuzz_clear(void)
{
	if (directory < 0)
		return;
	close(directory);
	directory = -1;
	(void)file_remove_tree(path, NULL);
}

static void make_directory(void)
{
	static bool known;
	const char *parent = getenv("TMPDIR");
	if (directory >= 0)
		return;
	if (!known)
		atexit(fuzz_clear);
	known = true;
	snprintf(path, sizeof(path), "%.200s/fuzz-XXXXXX", parent ? parent : "/dev/shm");
	FUZZ_HOLDS(mkdtemp(path));
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_HOLDS(directory >= 0);
}

const char *fuzz_path(void)
{
	make_directory();
	return path;
}

int fuzz_directory(void)
{
	make_directory();
	return directory;
}

bool fuzz_write(const char *name, const void *bytes, size_t length)
{
	make_directory();
	if (!*name || strlen(name) > 100 || strchr(name, '/') || strspn(name, ".") == strlen(name))
		return false;
	int file = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool written = file >= 0 && file_write_all(file, bytes, length) == 0;
	if (file >= 0)
		close(file);
	return written;
}
