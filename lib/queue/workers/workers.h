/* SPDX-License-Identifier: MIT */
/*
 * The workers of a queue: which are registered, which beat, and which are gone.
 *
 * A worker registers under a fresh token (worker/TOKEN, and beat/NUMBER, which makes its beat
 * number its own) and beats by a thread and a store handle of its own, so that a slow transaction
 * never makes it look dead. The one with the lowest beat number that lives (the monitor) reads all
 * beats, the others read only the monitor's, so that the cost is linear; and each looks whether the
 * process of the next one on its own machine still exists. Silence is judged as that of a task
 * (live/heartbeat.h).
 *
 * A dead worker is fenced: first its registration is marked, by compare, and from then on nothing
 * that it does is accepted; then what it ran goes back (rules.h: ENDING_LOST), each lease compared;
 * then its tally is added to count/@gone and its registration goes, in one transaction. A worker
 * that finds a marked registration goes on with that. So several judges at once do it once, and one
 * that dies in between leaves nothing behind. A worker that was only stopped finds its registration
 * changed, and registers again.
 *
 * The beats are the store's (store_beat), of the group "queue/workers/QUEUE": those of a run are of
 * "RUN/ATTEMPT", and ATTEMPT is a number. A number is used again once its worker is gone, so there
 * are never more beats than there were workers at once.
 */
#ifndef QUEUE_WORKERS_WORKERS_H
#define QUEUE_WORKERS_WORKERS_H

#include "base/process/process.h"
#include "live/heartbeat.h"
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
	bool fenced;		 /* declared dead: what it ran is being given back */
	store_revision revision; /* of worker/TOKEN */
};

/*
 * Register: fills token, beat, started, process and revision; index too, where it is UINT64_MAX
 * (then it is the beat number). The lowest beat number that is free is taken (among the lowest few
 * where many come at once). queue->who becomes the token, and its tally begins at 0.
 */
enum status workers_join(struct queue *queue, struct queue_worker *worker, struct error *err);
/*
 * Remove a registration and add its tally to count/@gone: by the worker itself when it has handed
 * in all that it had leased, or by another one that has given that back. A registration that is
 * gone already is fine. STATUS_NO: it has another revision than *worker: the worker was declared
 * dead, and others see to all.
 */
enum status workers_remove(
	struct queue *queue, const struct queue_worker *worker, struct error *err);
/*
 * All that are registered, by beat number; *workers is to be freed. *revision (or NULL): that of
 * the store when it was so.
 */
enum status workers_list(struct queue *queue, struct queue_worker **workers, size_t *count,
	store_revision *revision, struct error *err);

/* "worker/TOKEN", and its value. */
void workers_key(const struct queue *queue, char key[QUEUE_KEY_MAX], const char *token);
extern const struct queue_record queue_worker_record;

/* "queue/workers/QUEUE" */
void workers_beats(const struct queue *queue, char group[160]);
/* The number that stands in its beats. */
uint64_t workers_beat_token(const struct queue_worker *worker);

/*
 * Declare this worker dead as self: give back all that it has leased, then take its registration
 * and tally away. Used by judge_look, not while moves_are_unknown(queue). One that is gone
 * already is fine. STATUS_NO: self is not registered any more.
 */
enum status workers_fence(struct queue *queue, const struct queue_worker *self,
	const struct queue_worker *dead, struct error *err);

/* ---- The beating thread ---- */

struct beater;
enum status beater_start(struct beater **beater, const char *url, const struct queue *queue,
	const struct queue_worker *worker, struct error *err);
/* How many beats were written; the last one could not be: *trouble is set and err filled. */
uint64_t beater_written(struct beater *beater, bool *trouble, struct error *err);
/* NULL is legal. One that hangs in the filesystem is left alone. */
void beater_stop(struct beater *beater);

/* ---- The judge ---- */

/* What one process has seen of the others. Zeroed is fresh. */
struct judge {
	struct judge_other {
		char token[17];
		struct heartbeat_peer peer;
		uint64_t written; /* beats that we had written at the last observation */
	} * others;		  /* by beat number, as workers */
	struct queue_worker *workers;
	size_t count;
	store_revision listed; /* of the store, when they were; 0: not yet */
	int64_t looked;	       /* clock_boot of the last look; 0: none yet */
	uint64_t written;      /* beats that we had written then */
};
void judge_release(struct judge *judge);

/*
 * Look at the others once; to be called every period. written: beats that we have written
 * (beater_written). Fences the dead; *fenced counts them. STATUS_NO: we are not registered any
 * more: another worker has declared us dead.
 */
enum status judge_look(struct judge *judge, struct queue *queue, const struct queue_worker *self,
	uint64_t written, uint64_t *fenced, struct error *err);

/*
 * For a process that only waits (join): how many workers are registered, and of how many of them
 * the beat was seen to change (or was seen for the first time) less than their period x limit ago.
 */
enum status judge_count_alive(struct judge *judge, struct queue *queue, size_t *registered,
	size_t *alive, struct error *err);

#endif
