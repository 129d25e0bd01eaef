/* SPDX-License-Identifier: MIT */
/*
 * The workers of a queue: which are registered, which beat, and which are gone.
 *
 * A worker registers under a fresh token (worker/TOKEN, and beat/NUMBER, which reserves its beat
 * number). A thread with a store handle of its own writes its beats, so that a slow transaction
 * never makes it look dead. The living worker with the lowest beat number (the monitor) reads all
 * beats, the others only the monitor's, so that the cost is linear. Each worker also checks whether
 * the process of the next worker on its own machine still exists. Silent workers are judged by the
 * rules for silent tasks (live/heartbeat.h).
 *
 * A dead worker is fenced. First its registration is marked; from then on nothing that it does is
 * accepted. Then the commands that it ran go back (rules.h: ENDING_LOST). Then one transaction adds
 * its tally to count/@gone and removes its registration. Each transaction compares the record that
 * it marks, gives back or removes. A worker that finds a marked registration carries on from there.
 * So several judges at once fence only once, and the next judge completes what another left when it
 * died. A worker that was only stopped finds its registration changed, and registers again.
 *
 * The beats are those of the store (store_beat), in the group "queue/workers/QUEUE". A run cannot
 * have this group: its groups are "RUN/ATTEMPT", and ATTEMPT is a number. A beat number is used
 * again once its worker is gone, so there are never more beats than there were workers at once.
 */
#ifndef QUEUE_WORKERS_WORKERS_H
#define QUEUE_WORKERS_WORKERS_H

#include "base/process/process.h"
#include "live/heartbeat.h"
#include "queue/queue.h"

struct queue_worker {
	char token[17];
	char name[129];
	uint64_t beat;	/* its beat number */
	uint64_t index; /* for {per-worker:...} and the staggered start */
	uint64_t slots;
	int64_t period;	 /* ms between two beats */
	uint64_t limit;	 /* missed beats that make it dead */
	int64_t started; /* UTC, ms */
	struct process_identity process;
	bool fenced;		 /* declared dead: its commands are being given back */
	store_revision revision; /* of worker/TOKEN */
};

/*
 * Register. Fills token, beat, started, process and revision; also index, if it was UINT64_MAX,
 * with the beat number. Takes the lowest free beat number (or one of the lowest few, if many
 * workers register at once). queue->who becomes the token, and its tally begins at 0.
 */
enum status workers_join(struct queue *queue, struct queue_worker *worker, struct error *err);
/*
 * Remove a registration and add its tally to count/@gone. The worker itself does this when it has
 * handed in all its leases; a judge does it when it has given them back. STATUS_OK also if the
 * registration is already gone. STATUS_NO: its revision is not that of *worker: the worker was
 * declared dead, and its judge does the rest.
 */
enum status workers_remove(
	struct queue *queue, const struct queue_worker *worker, struct error *err);
/*
 * All registered workers, by beat number; *workers is to be freed. *revision (or NULL): the
 * revision of the store at which this was the list.
 */
enum status workers_list(struct queue *queue, struct queue_worker **workers, size_t *count,
	store_revision *revision, struct error *err);

/* The current revision of worker/TOKEN; 0: it is gone. */
enum status workers_revision(struct queue *queue, const struct queue_worker *worker,
	store_revision *revision, struct error *err);

/* "worker/TOKEN", and its value. */
void workers_key(const struct queue *queue, char key[QUEUE_KEY_MAX], const char *token);
extern const struct queue_record queue_worker_record;

/* "queue/workers/QUEUE" */
void workers_beats(const struct queue *queue, char group[160]);
/* The token in a worker's beats: its own token as a number. */
uint64_t workers_beat_token(const struct queue_worker *worker);

/*
 * As the worker `self`, declare another one dead: give back all its leases, then remove its
 * registration and tally. Used by judge_look; not allowed while moves_are_unknown(queue). STATUS_OK
 * also if it is already gone. STATUS_NO: self is no longer registered.
 */
enum status workers_fence(struct queue *queue, const struct queue_worker *self,
	const struct queue_worker *dead, struct error *err);

/* ---- The beating thread ---- */

struct beater;
enum status beater_start(struct beater **beater, const char *url, const struct queue *queue,
	const struct queue_worker *worker, struct error *err);
/* How many beats were written. If the last write failed, sets *trouble and err. */
uint64_t beater_written(struct beater *beater, bool *trouble, struct error *err);
/* NULL is legal. If the thread hangs in the filesystem, it is left running. */
void beater_stop(struct beater *beater);

/* ---- The judge ---- */

/* What one process has seen of the workers. A zeroed struct has seen nothing. */
struct judge {
	struct judge_other {
		char token[17];
		struct heartbeat_peer peer;
		uint64_t written; /* our own beats, at the last observation */
	} * others;		  /* same order as workers */
	struct queue_worker *workers;
	size_t count;
	store_revision listed; /* of the store, when workers was read; 0: not yet */
	int64_t looked;	       /* clock_boot of the last look; 0: none yet */
	uint64_t written;      /* our own beats, at the last look */
};
void judge_release(struct judge *judge);

/*
 * Look at the other workers once; call it every period. written: our own beats (beater_written).
 * Fences the dead; *fenced counts them. STATUS_NO: we are no longer registered: another worker has
 * declared us dead.
 */
enum status judge_look(struct judge *judge, struct queue *queue, const struct queue_worker *self,
	uint64_t written, uint64_t *fenced, struct error *err);

/*
 * For a process that only waits (join): how many workers are registered, and how many of them are
 * alive: their beat changed, or was first seen, less than their period x limit ago.
 */
enum status judge_count_alive(struct judge *judge, struct queue *queue, size_t *registered,
	size_t *alive, struct error *err);

#endif
