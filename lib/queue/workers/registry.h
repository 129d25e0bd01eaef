/* SPDX-License-Identifier: MIT */
/* The records worker/TOKEN and beat/NUMBER in the store. */
#ifndef QUEUE_WORKERS_REGISTRY_H
#define QUEUE_WORKERS_REGISTRY_H

#include "queue/workers/workers.h"
#include "store/builder.h"

/* "worker/TOKEN"; "beat/NUMBER". */
void workers_key(const struct queue *queue, char key[QUEUE_KEY_MAX], const char *token);
void workers_beat_key(const struct queue *queue, char key[QUEUE_KEY_MAX], uint64_t beat);

/* As workers_list, and the store's revision when it was so. */
enum status workers_list_at(struct queue *queue, struct queue_worker **workers, size_t *count,
	store_revision *revision, struct error *err);
/* Of worker/TOKEN as it is now; 0: it is gone. */
enum status workers_revision(struct queue *queue, const struct queue_worker *worker,
	store_revision *revision, struct error *err);
/*
 * Take a registration with its tally away; one that is gone already is fine. STATUS_NO: it is of
 * another revision.
 */
enum status workers_remove(
	struct queue *queue, const struct queue_worker *worker, struct error *err);

#endif
