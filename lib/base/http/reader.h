/* SPDX-License-Identifier: MIT */
/*
 * Reads one answer of HTTP/1 as it arrives (RFC 9112): the status line, the header, and a body
 * whose end is given by its length, by chunks, or by the end of the connection.
 */
#ifndef BASE_HTTP_READER_H
#define BASE_HTTP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* What is read next. */
enum http_reading {
	HTTP_READ_STATUS,
	HTTP_READ_HEADER,
	HTTP_READ_SIZED,   /* a body of the length that the header gives */
	HTTP_READ_CHUNK,   /* the line with the size of a chunk */
	HTTP_READ_DATA,	   /* the bytes of a chunk */
	HTTP_READ_NEWLINE, /* the end of line after a chunk */
	HTTP_READ_TRAILER, /* what follows the last chunk */
	HTTP_READ_OPEN,	   /* a body up to the end of the connection */
	HTTP_READ_ENDED,   /* nothing more */
	HTTP_READ_WRONG,   /* this is not HTTP, or the caller refused more of the body */
};

struct http_reader {
	enum http_reading at;
	int code;
	bool keeps; /* the connection may be used again after this answer */
	bool chunked;
	int64_t sized; /* bytes of the body; -1: not given */
	uint64_t left; /* bytes that are left of the body, or of the chunk */
	struct text line;
	size_t head; /* bytes of lines since the last byte of the body */
};

/* Takes bytes of the body. False: it can take no more. */
typedef bool http_take_body(void *context, const char *bytes, size_t length);

/* Return the value of a header line with this name; NULL: it has another name. */
const char *http_header_value(const char *line, const char *name);

/* Begin to read an answer; releases the line of an earlier one. */
void http_reader_start(struct http_reader *reader);
void http_reader_release(struct http_reader *reader);
/* Read bytes; returns how many were used: fewer than length after the end and after an error. */
size_t http_reader_take(struct http_reader *reader, const char *bytes, size_t length,
	http_take_body *body, void *context);
/* Call it when the connection has ended. True: the answer is complete. */
bool http_reader_end(struct http_reader *reader);

#endif
