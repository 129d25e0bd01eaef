/* SPDX-License-Identifier: MIT */
#include "lines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/ending.h"

enum status lines_read(struct lines *lines, bool wait, struct error *err)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	ending_wait(&in, 1, wait ? CLOCK_NEVER : clock_now());
	if (!in.revents)
		return STATUS_NO;
	memmove(lines->bytes, lines->bytes + lines->begin, lines->end - lines->begin);
	lines->end -= lines->begin;
	lines->begin = 0;
	ssize_t got =
		read(STDIN_FILENO, lines->bytes + lines->end, sizeof(lines->bytes) - lines->end);
	if (got < 0 && errno != EINTR && errno != EAGAIN)
		return error_set(err, error_status_of_errno(errno), "cannot read stdin: %s",
			strerror(errno));
	if (got < 0)
		return STATUS_NO;
	lines->end += (size_t)got;
	lines->over = got == 0;
	return STATUS_OK;
}

enum status lines_next(struct lines *lines, char **line, size_t *length, struct error *err)
{
	char *start = lines->bytes + lines->begin;
	size_t left = lines->end - lines->begin;
	char *end = memchr(start, lines->end_of_line, left);
	if (!end && lines->over && left && lines->end < sizeof(lines->bytes))
		end = start + left;
	lines->line += end != NULL;
	*length = end ? (size_t)(end - start) : left;
	if (*length > QUEUE_ITEM_MAX)
		return error_set(err, STATUS_USAGE, "line %" PRIu64 " has more than %d bytes",
			lines->line + !end, QUEUE_ITEM_MAX);
	if (!end)
		return STATUS_NO;
	*end = '\0';
	*line = start;
	lines->begin = (size_t)(end - lines->bytes) + 1;
	if (lines->begin > lines->end)
		lines->begin = lines->end;
	if (strlen(start) < *length)
		return error_set(err, STATUS_USAGE,
			"line %" PRIu64 " has a NUL in it: are these lines for -0?", lines->line);
	return STATUS_OK;
}
