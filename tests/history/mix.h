/* SPDX-License-Identifier: MIT */
/*
 * What a process of the recorder asks next: a random mix of all calls of the store on few keys, so
 * that the processes get in each other's way. Pure: the same seed and the same answers give the
 * same questions.
 */
#ifndef HISTORY_MIX_H
#define HISTORY_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define MIX_KEYS	8 /* few, so that the processes meet */
#define MIX_ROOT	"hist/"
#define MIX_GROUPS	2 /* "hist/0/", "hist/1/": key k is in group k % 2 */
#define MIX_COMPARES	3
#define MIX_PARTS	4
#define MIX_KEY_LONGEST 32 /* bytes with the NUL */

struct mix {
	uint64_t state;
	store_revision seen[MIX_KEYS]; /* the last revision seen of each key; 0: absent */
	store_revision newest;	       /* the last revision seen of the store */
};

enum question_kind { TRANSACTION, LIST, WAIT };

struct key_compare {
	int key;
	store_revision revision;
};

struct key_operation {
	enum store_op_kind kind;
	int key;
	bool otherwise;
};

struct question {
	enum question_kind kind;
	struct key_compare compares[MIX_COMPARES];
	size_t compare_count;
	struct key_operation parts[MIX_PARTS];
	size_t part_count;
	int group; /* list, wait: -1: all keys */
	store_revision since;
	int64_t limit; /* wait, milliseconds */
};

void mix_start(struct mix *mix, uint64_t seed);
/* From 0 to below - 1. */
unsigned mix_random(struct mix *mix, unsigned below);
struct question mix_next(struct mix *mix);
void mix_key(char name[MIX_KEY_LONGEST], int key);
void mix_prefix(char prefix[MIX_KEY_LONGEST], int group);
/* The number of a key; -1: it is none of ours. */
int mix_key_number(const char *name);

#endif
