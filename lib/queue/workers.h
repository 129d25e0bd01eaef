/* SPDX-License-Identifier: MIT */
/*
 * The workers of a queue: who is here, who beats, and who is gone.
 *
 * A worker registers under a fresh token (worker/TOKEN) and beats by a thread and a store handle of
 * its own, so that a slow transaction never makes it look dead. The one with the lowest beat number
 * that lives (the monitor) reads all beats, the others read only the monitor's, so that the cost is
 * linear. Silence is judged by observations (DESIGN.md, section 5): "my own beat was written, then
 * the other's was read unchanged, at least a period after the last observation", limit of them in a
 * row; a worker whose process is gone from this very machine is dead at once. Who is dead is
 * fenced: its registration goes, what it ran goes back (rules.h: ENDING_LOST), its tally is added
 * to count/@gone, all in transactions that compare its registration or its leases. A worker that
 * was only stopped finds its registration gone, and begins anew.
 */
#ifndef QUEUE_WORKERS_H
#define QUEUE_WORKERS_H

#include "base/process.h"
#include "queue/queue.h"

struct queue_worker {
	char token[17];
	char name[129];
	uint64_t beat;	/* the number of its beat */
	uint64_t index; /* for {per-worker:...} and the staggered start */
	uint64_t slots;
	int64_t period;	 /* ms between two beats */
	uint64_t limit;	 /* observations that make it dead */
	int64_t started; /* UTC, ms */
	struct process_identity process;
	store_revision revision; /* of worker/TOKEN */
};

/*
 * Register: fills token, beat, started, process and revision; index too, where it is UINT64_MAX
 * (then it is the beat number). The lowest beat number that is free is taken. queue->who becomes
 * the token.
 */
enum status workers_join(struct queue *queue, struct queue_worker *worker, struct error *err);
/* Say goodbye: the registration goes, the tally is added to count/@gone. Missing is fine. */
enum status workers_leave(struct queue *queue, struct queue_worker *worker, struct error *err);
/* All that are registered, by beat number; *workers is to be freed. */
enum status workers_list(
	struct queue *queue, struct queue_worker **workers, size_t *count, struct error *err);

/* The beating thread. */
struct beater;
enum status beater_start(struct beater **beater, const char *url, const struct queue *queue,
	const struct queue_worker *worker, struct error *err);
/* How many beats were written; the last one could not be: *trouble is set and err filled. */
uint64_t beater_written(struct beater *beater, bool *trouble, struct error *err);
/* NULL is legal. */
void beater_stop(struct beater *beater);

/* What one process has seen of the others. Zeroed is fresh. */
struct judge {
	struct judged {
		char token[17];
		uint64_t seen_token, seen_sequence; /* of its beat */
		uint64_t silent;		    /* observations in a row */
		uint64_t own;			    /* our beats written at the last observation */
		int64_t at;			    /* clock_boot of it */
	} * others;
	size_t count;
};
void judge_release(struct judge *judge);

/*
 * Look at the others once; to be called every period. written: beats that we have written
 * (beater_written). Fences who is dead; *fenced counts them. STATUS_NO: we are not registered any
 * more: somebody took us for dead.
 */
enum status judge_look(struct judge *judge, struct queue *queue, const struct queue_worker *self,
	uint64_t written, uint64_t *fenced, struct error *err);

/*
 * For those who only wait (join): how many workers are registered, and of how many of them the beat
 * was seen to change (or was seen for the first time) less than their period x limit ago.
 */
enum status judge_count_alive(struct judge *judge, struct queue *queue, size_t *registered,
	size_t *alive, struct error *err);

/*
 * Give back all that this dead worker has leased, then take its registration and tally away. Used
 * by judge_look; one that has vanished meanwhile is fine.
 */
enum status workers_fence(struct queue *queue, const struct queue_worker *dead, struct error *err);

#endif
