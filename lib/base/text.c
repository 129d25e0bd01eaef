/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add_bytes(struct text *text, const void *bytes, size_t length)
{
	size_t limit = text->limit ? text->limit : TEXT_LIMIT;
	if (text->failed || length > limit - text->length) {
		text->failed = true;
		return;
	}
	size_t need = text->length + length + 1;
	if (need > text->capacity) {
		size_t capacity = text->capacity ? text->capacity : 64;
		while (capacity < need)
			capacity *= 2;
		char *data = realloc(text->data, capacity);
		if (!data) {
			text->failed = true;
			return;
		}
		text->data = data;
		text->capacity = capacity;
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
	char *formatted = NULL;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&formatted, format, arguments);
	va_end(arguments);
	if (length < 0) {
		text->failed = true;
		return;
	}
	text_add_bytes(text, formatted, (size_t)length);
	free(formatted);
}

/* The length of the UTF-8 sequence at s, or 0 where there is none. */
static size_t utf8_length(const unsigned char *s, size_t left)
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
		return point >= forms[n].least && point <= 0x10ffff && !surrogate ? n + 1 : 0;
	}
	return 0;
}

bool text_is_utf8(const char *bytes, size_t length)
{
	while (length) {
		size_t n = utf8_length((const unsigned char *)bytes, length);
		if (n == 0)
			return false;
		bytes += n;
		length -= n;
	}
	return true;
}

void text_add_utf8(struct text *text, const char *string)
{
	for (size_t left = strlen(string), n; left; string += n, left -= n) {
		n = utf8_length((const unsigned char *)string, left);
		text_add_bytes(text, n ? string : "\xef\xbf\xbd", n ? n : 3);
		n = n ? n : 1;
	}
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
		size_t n = utf8_length(s, left);
		if (n == 0) {
			text_add(text, "\\ufffd");
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			text_addf(text, "\\%c", *s);
		} else if (*s == '\n') {
			text_add(text, "\\n");
		} else if (*s == '\t') {
			text_add(text, "\\t");
		} else if (*s < 0x20 || *s == 0x7f) {
			text_addf(text, "\\u%04x", *s);
		} else {
			text_add_bytes(text, s, n);
		}
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
	for (size_t i = 0; i < length; i++) {
		char piece[5] = {(char)s[i]};
		bool c1 = s[i] == 0xc2 && i + 1 < length && s[i + 1] >= 0x80 && s[i + 1] < 0xa0;
		if (s[i] == '\n')
			memcpy(piece, "\\n", 3);
		else if (s[i] == '\t')
			memcpy(piece, "\\t", 3);
		else if (s[i] < 0x20 || s[i] == 0x7f || c1)
			snprintf(piece, sizeof(piece), "\\x%02x", c1 ? s[++i] : s[i]);
		size_t n = strlen(piece);
		if (used + n + 1 > size)
			break;
		memcpy(to + used, piece, n);
		used += n;
	}
	if (size)
		to[used] = '\0';
}
