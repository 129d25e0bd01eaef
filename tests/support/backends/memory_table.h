/* SPDX-License-Identifier: MIT */
/*
 * The tables of the store in memory (memory.h): sorted by key, in one region of memory that
 * children share. A process that calls holds the region's lock.
 */
#ifndef BACKENDS_MEMORY_TABLE_H
#define BACKENDS_MEMORY_TABLE_H

#include <pthread.h>

#include "store/store.h"

#define SIZES	24
#define STORES	256
#define WAITING 4096 /* handles that wait at one time */

/* One key, or one beat (its value is a struct store_beat). */
struct node {
	char *key;
	char *value; /* NULL: deleted, or never beaten */
	size_t length, capacity;
	store_revision revision;
};

/* Sorted by key. */
struct table {
	struct node **nodes;
	size_t count, capacity;
};

struct piece {
	struct piece *next;
};

/* What is in one store. */
struct content {
	char name[128];
	store_revision revision;
	struct table keys, beats;
	int bells[WAITING]; /* of the handles that wait in this process */
	size_t waiting;
};

struct region {
	pthread_mutex_t lock;
	size_t used;
	struct piece *free[SIZES];
	struct content *stores[STORES];
	size_t count;
};

extern struct region *memory_region; /* NULL: not made yet */

/* Make it, if it is not there. False: out of memory. */
bool table_make_region(void);
/* Uninitialised memory; its size is rounded up to *size. */
void *table_take(size_t *size);

/* The index of the first node whose key is not below key. */
size_t table_lower_bound(const struct table *table, const char *key);
/* NULL: there never was such a key. */
struct node *table_find(const struct table *table, const char *key);
struct node *table_insert(struct table *table, const char *key);
void table_drop_value(struct node *node);
void table_set_value(struct node *node, const void *value, size_t length);
/* Remove the nodes whose key begins with prefix. */
void table_remove_under(struct table *table, const char *prefix);

#endif
