/* SPDX-License-Identifier: MIT */
/* A store in the scratch directory with a queue in it, and whether its counts are true. */
#ifndef UNIT_SCRATCH_QUEUE_H
#define UNIT_SCRATCH_QUEUE_H

#include <stdbool.h>

#include "base/clock.h"
#include "queue/queue.h"
#include "scratch.h"

static struct store *store;
static struct queue queue;
static struct error err;
static char url[96]; /* of the store, once it was opened */

static inline void reopen(const char *name)
{
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

/* How many keys there are below "queue/NAME/WHAT/". */
static inline size_t count_keys(const char *what)
{
	char prefix[QUEUE_KEY_MAX];
	struct store_answer answer = {0};
	queue_key(&queue, prefix, "%s/", what);
	struct store_range range = {.prefix = prefix};
	if (store_list(store, &range, &answer, &err) != STATUS_OK)
		exit(97);
	size_t count = answer.count;
	store_answer_release(&answer);
	return count;
}

static inline bool counts_agree(void)
{
	struct queue_count count;
	return queue_count(&queue, &count, &err) == STATUS_OK &&
	       count.waiting == count_keys("wait") && count.running == count_keys("run") &&
	       count.succeeded + count.failed + count.cancelled == count_keys("done") &&
	       count.scheduled == count_keys("item");
}

#endif
