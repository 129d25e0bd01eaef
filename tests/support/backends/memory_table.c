/* SPDX-License-Identifier: MIT */
#include "support/backends/memory_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REGION	 ((size_t)1 << 32) /* bytes of address space; what is used takes memory */
#define SMALLEST 32		   /* bytes; pieces are powers of two times this */

struct region *memory_region;

/* ---- Memory that children share ---- */

bool table_make_region(void)
{
	pthread_mutexattr_t shared;
	if (memory_region)
		return true;
	void *memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	memory_region = memory;
	memory_region->used = sizeof(*memory_region);
	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&memory_region->lock, &shared);
	pthread_mutexattr_destroy(&shared);
	return true;
}

static size_t class_of(size_t size)
{
	size_t class = 0;
	while (((size_t)SMALLEST << class) < size)
		class ++;
	return class;
}

/* Uninitialised memory; its size is rounded up to *size. */
void *table_take(size_t *size)
{
	size_t class = class_of(*size);
	struct piece *piece = memory_region->free[class];
	*size = (size_t)SMALLEST << class;
	if (piece) {
		memory_region->free[class] = piece->next;
		return piece;
	}
	if (REGION - memory_region->used < *size)
		abort(); /* a test with more than 4 GB of keys */
	void *memory = (char *)memory_region + memory_region->used;
	memory_region->used += *size;
	return memory;
}

static void table_give_back(void *memory, size_t size)
{
	struct piece *piece = memory;
	size_t class = class_of(size);
	if (!memory)
		return;
	piece->next = memory_region->free[class];
	memory_region->free[class] = piece;
}

/* ---- Tables ---- */

/* The index of the first node whose key is not below key. */
size_t table_lower_bound(const struct table *table, const char *key)
{
	size_t low = 0, high = table->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(table->nodes[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* NULL: there never was such a key. */
struct node *table_find(const struct table *table, const char *key)
{
	size_t at = table_lower_bound(table, key);
	return at < table->count && !strcmp(table->nodes[at]->key, key) ? table->nodes[at] : NULL;
}

static void grow(struct table *table)
{
	size_t bytes = (table->capacity ? 2 * table->capacity : 16) * sizeof(*table->nodes);
	struct node **nodes = table_take(&bytes);
	if (table->count)
		memcpy(nodes, table->nodes, table->count * sizeof(*nodes));
	table_give_back(table->nodes, table->capacity * sizeof(*nodes));
	table->nodes = nodes;
	table->capacity = bytes / sizeof(*nodes);
}

struct node *table_insert(struct table *table, const char *key)
{
	size_t at = table_lower_bound(table, key);
	if (at < table->count && !strcmp(table->nodes[at]->key, key))
		return table->nodes[at];
	if (table->count == table->capacity)
		grow(table);
	size_t size = sizeof(struct node), length = strlen(key) + 1;
	struct node *node = table_take(&size);
	*node = (struct node){.key = table_take(&length)};
	strcpy(node->key, key);
	memmove(&table->nodes[at + 1], &table->nodes[at],
		(table->count - at) * sizeof(*table->nodes));
	table->nodes[at] = node;
	table->count++;
	return node;
}

void table_drop_value(struct node *node)
{
	table_give_back(node->value, node->capacity);
	node->value = NULL;
	node->length = node->capacity = 0;
}

void table_set_value(struct node *node, const void *value, size_t length)
{
	size_t size = length + 1;
	if (!node->value || node->capacity < size) {
		table_drop_value(node);
		node->value = table_take(&size);
		node->capacity = size;
	}
	if (length)
		memcpy(node->value, value, length);
	node->value[length] = '\0';
	node->length = length;
}

/* Remove the nodes whose key begins with prefix. */
void table_remove_under(struct table *table, const char *prefix)
{
	size_t length = strlen(prefix), kept = 0;
	bool exclusive = length && prefix[length - 1] == '/';
	for (size_t i = 0; i < table->count; i++) {
		struct node *node = table->nodes[i];
		if (strncmp(node->key, prefix, length) || (exclusive && !node->key[length])) {
			table->nodes[kept++] = node;
			continue;
		}
		table_drop_value(node);
		table_give_back(node->key, strlen(node->key) + 1);
		table_give_back(node, sizeof(*node));
	}
	table->count = kept;
}
