/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void text_add_bytes(struct text *text, const void *bytes, size_t length)
{
	size_t limit = text->limit ? text->limit : TEXT_LIMIT;
	if (text->too_long || length > limit - text->length) {
		text->too_long = true;
		return;
	}
	size_t need = text->length + length + 1;
	if (need > text->capacity) {
		text->capacity = text->capacity ? text->capacity : 64;
		while (text->capacity < need)
			text->capacity *= 2;
		text->data = xrealloc(text->data, text->capacity, 1);
	}
	if (length)
		memcpy(text->data + text->length, bytes, length);
	text->length += length;
	text->data[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
	text_add_bytes(text, string, strlen(string));
}

void text_addf(struct text *text, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *formatted = xvprintf(format, arguments);
	va_end(arguments);
	text_add(text, formatted);
	free(formatted);
}

/* Return the length of the UTF-8 sequence at s, and set *character; 0: there is none. */
static size_t utf8_read(const unsigned char *s, size_t left, uint32_t *character)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	for (size_t n = 0; n < 4; n++) {
		if ((s[0] & forms[n].mask) != forms[n].lead)
			continue;
		if (n + 1 > left)
			return 0;
		uint32_t point = s[0] & (unsigned char)~forms[n].mask;
		for (size_t i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			point = point << 6 | (s[i] & 0x3f);
		}
		bool surrogate = point >= 0xd800 && point <= 0xdfff;
		if (point < forms[n].least || point > 0x10ffff || surrogate)
			return 0;
		*character = point;
		return n + 1;
	}
	return 0;
}

/*
 * Whether a terminal may act on the character instead of showing it: a control (C0, DEL, C1), the
 * end of a line or paragraph, or a mark of the direction of text.
 */
static bool is_active(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {{0, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e},
		{0x2066, 0x2069}};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (character >= ranges[i].first && character <= ranges[i].last)
			return true;
	return false;
}

bool text_is_utf8(const char *bytes, size_t length)
{
	uint32_t character;
	while (length) {
		size_t n = utf8_read((const unsigned char *)bytes, length, &character);
		if (n == 0)
			return false;
		bytes += n;
		length -= n;
	}
	return true;
}

/* Add the character at s, escaped for JSON if need be. Return how many bytes of s it takes. */
static size_t add_json_character(struct text *text, const unsigned char *s, size_t left)
{
	uint32_t character;
	size_t n = utf8_read(s, left, &character);
	if (n == 0)
		text_add(text, "\\ufffd");
	else if (is_active(character))
		text_addf(text, "\\u%04x", (unsigned)character);
	else
		text_add_bytes(text, s, n);
	return n ? n : 1;
}

void text_add_json(struct text *text, const char *document)
{
	const unsigned char *s = (const unsigned char *)document;
	for (size_t left = strlen(document), n; left; s += n, left -= n)
		n = add_json_character(text, s, left);
}

void text_add_json_string(struct text *text, const char *string)
{
	text_add_json_bytes(text, string, strlen(string));
}

void text_add_json_bytes(struct text *text, const void *bytes, size_t length)
{
	const unsigned char *s = bytes;
	size_t left = length;
	text_add(text, "\"");
	while (left) {
		size_t n = 1;
		if (*s == '"' || *s == '\\')
			text_addf(text, "\\%c", *s);
		else if (*s == '\n')
			text_add(text, "\\n");
		else if (*s == '\t')
			text_add(text, "\\t");
		else
			n = add_json_character(text, s, left);
		s += n;
		left -= n;
	}
	text_add(text, "\"");
}

void text_add_shell_word(struct text *text, const char *string)
{
	const char *plain =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
	if (*string && string[strspn(string, plain)] == '\0') {
		text_add(text, string);
		return;
	}
	text_add(text, "'");
	for (const char *quote; (quote = strchr(string, '\'')); string = quote + 1) {
		text_add_bytes(text, string, (size_t)(quote - string));
		text_add(text, "'\\''");
	}
	text_add(text, string);
	text_add(text, "'");
}

void text_range(struct text_ranges *ranges, uint64_t number)
{
	if (!ranges->open || number != ranges->last + 1) {
		text_ranges_end(ranges);
		ranges->first = number;
		ranges->open = true;
	}
	ranges->last = number;
}

void text_ranges_end(struct text_ranges *ranges)
{
	if (!ranges->open)
		return;
	text_addf(ranges->text, "%s%" PRIu64, ranges->some ? "," : "", ranges->first);
	if (ranges->last > ranges->first)
		text_addf(ranges->text, "-%" PRIu64, ranges->last);
	ranges->some = true;
	ranges->open = false;
}

void text_release(struct text *text)
{
	free(text->data);
	*text = (struct text){.limit = text->limit};
}

const char *text_string(const struct text *text)
{
	return text->data ? text->data : "";
}

const char *text_first_line(struct text *text)
{
	if (text->data)
		text->data[text->length = strcspn(text->data, "\r\n")] = '\0';
	return text_string(text);
}

void text_escape(char *to, size_t size, const char *from, size_t length)
{
	const unsigned char *s = (const unsigned char *)from;
	size_t used = 0;
	for (size_t i = 0, n; i < length; i += n) {
		char piece[12] = "";
		uint32_t character = s[i];
		n = utf8_read(s + i, length - i, &character);
		bool whole = n > 0;
		n = whole ? n : 1;
		if (character == '\n')
			strcpy(piece, "\\n");
		else if (character == '\t')
			strcpy(piece, "\\t");
		else if (!whole || (is_active(character) && character < 0x100))
			snprintf(piece, sizeof(piece), "\\x%02x", (unsigned)character);
		else if (is_active(character))
			snprintf(piece, sizeof(piece), "\\u%04x", (unsigned)character);
		else
			memcpy(piece, s + i, n);
		size_t shown = strlen(piece);
		if (used + shown + 1 > size)
			break;
		memcpy(to + used, piece, shown);
		used += shown;
	}
	if (size)
		to[used] = '\0';
}

void text_add_escaped(struct text *text, const char *string)
{
	size_t size = 4 * strlen(string) + 1;
	char *escaped = xmalloc(size);
	text_escape(escaped, size, string, size / 4);
	text_add(text, escaped);
	free(escaped);
}

void text_add_age(struct text *text, int64_t milliseconds)
{
	int64_t seconds = milliseconds < 0 ? 0 : milliseconds / 1000;
	if (seconds >= 86400)
		text_addf(text, "%" PRId64 "d%02dh", seconds / 86400, (int)(seconds / 3600 % 24));
	else if (seconds >= 3600)
		text_addf(text, "%dh%02dm", (int)(seconds / 3600), (int)(seconds / 60 % 60));
	else if (seconds >= 60)
		text_addf(text, "%dm%02ds", (int)(seconds / 60), (int)(seconds % 60));
	else
		text_addf(text, "%ds", (int)seconds);
}

void text_add_size(struct text *text, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double size = (double)bytes;
	size_t unit = 0;
	for (; size >= 1023.95; unit++)
		size /= 1024;
	text_addf(text, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
}
