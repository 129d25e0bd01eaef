/* SPDX-License-Identifier: MIT */
/* A store in the scratch directory with a queue in it. */
#ifndef UNIT_SCRATCH_QUEUE_H
#define UNIT_SCRATCH_QUEUE_H

#include <stdbool.h>

#include "base/clock.h"
#include "queue/queue.h"
#include "scratch.h"

static struct store *store;
static struct queue queue;
static struct error err;

static inline void reopen(const char *name)
{
	char url[96];
	snprintf(url, sizeof(url), "%s/q.db", scratch);
	if (store_open(&store, url, STORE_CREATE, clock_after(60000), &err) != STATUS_OK ||
		queue_open(&queue, store, name, NULL, &err) != STATUS_OK) {
		printf("# cannot open: %s\n", err.text);
		_exit(98);
	}
}

static inline void close_all(void)
{
	queue_release(&queue);
	store_close(store);
}

#endif
