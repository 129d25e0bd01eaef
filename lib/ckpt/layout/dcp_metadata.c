/* SPDX-License-Identifier: MIT */
/*
 * An item is the state of a _StorageInfo: relative_path, offset and length, keys and values in this
 * order (a dataclass; the order is that of its fields). A string that was there before is a
 * reference to the memo, so this notes what each entry of the memo is.
 */
#include "ckpt/layout/dcp_metadata.h"

#include <stdlib.h>
#include <string.h>

#define MEMO_LIMIT ((uint64_t)1 << 24)

/* What an opcode pushes. */
struct value {
	enum { OTHER, STRING, NUMBER } kind;
	const unsigned char *text; /* of a string */
	uint64_t number;	   /* of a number; of a string its length */
};

struct reader {
	const unsigned char *at, *end;
	struct value *memo;
	size_t memo_count, memo_room;
	struct value recent[5]; /* the last ones pushed; the newest is the last */
};

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
	uint64_t value = 0;
	while (count-- > 0)
		value = value << 8 | bytes[count];
	return value;
}

static bool is_string(const struct value *value, const char *text)
{
	return value->kind == STRING && value->number == strlen(text) &&
	       memcmp(value->text, text, value->number) == 0;
}

static void push(struct reader *reader, struct value value)
{
	memmove(reader->recent, reader->recent + 1, 4 * sizeof(value));
	reader->recent[4] = value;
}

static bool remember(struct reader *reader, uint64_t place)
{
	/* (Picklers number the memo's entries one after another.) */
	if (place >= MEMO_LIMIT || place > reader->memo_count)
		return false;
	if (place >= reader->memo_room) {
		size_t room = 2 * (size_t)place + 1024;
		struct value *memo = realloc(reader->memo, room * sizeof(*memo));
		if (!memo)
			return false;
		reader->memo = memo;
		reader->memo_room = room;
	}
	for (; reader->memo_count <= place; reader->memo_count++)
		reader->memo[reader->memo_count] = (struct value){0};
	reader->memo[place] = reader->recent[4];
	return true;
}

/* How an opcode's argument is stored. */
struct argument {
	unsigned char opcode;
	unsigned char bytes; /* of the argument, or of the length before it */
	bool counted;	     /* these bytes say how many follow */
};

static const struct argument arguments[] = {
	{'K', 1, false},
	{'M', 2, false},
	{'J', 4, false},
	{'G', 8, false},
	{'h', 1, false},
	{'j', 4, false},
	{'q', 1, false},
	{'r', 4, false},
	{0x80, 1, false},
	{0x82, 1, false},
	{0x83, 2, false},
	{0x84, 4, false},
	{0x95, 8, false},
	{'X', 4, true},
	{0x8c, 1, true},
	{0x8d, 8, true},
	{'U', 1, true},
	{'T', 4, true},
	{'C', 1, true},
	{'B', 4, true},
	{0x8e, 8, true},
	{0x96, 8, true},
	{0x8a, 1, true},
	{0x8b, 4, true},
};

/* (NUL, which memchr finds, too, is no opcode.) */
static const char plain[] = "(012NQRabdelost)]}u\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94";

/* Take the opcode's argument; false: it is not known, or cut short. */
static bool take(struct reader *reader, unsigned char opcode, const unsigned char **argument,
	uint64_t *length)
{
	uint64_t left = (uint64_t)(reader->end - reader->at);
	*argument = reader->at;
	*length = 0;
	if (opcode == 'c') { /* two lines */
		for (int i = 0; i < 2; i++) {
			const unsigned char *line =
				memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
			if (!line)
				return false;
			reader->at = line + 1;
		}
		return true;
	}
	if (opcode && memchr(plain, opcode, sizeof(plain)))
		return true;
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		const struct argument *known = &arguments[i];
		if (known->opcode != opcode)
			continue;
		if (left < known->bytes)
			return false;
		*length = known->bytes;
		if (known->counted) {
			*length = little_endian(reader->at, known->bytes);
			*argument = reader->at + known->bytes;
			left -= known->bytes;
		}
		if (left < *length)
			return false;
		reader->at = *argument + *length;
		return true;
	}
	return false;
}

/* Do what the opcode does, as far as it matters here. */
static bool run(
	struct reader *reader, unsigned char opcode, const unsigned char *argument, uint64_t length)
{
	uint64_t number = length <= 8 ? little_endian(argument, length) : 0;
	switch (opcode) {
	case 'X':
	case 'U':
	case 0x8c:
	case 0x8d: push(reader, (struct value){STRING, argument, length}); return true;
	case 0x8a: /* (The highest bit is the sign.) */
		push(reader, length == 0 || (length <= 8 && argument[length - 1] < 0x80)
				     ? (struct value){NUMBER, NULL, number}
				     : (struct value){0});
		return true;
	case 'J':
		push(reader, argument[3] < 0x80 ? (struct value){NUMBER, NULL, number}
						: (struct value){0});
		return true;
	case 'K':
	case 'M': push(reader, (struct value){NUMBER, NULL, number}); return true;
	case 'h':
	case 'j':
		if (number >= reader->memo_count)
			return false;
		push(reader, reader->memo[number]);
		return true;
	case 'q':
	case 'r': return remember(reader, number);
	case 0x94: return remember(reader, reader->memo_count);
	case 0x95: /* a frame only says how long it is */ return true;
	default: push(reader, (struct value){0}); return true;
	}
}

static bool show(const struct reader *reader, dcp_metadata_see *see, void *context)
{
	const struct value *value = reader->recent;
	uint64_t end;
	if (value[0].kind != STRING || !is_string(&value[1], "offset") || value[2].kind != NUMBER ||
		!is_string(&value[3], "length") || value[4].kind != NUMBER ||
		__builtin_add_overflow(value[2].number, value[4].number, &end))
		return true;
	return see(context, (const char *)value[0].text, (size_t)value[0].number, end);
}

void dcp_metadata_items(const char *pickle, size_t length, dcp_metadata_see *see, void *context)
{
	struct reader reader = {.at = (const unsigned char *)pickle};
	bool more = true;
	reader.end = reader.at + length;
	while (more && reader.at < reader.end && *reader.at != '.') {
		const unsigned char *argument;
		uint64_t size;
		unsigned char opcode = *reader.at++;
		more = take(&reader, opcode, &argument, &size) &&
		       run(&reader, opcode, argument, size) &&
		       (reader.recent[4].kind != NUMBER || show(&reader, see, context));
	}
	free(reader.memo);
}
