/* SPDX-License-Identifier: MIT */
/*
 * The stderr of a command, of which one line says why it failed. A line that begins with a digit
 * comes that number of times 10 seconds after the one before it.
 */
#include "agent/children/error_line.h"

#include <stdlib.h>
#include <string.h>

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error_line state = {0};
	const uint8_t *at = data;
	size_t left = size, count = 0;
	int64_t now = 1000;
	char *lines[64];
	while (count < 64 && (lines[count] = fuzz_next(&at, &left, '\n'))) {
		const char *line = lines[count++];
		if (*line >= '0' && *line <= '9')
			now += (*line - '0') * 10000;
		error_line_take(&state, line, now);
		FUZZ_HOLDS(memchr(state.last, '\0', sizeof(state.last)));
		FUZZ_HOLDS(memchr(state.exception, '\0', sizeof(state.exception)));
	}
	/* It is one of the lines, or the beginning of a long one; the last one when it is late. */
	const char *best = error_line_best(&state, now);
	bool found = !*best;
	for (size_t i = 0; i < count; i++)
		found |= !strncmp(lines[i], best, ERROR_LINE - 1);
	FUZZ_HOLDS(found && (!*best == !*state.last));
	FUZZ_HOLDS(!strcmp(error_line_best(&state, now + 1000000), state.last));
	while (count > 0)
		free(lines[--count]);
	return 0;
}
