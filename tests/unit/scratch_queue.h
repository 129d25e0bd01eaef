/* SPDX-License-Identifier: MIT */
/* A store in the scratch directory with a queue in it. */
#ifndef UNIT_SCRATCH_QUEUE_H
#define UNIT_SCRATCH_QUEUE_H

#include "queue/queue.h"
#include "scratch_store.h"

static struct store *store;
static struct queue queue;

static inline void reopen(const char *name)
{
	store = scratch_store(name);
	if (queue_open(&queue, store, "q", NULL, &err) != STATUS_OK) {
		printf("# no queue: %s\n", err.text);
		_exit(98);
	}
}

static inline void close_all(void)
{
	queue_release(&queue);
	store_close(store);
}

#endif
