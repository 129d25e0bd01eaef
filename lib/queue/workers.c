/* SPDX-License-Identifier: MIT */
/*
 * Who of the workers is alive. Each worker beats (store_beat), and looks at those that come after
 * it by number, the last one at the first ones: up to the first that lives. So each is watched by
 * the nearest one that lives, one beat is read in a period as long as nobody dies, and all that die
 * at once are seen at once. On its own machine a worker also sees at once that a process is gone.
 * Silence is judged by live/heartbeat.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "queue/queue.h"

#define STOP_PATIENCE 2000 /* ms to wait for the end of the thread that beats */

struct queue_peer {
	char token[QUEUE_TOKEN];
	struct heartbeat_peer peer;
	uint64_t written; /* our own beats, at the last observation */
};

void queue_beats(const struct queue *queue, char group[QUEUE_BEATS])
{
	snprintf(group, QUEUE_BEATS, "queue/workers/%s", queue->name);
}

uint64_t queue_beat_token(const struct queue_worker *worker)
{
	return strtoull(worker->token, NULL, 16);
}

void queue_ring_release(struct queue_ring *ring)
{
	free(ring->peers);
	free(ring->workers);
	*ring = (struct queue_ring){0};
}

/* ---- The list ---- */

/* Take a new list, and keep what is known of the workers that are also in the old one. */
static void take_list(struct queue_ring *ring, struct queue_worker *workers, size_t count)
{
	struct queue_peer *peers = xcalloc(count + 1, sizeof(*peers));
	/* Both lists are sorted by number. */
	for (size_t i = 0, old = 0; i < count; i++) {
		memcpy(peers[i].token, workers[i].token, sizeof(peers[i].token));
		while (old < ring->count && ring->workers[old].number < workers[i].number)
			old++;
		if (old < ring->count && !strcmp(ring->peers[old].token, workers[i].token))
			peers[i] = ring->peers[old];
	}
	free(ring->peers);
	free(ring->workers);
	ring->peers = peers;
	ring->workers = workers;
	ring->count = count;
}

/* List the workers, if one may have come or gone since the last list. */
static enum status refresh(struct queue_ring *ring, struct queue *queue, struct error *err)
{
	struct queue_worker *workers;
	size_t count;
	enum status status = STATUS_OK;
	if (ring->listed)
		status = queue_wait(queue, QUEUE_WORK, &ring->listed, clock_now(), -1, err);
	if (status == STATUS_TIMEOUT)
		return STATUS_OK;
	if (status == STATUS_OK)
		status = queue_workers(queue, &workers, &count, err);
	if (status != STATUS_OK)
		return status;
	take_list(ring, workers, count);
	ring->listed = queue->revision;
	return STATUS_OK;
}

/* ---- One look ---- */

struct look {
	struct queue_ring *ring;
	struct queue *queue;
	const struct queue_worker *self;
	uint64_t written, *back;
	int64_t now;
	bool paused;
};

/*
 * Read a beat. One that is missing, or of another worker, is silence: return it as a beat that
 * never changes, with a token that no worker has.
 */
static void read_beat(
	struct queue *queue, const struct queue_worker *worker, struct heartbeat_look *look)
{
	char group[QUEUE_BEATS];
	int64_t began = clock_boot();
	queue_beats(queue, group);
	enum status status =
		store_beat_read(queue->store, group, worker->number, &look->beat, NULL);
	look->took = clock_boot() - began;
	look->seen = status == STATUS_OK || status == STATUS_NO ? SEEN_BEAT : SEEN_ERROR;
	if (status != STATUS_OK || look->beat.token != queue_beat_token(worker))
		look->beat = (struct store_beat){.token = 1};
}

static enum heartbeat_state look_at(struct look *look, size_t index)
{
	const struct queue_worker *worker = &look->ring->workers[index];
	struct queue_peer *peer = &look->ring->peers[index];
	int64_t period = clock_later(worker->period, look->self->period);
	const struct heartbeat_rules rules = {
		.period = period, .timeout = period, .limit = worker->limit};
	const struct heartbeat_exchange exchange = {.began = look->now,
		.beaten = look->written > peer->written,
		.paused = look->paused};
	struct heartbeat_look seen = {.reused = true};
	read_beat(look->queue, worker, &seen);
	enum heartbeat_state state = heartbeat_observe(&peer->peer, &rules, &exchange, &seen);
	if (peer->peer.observed_at == look->now)
		peer->written = look->written;
	return state;
}

static enum status fence(struct look *look, size_t index, struct error *err)
{
	uint64_t back = 0;
	struct queue_peer *peer = &look->ring->peers[index];
	enum status status = queue_fence(look->queue, look->self->token, peer->token, &back, err);
	*look->back += back;
	/* It stays in our list until the next one. */
	if (status == STATUS_OK)
		peer->peer = (struct heartbeat_peer){0};
	return status;
}

/*
 * Look at the next workers: by their beats, up to the first that lives; by their processes, up to
 * the first that exists on our own machine. One whose beat was not yet seen to change may be dead:
 * look past some of these, too.
 */
static enum status look_at_next(struct look *look, size_t self, struct error *err)
{
	struct queue_ring *ring = look->ring;
	bool beats = true, processes = true;
	unsigned unproved = 0;
	for (size_t i = 1; i < ring->count && (beats || processes); i++) {
		size_t index = (self + i) % ring->count;
		enum process_state process = process_check(&ring->workers[index].process);
		bool lost = processes && process == PROCESS_GONE;
		processes &= process != PROCESS_ALIVE;
		if (beats && !lost) {
			enum heartbeat_state state = look_at(look, index);
			lost = heartbeat_is_lost(state);
			beats = state != HEARTBEAT_ALIVE ||
				(!ring->peers[index].peer.proved &&
					++unproved < HEARTBEAT_UNPROVED);
		}
		enum status status = lost ? fence(look, index, err) : STATUS_OK;
		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

/*
 * Whether this whole process was stopped since the last look; the others may have been, too. If
 * only this thread was late, what it sees is valid: the thread that beats kept running.
 */
static bool was_stopped(const struct queue_ring *ring, const struct queue_worker *self, int64_t now,
	uint64_t written)
{
	int64_t periods = (now - ring->looked) / self->period;
	return ring->looked && periods >= 2 && 2 * (written - ring->written) < (uint64_t)periods;
}

enum status queue_ring_look(struct queue_ring *ring, struct queue *queue,
	const struct queue_worker *self, uint64_t written, uint64_t *back, struct error *err)
{
	struct look look = {.ring = ring,
		.queue = queue,
		.self = self,
		.written = written,
		.back = back,
		.now = clock_boot()};
	*back = 0;
	enum status status = refresh(ring, queue, err);
	if (status != STATUS_OK)
		return status;
	size_t index = 0;
	while (index < ring->count && strcmp(ring->peers[index].token, self->token) != 0)
		index++;
	if (index == ring->count)
		return STATUS_NO;
	look.paused = was_stopped(ring, self, look.now, written);
	ring->looked = look.now;
	ring->written = written;
	return look_at_next(&look, index, err);
}

enum status queue_ring_alive(struct queue_ring *ring, struct queue *queue, size_t *registered,
	size_t *alive, struct error *err)
{
	/* Who does not beat sees what one sees that beats all the time. */
	const struct queue_worker self = {.period = 1};
	struct look look = {.ring = ring,
		.queue = queue,
		.self = &self,
		.written = ++ring->written,
		.now = clock_boot()};
	enum status status = refresh(ring, queue, err);
	if (status != STATUS_OK)
		return status;
	*registered = ring->count;
	*alive = 0;
	for (size_t i = 0; i < ring->count; i++)
		if (process_check(&ring->workers[i].process) != PROCESS_GONE)
			*alive += !heartbeat_is_lost(look_at(&look, i));
	return STATUS_OK;
}

/* ---- The thread that beats ---- */

struct queue_beater {
	struct worker *worker;
	char *url, group[QUEUE_BEATS];
	uint64_t number, token;
	int64_t period;
	_Atomic uint64_t written;
	pthread_mutex_t lock; /* of the two below */
	bool trouble;
	struct error error;
};

static enum status beat(
	struct queue_beater *beater, struct store *store, uint64_t sequence, struct error *err)
{
	struct store_beat record = {.token = beater->token, .sequence = sequence};
	enum status status = store_beat(store, beater->group, beater->number, &record, err);
	if (status != STATUS_NO)
		return status;
	/* The directory of the beats may have been removed: make it again. */
	status = store_beats_prepare(store, beater->group, beater->number + 1, err);
	return status == STATUS_OK ? store_beat(store, beater->group, beater->number, &record, err)
				   : status;
}

static void note(struct queue_beater *beater, enum status status, const struct error *err)
{
	if (status == STATUS_OK)
		atomic_fetch_add(&beater->written, 1);
	pthread_mutex_lock(&beater->lock);
	beater->trouble = status != STATUS_OK;
	if (beater->trouble)
		beater->error = *err;
	pthread_mutex_unlock(&beater->lock);
}

static void work(void *context)
{
	struct queue_beater *beater = context;
	struct store *store = NULL;
	/* The first beat was written when the worker registered. */
	uint64_t sequence = 1;
	while (worker_goes_on(beater->worker)) {
		struct error err = {0};
		int64_t next = clock_after(beater->period);
		enum status status = STATUS_OK;
		if (!store)
			status = store_open(&store, beater->url, 0, next, &err);
		if (status == STATUS_OK)
			status = beat(beater, store, ++sequence, &err);
		note(beater, status, &err);
		(void)worker_pause(beater->worker, next);
	}
	store_close(store);
}

static void release(struct queue_beater *beater)
{
	pthread_mutex_destroy(&beater->lock);
	free(beater->url);
	free(beater);
}

enum status queue_beater_start(struct queue_beater **out, const char *url,
	const struct queue *queue, const struct queue_worker *worker, struct error *err)
{
	struct queue_beater *beater = xcalloc(1, sizeof(*beater));
	pthread_mutex_init(&beater->lock, NULL);
	beater->url = xstrdup(url);
	beater->number = worker->number;
	beater->token = queue_beat_token(worker);
	beater->period = worker->period;
	queue_beats(queue, beater->group);
	enum status status = worker_start(&beater->worker, "beater", err);
	if (status != STATUS_OK) {
		release(beater);
		return status;
	}
	worker_run(beater->worker, work, beater);
	*out = beater;
	return STATUS_OK;
}

uint64_t queue_beater_written(struct queue_beater *beater, bool *trouble, struct error *err)
{
	pthread_mutex_lock(&beater->lock);
	*trouble = beater->trouble;
	if (beater->trouble && err)
		*err = beater->error;
	pthread_mutex_unlock(&beater->lock);
	return atomic_load(&beater->written);
}

void queue_beater_stop(struct queue_beater *beater)
{
	if (beater && worker_stop(beater->worker, STOP_PATIENCE))
		release(beater);
}
