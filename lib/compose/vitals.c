/* SPDX-License-Identifier: MIT */
#include "compose/vitals.h"

#include <stdlib.h>

#include "agent/pulse/pulse.h"
#include "base/clock.h"
#include "base/xalloc.h"

#define CHECK_EVERY 50	 /* ms between two readings */
#define ALLOWANCE   1000 /* ms to wait for a new beat after the end of its period */

static enum heartbeat_state by_keys(const struct view *view, uint64_t task)
{
	const struct agreement_peer *peer = &view->agreement.peers[task];
	if (peer->left != REASON_NONE)
		return HEARTBEAT_LEFT;
	if (!peer->dead)
		return HEARTBEAT_UNKNOWN;
	switch (view->members[task].death) {
	case DEATH_RESTARTED: return HEARTBEAT_RESTARTED;
	case DEATH_HUNG: return HEARTBEAT_HUNG;
	default: return HEARTBEAT_DEAD;
	}
}

static void read_one(struct store *store, const char *group, uint64_t task,
	struct store_beat *first, struct vital *vital)
{
	struct store_beat beat;
	enum status status = store_beat_read(store, group, task, &beat, NULL);
	vital->unread = status != STATUS_OK && status != STATUS_NO;
	if (status != STATUS_OK)
		return;
	vital->period = heartbeat_period(beat.sequence);
	if (vital->state != HEARTBEAT_UNKNOWN && vital->state != HEARTBEAT_LATE)
		return;
	if (heartbeat_is_farewell(beat.sequence))
		vital->state = HEARTBEAT_LEFT;
	else if (!first->token)
		vital->state = HEARTBEAT_LATE; /* until its beat changes */
	else if (beat.token != first->token)
		vital->state = HEARTBEAT_RESTARTED;
	else if (beat.sequence != first->sequence)
		vital->state = HEARTBEAT_ALIVE;
	if (!first->token)
		*first = beat;
}

static bool is_gone(const struct view *view, uint64_t task)
{
	return view_has_joined(view, task) &&
	       process_check(&view->members[task].agent) == PROCESS_GONE;
}

void vitals_read(
	struct store *store, const struct view *view, struct vital *vitals, int64_t deadline)
{
	char group[KEYS_GROUP];
	uint64_t tasks = view->attempt.tasks;
	struct store_beat *first = xcalloc(tasks, sizeof(*first));
	int64_t *first_at = xcalloc(tasks, sizeof(*first_at)); /* when it was read */
	keys_group(&view->attempt, group);
	for (uint64_t i = 0; i < tasks; i++)
		vitals[i] = (struct vital){.state = by_keys(view, i)};
	for (bool awaited = true; awaited;) {
		awaited = false;
		for (uint64_t i = 0; i < tasks; i++) {
			struct vital *vital = &vitals[i];
			bool fresh = !first[i].token;
			if (fresh || vital->state == HEARTBEAT_LATE)
				read_one(store, group, i, &first[i], vital);
			if (fresh)
				first_at[i] = clock_now();
			if (fresh && vital->state == HEARTBEAT_LATE && is_gone(view, i))
				vital->state = HEARTBEAT_DEAD;
			awaited |= vital->state == HEARTBEAT_LATE &&
				   clock_now() < first_at[i] + vital->period + ALLOWANCE;
		}
		if (clock_now() >= deadline)
			break;
		if (awaited)
			clock_sleep_until(clock_after(CHECK_EVERY));
	}
	for (uint64_t i = 0; i < tasks; i++)
		if (vitals[i].state == HEARTBEAT_LATE && is_gone(view, i))
			vitals[i].state = HEARTBEAT_DEAD;
	free(first);
	free(first_at);
}
