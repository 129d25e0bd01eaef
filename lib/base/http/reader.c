/* SPDX-License-Identifier: MIT */
#include "base/http/reader.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEAD_MOST ((size_t)64 << 10) /* most bytes of the lines up to a body */
#define DIGITS	  "0123456789"

void http_reader_release(struct http_reader *reader)
{
	text_release(&reader->line);
}

void http_reader_start(struct http_reader *reader)
{
	http_reader_release(reader);
	*reader = (struct http_reader){.sized = -1};
}

/* Read a number of 1 to 15 digits; -1: it is not one. */
static int64_t number_of(const char *digits, size_t length)
{
	int64_t number = 0;
	if (length == 0 || length > 15 || strspn(digits, DIGITS) < length)
		return -1;
	for (size_t i = 0; i < length; i++)
		number = number * 10 + digits[i] - '0';
	return number;
}

/* Read a line like "HTTP/1.1 200 OK". */
static enum http_reading read_status(struct http_reader *reader, const char *line)
{
	if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
		line[8] != ' ')
		return HTTP_READ_WRONG;
	int64_t code = number_of(line + 9, strcspn(line + 9, " "));
	if (code < 100 || code > 999)
		return HTTP_READ_WRONG;
	reader->code = (int)code;
	reader->keeps = line[7] == '1';
	return HTTP_READ_HEADER;
}

const char *http_header_value(const char *line, const char *name)
{
	size_t length = strlen(name);
	if (strncasecmp(line, name, length) != 0 || line[length] != ':')
		return NULL;
	line += length + 1;
	return line + strspn(line, " \t");
}

static enum http_reading read_length(struct http_reader *reader, const char *value)
{
	int64_t length = number_of(value, strcspn(value, " \t"));
	if (length < 0 || (reader->sized >= 0 && reader->sized != length))
		return HTTP_READ_WRONG;
	reader->sized = length;
	return HTTP_READ_HEADER;
}

/* The header has ended: return what is read next. */
static enum http_reading begin_body(struct http_reader *reader)
{
	if (reader->code < 200) { /* interim: the final answer follows */
		reader->sized = -1;
		reader->chunked = false;
		return reader->code == 101 ? HTTP_READ_WRONG : HTTP_READ_STATUS;
	}
	if (reader->code == 204 || reader->code == 304)
		return HTTP_READ_ENDED;
	if (reader->chunked)
		return HTTP_READ_CHUNK;
	if (reader->sized < 0) {
		reader->keeps = false;
		return HTTP_READ_OPEN;
	}
	reader->left = (uint64_t)reader->sized;
	return reader->left ? HTTP_READ_SIZED : HTTP_READ_ENDED;
}

static enum http_reading read_header(struct http_reader *reader, const char *line)
{
	const char *value;
	if (!*line)
		return begin_body(reader);
	if ((value = http_header_value(line, "Content-Length")))
		return read_length(reader, value);
	if ((value = http_header_value(line, "Transfer-Encoding"))) {
		reader->chunked = !strcasecmp(value, "chunked");
		return reader->chunked ? HTTP_READ_HEADER : HTTP_READ_WRONG;
	}
	if ((value = http_header_value(line, "Connection")) && !strncasecmp(value, "close", 5))
		reader->keeps = false;
	return strchr(line, ':') ? HTTP_READ_HEADER : HTTP_READ_WRONG;
}

/* Read a line like "1f4" or "1f4;name=value". */
static enum http_reading read_chunk_size(struct http_reader *reader, const char *line)
{
	size_t digits = strspn(line, DIGITS "abcdefABCDEF");
	if (digits == 0 || digits > 12 || !strchr(" \t;", line[digits]))
		return HTTP_READ_WRONG;
	reader->left = strtoull(line, NULL, 16);
	return reader->left ? HTTP_READ_DATA : HTTP_READ_TRAILER;
}

static enum http_reading read_line(struct http_reader *reader, const char *line)
{
	switch (reader->at) {
	case HTTP_READ_STATUS: return read_status(reader, line);
	case HTTP_READ_HEADER: return read_header(reader, line);
	case HTTP_READ_CHUNK: return read_chunk_size(reader, line);
	case HTTP_READ_NEWLINE: return *line ? HTTP_READ_WRONG : HTTP_READ_CHUNK;
	default: return *line ? HTTP_READ_TRAILER : HTTP_READ_ENDED;
	}
}

/* Read bytes up to the end of the line. Returns how many were used. */
static size_t take_line(struct http_reader *reader, const char *bytes, size_t length)
{
	const char *end = memchr(bytes, '\n', length);
	size_t used = end ? (size_t)(end - bytes) + 1 : length;
	struct text *line = &reader->line;
	reader->head += used;
	if (reader->head > HEAD_MOST || memchr(bytes, '\0', used)) {
		reader->at = HTTP_READ_WRONG;
		return used;
	}
	text_add_bytes(line, bytes, end ? used - 1 : used);
	if (!end)
		return used;
	if (line->length && line->data[line->length - 1] == '\r')
		line->data[--line->length] = '\0';
	reader->at = line->too_long ? HTTP_READ_WRONG : read_line(reader, text_string(line));
	line->length = 0;
	if (line->data)
		*line->data = '\0';
	return used;
}

static size_t take_body(struct http_reader *reader, const char *bytes, size_t length,
	http_take_body *body, void *context)
{
	bool sized = reader->at != HTTP_READ_OPEN;
	if (sized && length > reader->left)
		length = (size_t)reader->left;
	if (!body(context, bytes, length)) {
		reader->at = HTTP_READ_WRONG;
		return length;
	}
	reader->left -= sized ? length : 0;
	reader->head = 0; /* HEAD_MOST must not limit the number of chunks of a stream */
	if (sized && reader->left == 0)
		reader->at = reader->at == HTTP_READ_SIZED ? HTTP_READ_ENDED : HTTP_READ_NEWLINE;
	return length;
}

size_t http_reader_take(struct http_reader *reader, const char *bytes, size_t length,
	http_take_body *body, void *context)
{
	size_t used = 0;
	while (used < length && reader->at != HTTP_READ_ENDED && reader->at != HTTP_READ_WRONG) {
		bool inside = reader->at == HTTP_READ_SIZED || reader->at == HTTP_READ_DATA ||
			      reader->at == HTTP_READ_OPEN;
		used += inside ? take_body(reader, bytes + used, length - used, body, context)
			       : take_line(reader, bytes + used, length - used);
	}
	return used;
}

bool http_reader_end(struct http_reader *reader)
{
	if (reader->at == HTTP_READ_OPEN)
		reader->at = HTTP_READ_ENDED;
	reader->keeps = false;
	return reader->at == HTTP_READ_ENDED;
}
