/* SPDX-License-Identifier: MIT */
#include "base/mounts/mount_tables.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define BLANKS " \t\r"

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Decode the octal escapes of fstab and mountinfo, such as \040 for a blank. */
static void decode_octal(char *text)
{
	char *to = text;
	for (const char *at = text; *at; to++) {
		if (at[0] == '\\' && is_octal(at[1]) && is_octal(at[2]) && is_octal(at[3])) {
			*to = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = '\0';
}

/* Return the next line, without its newline, malloc'd; NULL: there is none. */
static char *next_line(const char **at)
{
	if (!**at)
		return NULL;
	size_t length = strcspn(*at, "\n");
	char *line = xstrndup(*at, length);
	*at += length + ((*at)[length] == '\n');
	return line;
}

/* Cut the next word out of the line; NULL: none is left, or a comment begins. */
static char *next_word(char **line)
{
	*line += strspn(*line, BLANKS);
	if (!**line || **line == '#')
		return NULL;
	char *word = *line;
	*line += strcspn(*line, BLANKS);
	if (**line)
		*(*line)++ = '\0';
	return word;
}

/* Report point without slashes at its end, unless it is "/" or not absolute. */
static void tell_point(char *point, mount_point_found *found, void *context)
{
	size_t length = strlen(point);
	while (length > 1 && point[length - 1] == '/')
		point[--length] = '\0';
	if (point[0] == '/' && length > 1)
		found(context, point);
}

void mount_tables_fstab(const char *text, mount_point_found *found, void *context)
{
	for (char *line; (line = next_line(&text)); free(line)) {
		char *rest = line;
		char *source = next_word(&rest);
		char *point = source ? next_word(&rest) : NULL;
		char *type = point ? next_word(&rest) : NULL;
		if (!point || (type && strcmp(type, "swap") == 0))
			continue;
		decode_octal(point);
		tell_point(point, found, context);
	}
}

void mount_tables_list(const char *text, mount_point_found *found, void *context)
{
	for (char *line; (line = next_line(&text)); free(line)) {
		char *point = line + strspn(line, BLANKS);
		size_t length = strlen(point);
		while (length && strchr(BLANKS, point[length - 1]))
			point[--length] = '\0';
		tell_point(point, found, context);
	}
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

bool mount_tables_unit(const char *name, char point[PATH_MAX])
{
	const char *end = strrchr(name, '.');
	size_t size = 0;
	if (!end || end == name || (strcmp(end, ".mount") != 0 && strcmp(end, ".automount") != 0))
		return false;
	for (const char *at = name; at < end && size + 2 < PATH_MAX;) {
		if (size == 0)
			point[size++] = '/';
		if (at[0] == '\\' && at[1] == 'x' && isxdigit((unsigned char)at[2]) &&
			isxdigit((unsigned char)at[3])) {
			point[size++] = (char)(hex_digit(at[2]) * 16 + hex_digit(at[3]));
			at += 4;
		} else {
			point[size++] = *at == '-' ? '/' : *at;
			at++;
		}
	}
	point[size] = '\0';
	/* "-.mount" is the root. */
	return strcmp(point, "//") != 0;
}

/*
 * next_map_line and next_map_word are for maps of the automounter: a line that ends with a
 * backslash goes on in the next one, and a key may be in quotes or have backslashes before blanks.
 */
static char *next_map_line(const char **at)
{
	char *line = next_line(at);
	while (line) {
		size_t length = strlen(line);
		if (!length || line[length - 1] != '\\' || !**at)
			break;
		char *more = next_line(at);
		char *joined = xprintf("%.*s %s", (int)length - 1, line, more);
		free(more);
		free(line);
		line = joined;
	}
	return line;
}

static char *next_map_word(char **line)
{
	*line += strspn(*line, BLANKS);
	if (!**line || **line == '#')
		return NULL;
	char *word = *line, *to = word, *at = word;
	for (char quote = '\0'; *at && (quote || !strchr(BLANKS, *at)); at++) {
		if (*at == '"' && (!quote || quote == '"'))
			quote = quote ? '\0' : '"';
		else if (*at == '\\' && at[1])
			*to++ = *++at;
		else
			*to++ = *at;
	}
	*line = *at ? at + 1 : at;
	*to = '\0';
	return word;
}

/* The name of a map, without a kind before it such as "file:" or "file,sun:". */
static const char *map_name(const char *map)
{
	const char *colon = strchr(map, ':');
	return colon && *map != '/' ? colon + 1 : map;
}

void mount_tables_autofs_master(const char *text, autofs_found *found, void *context)
{
	for (char *line; (line = next_map_line(&text)); free(line)) {
		char *rest = line;
		char *point = next_map_word(&rest);
		char *map = point ? next_map_word(&rest) : NULL;
		if (!point)
			continue;
		if (strncmp(point, "+dir:", 5) == 0)
			found(context, AUTOFS_DIRECTORY, point + 5);
		else if (*point == '+')
			found(context, AUTOFS_INCLUDE, map_name(point + 1));
		else if (map && strcmp(point, "/-") == 0)
			found(context, AUTOFS_DIRECT, map_name(map));
		else if (map && *point == '/' && point[1] && strcmp(map, "-null") != 0)
			found(context, AUTOFS_POINT, point);
	}
}

void mount_tables_autofs_direct(const char *text, mount_point_found *found, void *context)
{
	for (char *line; (line = next_map_line(&text)); free(line)) {
		char *rest = line;
		char *point = next_map_word(&rest);
		if (point)
			tell_point(point, found, context);
	}
}

/* Read a line: ID PARENT DEVICE ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS */
static bool read_mountinfo(char *line, struct mount_entry *entry)
{
	char *words[6], *more[3] = {NULL, NULL, NULL};
	char *rest = line, *word;
	for (int i = 0; i < 6; i++)
		if (!(words[i] = next_word(&rest)))
			return false;
	while ((word = next_word(&rest)) && strcmp(word, "-") != 0)
		;
	for (int i = 0; word && i < 3; i++)
		more[i] = next_word(&rest);
	if (!more[0])
		return false;
	entry->number = strtol(words[0], NULL, 10);
	decode_octal(words[4]);
	snprintf(entry->point, sizeof(entry->point), "%s", words[4]);
	snprintf(entry->type, sizeof(entry->type), "%s", more[0]);
	snprintf(entry->options, sizeof(entry->options), "%.1023s,%.1023s", words[5],
		more[2] ? more[2] : "");
	return true;
}

bool mount_tables_find(const char *mountinfo, long number, struct mount_entry *entry)
{
	bool found = false;
	for (char *line; !found && (line = next_line(&mountinfo)); free(line))
		found = strtol(line, NULL, 10) == number && read_mountinfo(line, entry);
	return found;
}

bool mount_tables_has(const char *mountinfo, const char *point)
{
	struct mount_entry entry;
	bool found = false;
	for (char *line; !found && (line = next_line(&mountinfo)); free(line))
		found = read_mountinfo(line, &entry) && strcmp(entry.point, point) == 0;
	return found;
}

bool mount_tables_is_below(const char *path, const char *top)
{
	size_t length = strlen(top);
	while (length > 1 && top[length - 1] == '/')
		length--;
	return length == 1 ? top[0] == '/'
			   : strncmp(path, top, length) == 0 &&
				     (path[length] == '/' || path[length] == '\0');
}
