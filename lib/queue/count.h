/* SPDX-License-Identifier: MIT */
/*
 * How many commands are where, at a cost that does not grow with the queue: everybody who moves
 * commands keeps a tally of the moves it has made, changed in the same transaction, under a key of
 * its own, so that nobody waits for another. The sum of all tallies, read by one list, is a
 * consistent picture.
 */
#ifndef QUEUE_COUNT_H
#define QUEUE_COUNT_H

#include "queue/records.h"
#include "store/store.h"

/* The moves that somebody has made. */
struct queue_tally {
	uint64_t scheduled;
	uint64_t taken;	    /* waiting to running */
	uint64_t returned;  /* running to waiting */
	uint64_t succeeded; /* running to done, by its state */
	uint64_t failed;
	uint64_t stopped;   /* running to cancelled */
	uint64_t cancelled; /* waiting to cancelled */
	/* done to waiting, by what it was */
	uint64_t reopened_succeeded, reopened_failed, reopened_cancelled;
};

struct queue_count {
	uint64_t scheduled, waiting, running, succeeded, failed, cancelled;
	store_revision revision; /* when this was so */
};

struct json_object *queue_tally_write(const struct queue_tally *tally);
enum status queue_tally_read(const char *key, const char *value, size_t length,
	struct queue_tally *tally, struct error *err);
void queue_tally_add(struct queue_tally *to, const struct queue_tally *more);
/* What the moves of all add up to. */
void queue_tally_count(const struct queue_tally *all, struct queue_count *count);

#endif
