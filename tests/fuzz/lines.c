/* SPDX-License-Identifier: MIT */
/*
 * preempt-queue add --lines. The first byte of an input says where lines end ('0': at a NUL) and in
 * what portions they come; the rest is stdin. Each line is filled into a command and by a worker.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/preempt-queue/lines.h"
#include "queue/template.h"
#include "support/fuzz.h"

/* A line as a command, and as a word of one. */
static void fill(const char *line, size_t length)
{
	char *nothing[] = {NULL}, *words[] = {(char *)"run", (char *)"-f={}", (char *)"{{}", NULL};
	char **const templates[] = {nothing, words};
	for (size_t i = 0; i < 2; i++) {
		char **filled, **made = template_fill_line(templates[i], line, length);
		FUZZ_HOLDS(made);
		if (template_fill_worker(made, "w1", 2, &filled, NULL) == STATUS_OK) {
			/* A line is data: nothing in it is treated as a placeholder. */
			FUZZ_HOLDS(i == 0 || strcmp(filled[1] + 3, line) == 0);
			template_free(filled);
		} else {
			FUZZ_HOLDS(i == 0);
		}
		template_free(made);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lines lines;
	struct error err;
	enum status status = STATUS_NO;
	int ends[2];
	if (size < 1 || size > 60000 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return 0;
	char stop = *data == '0' ? '\0' : '\n';
	size_t portion = 1 + (size_t)*data * *data, at = 1, expected = 1, length;
	lines = (struct lines){.end_of_line = stop};
	FUZZ_HOLDS(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
	close(ends[0]);
	for (char *line; status == STATUS_NO && !lines.over;) {
		size_t some = size - at < portion ? size - at : portion;
		FUZZ_HOLDS(write(ends[1], data + at, some) == (ssize_t)some);
		at += some;
		if (at == size)
			close(ends[1]);
		FUZZ_HOLDS(lines_read(&lines, false, &err) == STATUS_OK);
		while ((status = lines_next(&lines, &line, &length, &err)) == STATUS_OK) {
			/* All lines come, in their order. */
			FUZZ_HOLDS(length <= size - expected);
			FUZZ_HOLDS(memcmp(line, data + expected, length) == 0);
			FUZZ_HOLDS(strlen(line) == length);
			expected += length + 1;
			fill(line, length);
		}
		/* (The end shows only in a further reading.) */
		if (status == STATUS_NO && at == size && !lines.over)
			FUZZ_HOLDS(lines_read(&lines, false, &err) == STATUS_OK);
		while (status == STATUS_NO && lines.over &&
			(status = lines_next(&lines, &line, &length, &err)) == STATUS_OK) {
			expected += length + 1;
			fill(line, length);
			status = STATUS_NO;
		}
	}
	FUZZ_HOLDS(status != STATUS_NO || expected >= size);
	if (at < size)
		close(ends[1]);
	return 0;
}
