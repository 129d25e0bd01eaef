/* SPDX-License-Identifier: MIT */
/*
 * A string that grows, up to a limit. A zeroed struct text is empty and has the limit TEXT_LIMIT.
 * The bytes in data always end with a NUL that length does not count; data is NULL until something
 * is added. An addition beyond the limit sets too_long and is dropped, as are all later ones:
 * check too_long once, at the end.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_LIMIT ((size_t)16 << 20)

struct text {
	char *data;
	size_t length;
	size_t capacity;
	size_t limit; /* bytes; 0: TEXT_LIMIT */
	bool too_long;
};

void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const void *bytes, size_t length);
void text_addf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Add a double-quoted JSON string; bytes that are not UTF-8 become U+FFFD. Characters that a
 * terminal may act on (text_escape) are written as \uXXXX.
 */
void text_add_json_string(struct text *text, const char *string);
void text_add_json_bytes(struct text *text, const void *bytes, size_t length);
/* Add a JSON document of one line, with the same replacements. */
void text_add_json(struct text *text, const char *document);
/* Add one word for a POSIX shell, in single quotes if they are needed. */
void text_add_shell_word(struct text *text, const char *string);
void text_release(struct text *text);

/* Numbers in ascending order as "3-7,9": text_range adds one, text_ranges_end completes them. */
struct text_ranges {
	struct text *text;
	uint64_t first, last; /* the range that may still grow */
	bool open;	      /* first and last are set */
	bool some;	      /* text has an earlier range */
};
void text_range(struct text_ranges *ranges, uint64_t number);
void text_ranges_end(struct text_ranges *ranges);

/* Whether all length bytes are well-formed UTF-8. */
bool text_is_utf8(const char *bytes, size_t length);

/* The text as a C string, never NULL. */
const char *text_string(const struct text *text);
/* Cut the text at the end of its first line, and return it as a C string. */
const char *text_first_line(struct text *text);

/*
 * Copy `from` so that it is safe to print as one line: characters that a terminal may act on
 * (controls, ends of lines, changes of direction) become \n, \t, \xHH or \uXXXX, and bytes that are
 * not UTF-8 become \xHH. Whole characters are copied, up to size bytes with the NUL; a size of
 * 4 * length + 1 is always enough.
 */
void text_escape(char *to, size_t size, const char *from, size_t length);
void text_add_escaped(struct text *text, const char *string);

/* Add a duration in two units at most: "12s", "1m02s", "3h20m", "2d03h"; negative: "0s". */
void text_add_age(struct text *text, int64_t milliseconds);
/* Add a number of bytes: "12 B", "3.4 GiB". */
void text_add_size(struct text *text, uint64_t bytes);

#endif
