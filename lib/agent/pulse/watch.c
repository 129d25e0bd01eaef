/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "agent/pulse/watch.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "proto/writes.h"

#define WAIT_MOST 2 /* exchanges for which lost tasks are not declared while others are late */

/* Note which tasks have left or are dead, and whether the others need our beats. */
static void take_view(struct pulse *pulse)
{
	bool others = false;
	for (uint64_t i = 0; i < pulse->attempt.tasks; i++) {
		pulse->out[i] = !agreement_counts(&pulse->view.agreement, i);
		others |= !pulse->out[i] && !pulse_has_task(pulse, i);
	}
	atomic_store(&pulse->needed, others && !pulse->view.agreement.claimed);
}

enum status pulse_refresh(struct pulse *pulse, struct error *err)
{
	enum status status = view_refresh(&pulse->view, pulse->store, err);
	if (status == STATUS_OK)
		take_view(pulse);
	return status;
}

/* Whether this pulse reads all records. In a large attempt only the monitor, or with follow. */
static bool reads_all(const struct pulse *pulse, bool monitor)
{
	return monitor || pulse->options.follow || !view_is_large(&pulse->view);
}

static bool is_suspect(const struct heartbeat_peer *peer)
{
	return peer->state == HEARTBEAT_LATE || peer->state == HEARTBEAT_UNKNOWN;
}

static bool is_lost(const struct pulse *pulse, uint64_t task, bool monitor)
{
	return !pulse->out[task] && view_has_joined(&pulse->view, task) &&
	       !pulse->view.members[task].beatless &&
	       heartbeat_may_declare(&pulse->peers[task], &pulse->options.rules, monitor);
}

/* Read everything, or, in a large attempt, the news and the records of tasks that seem lost. */
static enum status read_lost(struct pulse *pulse, bool monitor)
{
	if (reads_all(pulse, monitor))
		return pulse_refresh(pulse, NULL);
	enum status status = view_refresh_news(&pulse->view, pulse->store, NULL);
	if (status == STATUS_OK)
		take_view(pulse);
	for (uint64_t i = 0; i < pulse->attempt.tasks && status == STATUS_OK; i++)
		if (is_lost(pulse, i, monitor))
			status = view_read_task(&pulse->view, pulse->store, i, NULL);
	if (status == STATUS_OK)
		take_view(pulse);
	return status;
}

static struct heartbeat_look look_of(const struct store_beat_reading *reading)
{
	return (struct heartbeat_look){.beat = reading->beat,
		.took = reading->took,
		.seen = reading->status == STATUS_OK   ? SEEN_BEAT
			: reading->status == STATUS_NO ? SEEN_NOTHING
						       : SEEN_ERROR};
}

static enum heartbeat_state observe(struct pulse *pulse, uint64_t task,
	const struct store_beat_reading *reading, const struct heartbeat_exchange *exchange)
{
	struct heartbeat_look look = look_of(reading);
	struct heartbeat_peer *peer = &pulse->peers[task];
	const struct view_member *member = &pulse->view.members[task];
	/* The view has the process of a task only after a task was suspected. Checking a process
	 * costs a system call, so it is done for late and unknown tasks only. */
	look.expected = view_has_joined(&pulse->view, task) && !member->beatless;
	look.gone = is_suspect(peer) && member->shown[RECORD_TASK] &&
		    process_check(&member->agent) == PROCESS_GONE;
	const uint64_t silent = peer->silent;
	enum heartbeat_state state =
		heartbeat_observe(peer, &pulse->options.rules, exchange, &look);
	if (silent < 2 && peer->silent == 2)
		message_detail("task %llu has missed two heartbeats: none for %lld s",
			(unsigned long long)task,
			(long long)(exchange->began - peer->changed_at) / 1000);
	pulse->tally.late += state == HEARTBEAT_LATE;
	pulse->tally.unknown += state == HEARTBEAT_UNKNOWN;
	pulse->tally.restarted += state == HEARTBEAT_RESTARTED;
	pulse->tally.lost += heartbeat_is_lost(state);
	return state;
}

/*
 * Read the beats from task 0 upwards until one shows a live task: that is the monitor and reads the
 * rest. True: no task before ours lives, so this pulse is the monitor and must read all.
 */
static bool look_for_monitor(struct pulse *pulse, const struct heartbeat_exchange *exchange)
{
	int unproved = 0;
	for (uint64_t i = 0; i < pulse->attempt.tasks; i++) {
		if (pulse_has_task(pulse, i))
			return true;
		if (pulse->out[i])
			continue;
		struct store_beat_reading reading;
		store_beats_read(pulse->store, pulse->group, i, &reading, 1);
		enum heartbeat_state state = observe(pulse, i, &reading, exchange);
		if (is_suspect(&pulse->peers[i]) && !reads_all(pulse, false) &&
			!pulse->view.members[i].shown[RECORD_TASK])
			(void)view_read_task(&pulse->view, pulse->store, i, NULL);
		if (state == HEARTBEAT_ALIVE && pulse->peers[i].proved)
			return false;
		if (state == HEARTBEAT_ALIVE && ++unproved == HEARTBEAT_UNPROVED)
			return false;
	}
	return false;
}

/* How many beats, from task first on, can be read together: up to the next task that is out. */
static size_t count_together(const struct pulse *pulse, uint64_t first)
{
	size_t count = 0;
	while (count < STORE_BEATS_READ && first + count < pulse->attempt.tasks &&
		!pulse->out[first + count])
		count++;
	return count;
}

static void look_at_all(struct pulse *pulse, const struct heartbeat_exchange *exchange)
{
	struct store_beat_reading *readings = xcalloc(STORE_BEATS_READ, sizeof(*readings));
	for (uint64_t i = pulse->options.first + pulse->options.count; i < pulse->attempt.tasks;) {
		size_t count = count_together(pulse, i);
		store_beats_read(pulse->store, pulse->group, i, readings, count);
		for (size_t k = 0; k < count; k++)
			(void)observe(pulse, i + k, &readings[k], exchange);
		i += count ? count : 1;
	}
	free(readings);
}

/* Read the beat of a task again. False: it is new, or could not be read in time. */
static bool is_still_silent(const struct pulse *pulse, uint64_t task)
{
	struct store_beat_reading reading;
	const struct heartbeat_peer *peer = &pulse->peers[task];
	store_beats_read(pulse->store, pulse->group, task, &reading, 1);
	struct heartbeat_look look = look_of(&reading);
	if (look.took > pulse->options.rules.timeout)
		return false;
	if (!heartbeat_has_beaten(peer))
		return look.seen == SEEN_NOTHING;
	return look.seen == SEEN_BEAT && look.beat.token == peer->beat.token &&
	       look.beat.sequence == peer->beat.sequence;
}

static enum death_cause cause_of(const struct pulse *pulse, uint64_t task)
{
	const struct heartbeat_peer *peer = &pulse->peers[task];
	if (peer->state == HEARTBEAT_RESTARTED)
		return DEATH_RESTARTED;
	return peer->silent < heartbeat_limit(peer, &pulse->options.rules) ? DEATH_GONE
									   : DEATH_SILENT;
}

/*
 * Commit the deaths of lost tasks, as many as one transaction takes. Time may have passed since
 * they were judged, so the beat of each silent task is read again right before: a newer beat, or a
 * reading that takes too long, spares the task. True: there may be more.
 */
static bool declare_some(struct pulse *pulse, bool monitor)
{
	struct death deaths[DEATHS_MOST];
	size_t count = 0;
	if (read_lost(pulse, monitor) != STATUS_OK || pulse->view.agreement.closed)
		return false;
	for (uint64_t i = 0; i < pulse->attempt.tasks && count < DEATHS_MOST; i++) {
		const struct heartbeat_peer *peer = &pulse->peers[i];
		if (!is_lost(pulse, i, monitor))
			continue;
		enum death_cause cause = cause_of(pulse, i);
		if (cause == DEATH_SILENT && !is_still_silent(pulse, i))
			continue;
		int64_t ago = peer->changed_at ? clock_now() - peer->changed_at : 0;
		deaths[count++] = (struct death){.task = i,
			.cause = cause,
			.since_utc = clock_utc() - ago,
			.has_step =
				heartbeat_has_beaten(peer) && peer->beat.step != HEARTBEAT_NO_STEP,
			.step = peer->beat.step};
	}
	if (count == 0)
		return false;
	bool done = write_deaths(pulse->store, &pulse->view, pulse->options.first, deaths, count,
			    NULL) == OUTCOME_DONE;
	for (size_t i = 0; i < count && done; i++)
		pulse->out[deaths[i].task] = true;
	return done && count == DEATHS_MOST;
}

void pulse_look_around(struct pulse *pulse, const struct heartbeat_exchange *exchange)
{
	struct pulse_tally *tally = &pulse->tally;
	*tally = (struct pulse_tally){0};
	bool monitor = look_for_monitor(pulse, exchange);
	if (monitor)
		look_at_all(pulse, exchange);
	/* Checking whether the process of a silent task exists needs its identity from the view. */
	if ((tally->late || tally->unknown) && pulse->view.revision == 0 &&
		reads_all(pulse, monitor))
		(void)pulse_refresh(pulse, NULL);
	/* Tasks that died together are declared together: wait for late tasks to be judged, too. */
	bool wait = tally->late && !tally->restarted && pulse->waited < WAIT_MOST;
	pulse->waited = tally->lost ? pulse->waited + 1 : 0;
	if (tally->lost && !wait)
		while (declare_some(pulse, monitor))
			;
}
