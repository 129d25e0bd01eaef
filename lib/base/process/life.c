/* SPDX-License-Identifier: MIT */
#include "base/process/life.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#define HALF   12 /* digits of each half: the line, and the rest */
#define DIGITS "0123456789abcdef"

bool life_is_valid(const char *text)
{
	return strspn(text, DIGITS) == LIFE_SIZE - 1 && text[LIFE_SIZE - 1] == '\0';
}

bool life_same_line(const char *a, const char *b)
{
	return strncmp(a, b, HALF) == 0;
}

/* Write one half: 48 bits of number. */
static void put_half(char *half, uint64_t number)
{
	char digits[HALF + 1];
	snprintf(digits, sizeof(digits), "%012" PRIx64, number & UINT64_C(0xffffffffffff));
	memcpy(half, digits, HALF);
}

static uint64_t hash(const char *text)
{
	return XXH3_64bits(text, strlen(text));
}

bool life_draw(const char *previous, char life[LIFE_SIZE])
{
	uint64_t random[2];
	life[0] = '\0';
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return false;
	if (life_is_valid(previous))
		memcpy(life, previous, HALF);
	else
		put_half(life, random[0]);
	put_half(life + HALF, random[1]);
	life[LIFE_SIZE - 1] = '\0';
	return true;
}

void life_derive(const char *line, const char *whole, char life[LIFE_SIZE])
{
	put_half(life, hash(line));
	put_half(life + HALF, hash(whole));
	life[LIFE_SIZE - 1] = '\0';
}

void life_derive_part(const char *of, const char *part, char life[LIFE_SIZE])
{
	char whole[512];
	snprintf(whole, sizeof(whole), "%s %s", of, part);
	memmove(life, of, HALF);
	put_half(life + HALF, hash(whole));
	life[LIFE_SIZE - 1] = '\0';
}
