/* SPDX-License-Identifier: MIT */
/* Looking for dead workers. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/workers/workers.h"

void judge_release(struct judge *judge)
{
	free(judge->others);
	free(judge->workers);
	*judge = (struct judge){0};
}

/* Take a new list, and keep what is known of the workers that are also in the old one. */
static void take_list(
	struct judge *judge, struct queue_worker *workers, size_t count, store_revision revision)
{
	struct judge_other *others = xcalloc(count + 1, sizeof(*others));
	/* Both lists are sorted by beat number. */
	for (size_t i = 0, old = 0; i < count; i++) {
		memcpy(others[i].token, workers[i].token, sizeof(others[i].token));
		while (old < judge->count && judge->workers[old].beat < workers[i].beat)
			old++;
		if (old < judge->count && !strcmp(judge->others[old].token, workers[i].token))
			others[i] = judge->others[old];
	}
	free(judge->others);
	free(judge->workers);
	judge->others = others;
	judge->workers = workers;
	judge->count = count;
	judge->listed = revision;
}

/* List the registered workers, if one has come or gone since the last list. */
static enum status refresh(struct judge *judge, struct queue *queue, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	struct queue_worker *workers;
	size_t count;
	store_revision revision = judge->listed;
	enum status status = STATUS_OK;
	queue_key(queue, prefix, "worker/");
	if (judge->listed)
		status = store_wait(queue->store, prefix, &revision, clock_now(), -1, err);
	if (status == STATUS_TIMEOUT) {
		judge->listed = revision;
		return STATUS_OK;
	}
	if (status == STATUS_OK)
		status = workers_list(queue, &workers, &count, &revision, err);
	if (status == STATUS_OK)
		take_list(judge, workers, count, revision);
	return status;
}

static bool is_gone(const struct queue_worker *worker)
{
	return process_check(&worker->process) == PROCESS_GONE;
}

/*
 * Read a beat. A worker beats before it registers, so a missing beat counts as silence, too: return
 * it as a beat that never changes, with a token that no worker has.
 */
static void read_beat(struct queue *queue, uint64_t number, struct heartbeat_look *look)
{
	char group[160];
	int64_t began = clock_boot();
	workers_beats(queue, group);
	enum status status = store_beat_read(queue->store, group, number, &look->beat, NULL);
	look->took = clock_boot() - began;
	look->seen = status == STATUS_OK || status == STATUS_NO ? SEEN_BEAT : SEEN_ERROR;
	if (status != STATUS_OK)
		look->beat = (struct store_beat){.token = 1};
}

struct looking {
	struct judge *judge;
	struct queue *queue;
	const struct queue_worker *self;
	uint64_t written, *fenced;
	int64_t now;
	bool paused;
};

static struct heartbeat_rules rules_for(
	const struct looking *looking, const struct queue_worker *worker)
{
	int64_t own = looking->self->period, period = worker->period > own ? worker->period : own;
	return (struct heartbeat_rules){
		.period = period, .timeout = period, .limit = worker->limit};
}

static enum heartbeat_state look_at(struct looking *looking, size_t index)
{
	const struct queue_worker *worker = &looking->judge->workers[index];
	struct judge_other *other = &looking->judge->others[index];
	struct heartbeat_rules rules = rules_for(looking, worker);
	struct heartbeat_exchange exchange = {.began = looking->now,
		.beaten = looking->written > other->written,
		.paused = looking->paused};
	struct heartbeat_look look = {.reused = true};
	if (worker->fenced || is_gone(worker))
		return other->peer.state = HEARTBEAT_DEAD;
	read_beat(looking->queue, worker->beat, &look);
	(void)heartbeat_observe(&other->peer, &rules, &exchange, &look);
	if (other->peer.observed_at == looking->now)
		other->written = looking->written;
	return other->peer.state;
}

/* Whether we may fence a dead worker although we are not the monitor. */
static bool may_fence(const struct looking *looking, size_t index)
{
	const struct queue_worker *worker = &looking->judge->workers[index];
	struct heartbeat_rules rules = rules_for(looking, worker);
	return is_gone(worker) ||
	       heartbeat_may_declare(&looking->judge->others[index].peer, &rules, false);
}

static enum status fence(struct looking *looking, size_t index, struct error *err)
{
	enum status status =
		workers_fence(looking->queue, looking->self, &looking->judge->workers[index], err);
	/* Do not fence it again: it stays in our list until the next refresh. */
	if (status == STATUS_OK)
		looking->judge->others[index].peer.state = HEARTBEAT_ALIVE;
	*looking->fenced += status == STATUS_OK;
	return status;
}

/*
 * Look at the workers from the lowest beat number upwards. The first living one is the monitor:
 * leave the rest to it. A worker that finds no living one before itself is the monitor, and looks
 * at all. A worker whose beat was not yet seen to change may be dead: look past it, but past fewer
 * than HEARTBEAT_UNPROVED such workers, and do not act as the monitor.
 */
static enum status look_at_all(struct looking *looking, size_t self, struct error *err)
{
	struct judge *judge = looking->judge;
	enum status status = STATUS_OK, worst = STATUS_OK;
	unsigned unproved = 0;
	bool monitor = true;
	size_t before = 0;
	for (; before < self && monitor; before++) {
		enum heartbeat_state state = look_at(looking, before);
		monitor = state != HEARTBEAT_ALIVE ||
			  (!judge->others[before].peer.proved && ++unproved < HEARTBEAT_UNPROVED);
		/* Silence alone lets only the monitor fence. We may not be it: ask may_fence. */
		if (state == HEARTBEAT_DEAD && may_fence(looking, before))
			status = fence(looking, before, err);
		if (status == STATUS_NO)
			return status;
		worst = status != STATUS_OK ? status : worst;
	}
	monitor = monitor && unproved == 0;
	for (size_t i = 0; i < judge->count && monitor; i++) {
		if (i == self)
			continue;
		if ((i < before ? judge->others[i].peer.state : look_at(looking, i)) ==
			HEARTBEAT_DEAD)
			status = fence(looking, i, err);
		if (status == STATUS_NO)
			return status;
		worst = status != STATUS_OK ? status : worst;
	}
	return worst;
}

/* Look at the next workers on our own machine, up to the first whose process exists. */
static enum status look_at_neighbours(struct looking *looking, size_t self, struct error *err)
{
	struct judge *judge = looking->judge;
	enum status status = STATUS_OK, damaged = STATUS_OK;
	for (size_t i = 1; i < judge->count && status == STATUS_OK; i++) {
		size_t index = (self + i) % judge->count;
		enum process_state state = process_check(&judge->workers[index].process);
		if (state == PROCESS_ALIVE)
			break;
		if (state == PROCESS_GONE)
			status = fence(looking, index, err);
		if (status == STATUS_DAMAGED) {
			damaged = status;
			status = STATUS_OK;
		}
	}
	return status == STATUS_OK ? damaged : status;
}

/*
 * Whether this whole process was stopped since the last reading; the observed worker may have been
 * stopped, too. If only this thread was late, its readings are still valid: the heartbeat thread
 * kept running.
 */
static bool was_stopped(
	const struct judge *judge, const struct queue_worker *self, int64_t now, uint64_t written)
{
	int64_t periods = (now - judge->looked) / self->period;
	return judge->looked && periods >= 2 && 2 * (written - judge->written) < (uint64_t)periods;
}

/* The list of the workers cannot be read: look only whether we are still registered. */
static enum status look_at_self(struct looking *looking, struct error *err)
{
	const struct error damage = *err;
	store_revision revision;
	enum status status = workers_revision(looking->queue, looking->self, &revision, err);
	if (status != STATUS_OK)
		return status;
	if (revision != looking->self->revision)
		return STATUS_NO;
	looking->judge->looked = looking->now;
	looking->judge->written = looking->written;
	*err = damage;
	return damage.status;
}

enum status judge_look(struct judge *judge, struct queue *queue, const struct queue_worker *self,
	uint64_t written, uint64_t *fenced, struct error *err)
{
	struct looking looking = {.judge = judge,
		.queue = queue,
		.self = self,
		.written = written,
		.fenced = fenced,
		.now = clock_boot()};
	*fenced = 0;
	enum status status = refresh(judge, queue, err);
	if (status == STATUS_DAMAGED)
		return look_at_self(&looking, err);
	if (status != STATUS_OK)
		return status;
	size_t index = 0;
	while (index < judge->count && strcmp(judge->workers[index].token, self->token) != 0)
		index++;
	if (index == judge->count || judge->workers[index].revision != self->revision)
		return STATUS_NO;
	looking.paused = was_stopped(judge, self, looking.now, written);
	judge->looked = looking.now;
	judge->written = written;
	status = look_at_neighbours(&looking, index, err);
	/* Do not look again at a worker that was fenced just now. */
	if (*fenced || (status != STATUS_OK && status != STATUS_DAMAGED))
		return status;
	/* A damaged record of a dead worker must not keep us from looking at the others. */
	enum status all = look_at_all(&looking, index, err);
	return all == STATUS_OK ? status : all;
}

enum status judge_count_alive(struct judge *judge, struct queue *queue, size_t *registered,
	size_t *alive, struct error *err)
{
	size_t living = 0;
	enum status status = refresh(judge, queue, err);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < judge->count; i++) {
		const struct queue_worker *worker = &judge->workers[i];
		struct heartbeat_peer *peer = &judge->others[i].peer;
		struct heartbeat_look look = {0};
		if (worker->fenced || is_gone(worker))
			continue;
		read_beat(queue, worker->beat, &look);
		int64_t now = clock_boot();
		if (!heartbeat_has_beaten(peer) ||
			(look.seen == SEEN_BEAT &&
				(look.beat.token != peer->beat.token ||
					look.beat.sequence != peer->beat.sequence))) {
			peer->beat = look.beat;
			peer->changed_at = now;
		}
		living += (uint64_t)((now - peer->changed_at) / worker->period) < worker->limit;
	}
	*registered = judge->count;
	*alive = living;
	return STATUS_OK;
}
