/* SPDX-License-Identifier: MIT */
/* The thread that beats, and its callers. */
#include "agent/pulse/pulse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "agent/pulse/stream.h"
#include "agent/pulse/watch.h"
#include "base/clock.h"
#include "base/process/bell.h"
#include "base/xalloc.h"

uint64_t pulse_token(const struct process_identity *who)
{
	char key[160];
	snprintf(key, sizeof(key), "%s %" PRIu64 " %ld %" PRIu64, who->boot, who->pid_namespace,
		(long)who->pid, who->start);
	uint64_t token = XXH64(key, strlen(key), 0);
	return token ? token : 1;
}

/* ---- The thread ---- */

/* One beat for each of our tasks. True: the store took all of them in time. */
static bool beat(struct pulse *pulse, bool farewell)
{
	const struct heartbeat_rules *rules = &pulse->options.rules;
	struct store_beat *beats = xcalloc(pulse->options.count, sizeof(*beats));
	pulse->count++;
	for (uint64_t i = 0; i < pulse->options.count; i++)
		beats[i] = (struct store_beat){.token = pulse->token,
			.sequence = farewell ? heartbeat_farewell(rules->period)
					     : heartbeat_sequence(pulse->count, rules->period),
			.step = atomic_load(&pulse->steps[i])};
	int64_t began = clock_now();
	enum status status = store_beats(pulse->store, pulse->group, pulse->options.first, beats,
		pulse->options.count, NULL);
	bool right = status == STATUS_OK && clock_now() - began <= rules->timeout;
	free(beats);
	if (right)
		atomic_store(&pulse->answered_at, clock_now());
	return right;
}

/* Claim the streams, so that no preempt-heartbeat beats for us. With follow, the caller has. */
static void claim_streams(struct pulse *pulse)
{
	pulse->streams = pulse->options.follow ? NULL : xcalloc(pulse->options.count, sizeof(int));
	for (uint64_t i = 0; pulse->streams && i < pulse->options.count; i++) {
		pulse->streams[i] = -1;
		(void)stream_claim(store_where(pulse->store), &pulse->attempt,
			pulse->options.first + i, &pulse->streams[i], NULL);
	}
}

static void release_streams(struct pulse *pulse)
{
	for (uint64_t i = 0; pulse->streams && i < pulse->options.count; i++)
		if (pulse->streams[i] >= 0)
			close(pulse->streams[i]);
	free(pulse->streams);
}

static void prepare(struct pulse *pulse)
{
	claim_streams(pulse);
	keys_group(&pulse->attempt, pulse->group);
	pulse->peers = xcalloc(pulse->attempt.tasks, sizeof(*pulse->peers));
	pulse->out = xcalloc(pulse->attempt.tasks, sizeof(*pulse->out));
	view_init(&pulse->view, &pulse->attempt);
	/* Our process may have beaten before: count on from its last beat. */
	struct store_beat last;
	if (store_beat_read(pulse->store, pulse->group, pulse->options.first, &last, NULL) ==
			STATUS_OK &&
		!heartbeat_is_farewell(last.sequence))
		pulse->count = heartbeat_count(last.sequence);
}

/* Ring `broken`, once, if the group is broken or the attempt is over for our tasks. */
static void tell_end(struct pulse *pulse)
{
	const struct view *view = &pulse->view;
	const struct agreement_view *a = &view->agreement;
	bool dead = false, over = true;
	if (pulse->told || pulse->view.revision == 0)
		return;
	for (uint64_t i = 0; i < a->tasks; i++) {
		dead |= pulse_has_task(pulse, i) && a->peers[i].dead;
		over &= !pulse_has_task(pulse, i) || a->peers[i].left != REASON_NONE;
	}
	bool broken = a->broken && !a->claimed && !over;
	if (!dead && !broken && !over && !a->closed)
		return;
	pulse->told = true;
	pthread_mutex_lock(&pulse->lock);
	strcpy(pulse->class, broken ? view->error.class : "");
	if (broken && view->error.present)
		snprintf(pulse->why, sizeof(pulse->why),
			"task %llu failed on %.60s with %d%s%.120s",
			(unsigned long long)view->error.task, view->error.host, view->error.code,
			*view->error.line ? ": " : "", view->error.line);
	else if (broken)
		snprintf(pulse->why, sizeof(pulse->why), "%s", view_why(view));
	else if (dead)
		snprintf(pulse->why, sizeof(pulse->why), "this task was declared dead");
	pthread_mutex_unlock(&pulse->lock);
	bell_ring(pulse->broken);
}

/* Wait until the next beat is due or the thread is to stop. With follow, read each change. */
static void rest(struct pulse *pulse, int64_t until)
{
	while (worker_goes_on(pulse->worker) && clock_now() < until) {
		enum status status = STATUS_NO;
		if (pulse->options.follow && atomic_load(&pulse->watching) && !pulse->told)
			status = view_wait(&pulse->view, pulse->store, until,
				worker_wake(pulse->worker), NULL);
		else
			(void)worker_pause(pulse->worker, until);
		if (status == STATUS_OK)
			status = pulse_refresh(pulse, NULL);
		if (status != STATUS_OK && status != STATUS_NO && status != STATUS_TIMEOUT)
			clock_sleep_until(clock_after(clock_jitter(200)));
		tell_end(pulse);
	}
}

static void exchange_beats(struct pulse *pulse, int64_t *last)
{
	struct heartbeat_exchange exchange = {.began = clock_now()};
	exchange.paused = *last && exchange.began - *last > 2 * pulse->options.rules.period;
	*last = exchange.began;
	exchange.beaten = beat(pulse, false);
	if (atomic_load(&pulse->watching))
		pulse_look_around(pulse, &exchange);
	/* The next exchange begins at least a period after this one. */
	rest(pulse, exchange.began + pulse->options.rules.period);
}

static void work(void *context)
{
	struct pulse *pulse = context;
	int64_t last = 0;
	while (worker_goes_on(pulse->worker)) {
		if (!pulse->store &&
			store_open(&pulse->store, pulse->options.store, 0,
				clock_after(pulse->options.rules.timeout), NULL) != STATUS_OK) {
			(void)worker_pause(pulse->worker, clock_after(500 + clock_jitter(500)));
			continue;
		}
		store_set_patience(pulse->store, pulse->options.rules.timeout);
		if (!pulse->peers)
			prepare(pulse);
		exchange_beats(pulse, &last);
	}
	if (pulse->count && !atomic_load(&pulse->silent))
		(void)beat(pulse, true);
	release_streams(pulse);
	store_close(pulse->store);
}

/* ---- The callers ---- */

static void release(struct pulse *pulse)
{
	if (pulse->view.members)
		view_release(&pulse->view);
	if (pulse->broken >= 0)
		close(pulse->broken);
	pthread_mutex_destroy(&pulse->lock);
	free((void *)pulse->steps);
	free(pulse->peers);
	free(pulse->out);
	free(pulse);
}

enum status pulse_start(struct pulse **out, const struct pulse_options *options, struct error *err)
{
	struct pulse *pulse = xcalloc(1, sizeof(*pulse));
	pulse->steps = xcalloc(options->count, sizeof(*pulse->steps));
	pulse->options = *options;
	pulse->token = pulse_token(options->who);
	pulse->options.who = NULL;
	for (uint64_t i = 0; i < options->count; i++)
		atomic_store(&pulse->steps[i], HEARTBEAT_NO_STEP);
	pthread_mutex_init(&pulse->lock, NULL);
	pulse->broken = bell_open();
	enum status status = pulse->broken < 0 ? error_errno(err, errno, "make an eventfd")
					       : worker_start(&pulse->worker, "pulse", err);
	if (status == STATUS_OK)
		*out = pulse;
	else
		release(pulse);
	return status;
}

void pulse_begin(struct pulse *pulse, const struct attempt *attempt)
{
	if (!pulse || atomic_load(&pulse->begun))
		return;
	pulse->attempt = *attempt;
	atomic_store(&pulse->needed, attempt->tasks > pulse->options.count);
	atomic_store(&pulse->begun, true);
	worker_run(pulse->worker, work, pulse);
}

void pulse_watch(struct pulse *pulse)
{
	if (pulse)
		atomic_store(&pulse->watching, true);
}

void pulse_tell_step(struct pulse *pulse, uint64_t index, uint64_t step)
{
	if (pulse)
		atomic_store(&pulse->steps[index], step);
}

bool pulse_is_answered(const struct pulse *pulse)
{
	int64_t at = atomic_load(&pulse->answered_at);
	const struct heartbeat_rules *rules = &pulse->options.rules;
	return at && clock_now() - at < 2 * rules->period + rules->timeout;
}

bool pulse_is_needed(const struct pulse *pulse)
{
	return atomic_load(&pulse->needed);
}

int pulse_descriptor(const struct pulse *pulse)
{
	return pulse->broken;
}

bool pulse_why(struct pulse *pulse, char text[256], char class[64])
{
	pthread_mutex_lock(&pulse->lock);
	memcpy(text, pulse->why, sizeof(pulse->why));
	memcpy(class, pulse->class, sizeof(pulse->class));
	pthread_mutex_unlock(&pulse->lock);
	return *text != '\0';
}

void pulse_fall_silent(struct pulse *pulse)
{
	if (pulse)
		atomic_store(&pulse->silent, true);
}

void pulse_stop(struct pulse *pulse, int64_t patience)
{
	if (pulse && worker_stop(pulse->worker, patience))
		release(pulse);
}
