/* SPDX-License-Identifier: MIT */
#include "base/process/life.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

bool life_is_valid(const char *text)
{
	return strspn(text, "0123456789abcdef") == LIFE_SIZE - 1 && text[LIFE_SIZE - 1] == '\0';
}

static void write_life(uint64_t high, uint64_t low, char life[LIFE_SIZE])
{
	snprintf(life, LIFE_SIZE, "%08" PRIx32 "%016" PRIx64, (uint32_t)high, low);
}

bool life_draw(char life[LIFE_SIZE])
{
	uint64_t random[2];
	life[0] = '\0';
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return false;
	write_life(random[0], random[1], life);
	return true;
}

void life_of_word(const char *word, char life[LIFE_SIZE])
{
	XXH128_hash_t hash = XXH3_128bits(word, strlen(word));
	if (life_is_valid(word))
		memcpy(life, word, LIFE_SIZE);
	else
		write_life(hash.high64, hash.low64, life);
}
