/* SPDX-License-Identifier: MIT */
#include "mix.h"

#include <stdio.h>
#include <string.h>

void mix_start(struct mix *mix, uint64_t seed)
{
	*mix = (struct mix){.state = seed * 0x9e3779b97f4a7c15u + 1};
	for (int i = 0; i < 8; i++)
		(void)mix_random(mix, 2);
}

/* xorshift64*, by Marsaglia and Vigna. */
unsigned mix_random(struct mix *mix, unsigned below)
{
	mix->state ^= mix->state >> 12;
	mix->state ^= mix->state << 25;
	mix->state ^= mix->state >> 27;
	return (unsigned)((mix->state * 0x2545f4914f6cdd1du) >> 33) % below;
}

void mix_key(char name[MIX_KEY_LONGEST], int key)
{
	snprintf(name, MIX_KEY_LONGEST, MIX_ROOT "%d/%d", key % MIX_GROUPS, key);
}

void mix_prefix(char prefix[MIX_KEY_LONGEST], int group)
{
	if (group < 0)
		snprintf(prefix, MIX_KEY_LONGEST, MIX_ROOT);
	else
		snprintf(prefix, MIX_KEY_LONGEST, MIX_ROOT "%d/", group);
}

int mix_key_number(const char *name)
{
	char known[MIX_KEY_LONGEST];
	for (int k = 0; k < MIX_KEYS; k++) {
		mix_key(known, k);
		if (!strcmp(known, name))
			return k;
	}
	return -1;
}

static void compare(struct question *question, int key, store_revision revision)
{
	question->compares[question->compare_count++] = (struct key_compare){key, revision};
}

static void part(struct question *question, enum store_op_kind kind, int key, bool otherwise)
{
	question->parts[question->part_count++] = (struct key_operation){kind, key, otherwise};
}

/* Two keys: compares on one or both, a get, and puts and deletes of both; else both are read. */
static void several_keys(struct mix *mix, struct question *question, int key)
{
	int other = (key + 1 + (int)mix_random(mix, MIX_KEYS - 1)) % MIX_KEYS;
	if (mix_random(mix, 3))
		compare(question, key, mix->seen[key]);
	if (mix_random(mix, 2))
		compare(question, other, mix->seen[other]);
	if (mix_random(mix, 2))
		part(question, STORE_GET, key, false);
	part(question, STORE_PUT, key, false);
	part(question, mix_random(mix, 2) ? STORE_PUT : STORE_DELETE, other, false);
	if (mix_random(mix, 4))
		part(question, STORE_GET, other, true);
	else
		part(question, STORE_DELETE, other, true);
}

static void transaction(struct mix *mix, struct question *question, unsigned dice)
{
	int key = (int)mix_random(mix, MIX_KEYS);
	bool compares = dice < 45;
	bool deletes = (dice >= 35 && dice < 45) || (dice >= 57 && dice < 65);
	if (dice >= 80) {
		several_keys(mix, question, key);
		return;
	}
	if (dice >= 65) {
		part(question, STORE_GET, key, false);
		return;
	}
	if (compares)
		compare(question, key, dice < 15 ? 0 : mix->seen[key]);
	part(question, deletes ? STORE_DELETE : STORE_PUT, key, false);
	if (compares)
		part(question, STORE_GET, key, true);
}

/* Put if absent 15, compare and put 20, compare and delete 10, put 12, delete 8, get 15, several
 * keys 7, list 9, wait 4 of 100. */
struct question mix_next(struct mix *mix)
{
	static const int limits[] = {0, 5, 20, 100};
	struct question question = {.group = -1};
	unsigned dice = mix_random(mix, 100);
	if (dice < 87) {
		transaction(mix, &question, dice);
		return question;
	}
	question.kind = dice < 96 ? LIST : WAIT;
	question.group = (int)mix_random(mix, MIX_GROUPS + 1) - 1;
	if (question.kind == WAIT || mix_random(mix, 3) == 0)
		question.since = mix->newest;
	if (mix_random(mix, 4) == 0)
		question.since -= question.since < 8 ? question.since : mix_random(mix, 8);
	question.limit = limits[mix_random(mix, 4)];
	return question;
}
