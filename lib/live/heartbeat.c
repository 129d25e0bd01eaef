/* SPDX-License-Identifier: MIT */
#include "live/heartbeat.h"

/* A sequence is the period in ms (24 bits), then a count (40 bits). */
#define COUNT_BITS 40
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)
#define PERIOD_MAX INT64_C(0xffffff)
#define RECENT	   3 /* periods: an observation that is older proves nothing */

int64_t heartbeat_timeout(int64_t period)
{
	return period - 10000 > 2000 ? period - 10000 : 2000;
}

static uint64_t record(uint64_t count, int64_t period)
{
	return (uint64_t)(period < PERIOD_MAX ? period : PERIOD_MAX) << COUNT_BITS | count;
}

uint64_t heartbeat_sequence(uint64_t count, int64_t period)
{
	return record(count % COUNT_MASK, period);
}

uint64_t heartbeat_farewell(int64_t period)
{
	return record(COUNT_MASK, period);
}

bool heartbeat_is_farewell(uint64_t sequence)
{
	return heartbeat_count(sequence) == COUNT_MASK;
}

uint64_t heartbeat_count(uint64_t sequence)
{
	return sequence & COUNT_MASK;
}

int64_t heartbeat_period(uint64_t sequence)
{
	return (int64_t)(sequence >> COUNT_BITS);
}

static int64_t period_of(const struct heartbeat_peer *peer, const struct heartbeat_rules *rules)
{
	int64_t theirs = heartbeat_period(peer->beat.sequence);
	return theirs > rules->period ? theirs : rules->period;
}

uint64_t heartbeat_limit(const struct heartbeat_peer *peer, const struct heartbeat_rules *rules)
{
	uint64_t first = (uint64_t)((rules->first + rules->period - 1) / rules->period);
	return heartbeat_has_beaten(peer) || first < rules->limit ? rules->limit : first;
}

static enum heartbeat_state take_change(struct heartbeat_peer *peer,
	const struct heartbeat_rules *rules, const struct store_beat *beat, int64_t now)
{
	/* A change since an old observation may be old itself: it does not prove life now. */
	peer->proved = peer->state != HEARTBEAT_UNKNOWN &&
		       now - peer->observed_at <= RECENT * period_of(peer, rules);
	peer->beat = *beat;
	peer->silent = 0;
	peer->observed_at = peer->changed_at = now;
	return heartbeat_is_farewell(beat->sequence) ? HEARTBEAT_LEFT : HEARTBEAT_ALIVE;
}

static enum heartbeat_state take_silence(struct heartbeat_peer *peer,
	const struct heartbeat_rules *rules, const struct heartbeat_exchange *exchange)
{
	int64_t period = period_of(peer, rules);
	if (exchange->paused) {
		/* A peer that was stopped together with us has a whole period for its next beat. */
		peer->observed_at = exchange->began;
	} else if (exchange->beaten && exchange->began - peer->observed_at >= period) {
		peer->silent++;
		peer->observed_at = exchange->began;
	}
	if (peer->silent >= heartbeat_limit(peer, rules))
		return HEARTBEAT_DEAD;
	if (!heartbeat_has_beaten(peer))
		return peer->state;
	return peer->silent ? HEARTBEAT_LATE : HEARTBEAT_ALIVE;
}

static enum heartbeat_state judge(struct heartbeat_peer *peer, const struct heartbeat_rules *rules,
	const struct heartbeat_exchange *exchange, const struct heartbeat_look *look)
{
	bool known = heartbeat_has_beaten(peer), in_time = look->took <= rules->timeout;
	bool readable = look->seen == SEEN_BEAT && in_time;
	bool other = look->beat.token != peer->beat.token;
	/* In a queue, a change proves life however long its reading took. */
	bool changed = (readable || (look->seen == SEEN_BEAT && look->reused)) &&
		       (!known || other || look->beat.sequence != peer->beat.sequence);
	if (readable && known && other && !look->reused)
		return HEARTBEAT_RESTARTED;
	if (changed)
		return take_change(peer, rules, &look->beat, exchange->began);
	if (peer->state == HEARTBEAT_LEFT)
		return HEARTBEAT_LEFT;
	if (look->gone)
		return HEARTBEAT_DEAD;
	bool due =
		!known && look->seen == SEEN_NOTHING && in_time && look->expected && rules->first;
	if (due && !peer->changed_at) /* count the silence from here */
		peer->observed_at = peer->changed_at = exchange->began;
	if (readable || due)
		return take_silence(peer, rules, exchange);
	/* Nothing was observed: a death has to be observed again before it is declared. */
	return peer->state == HEARTBEAT_DEAD ? HEARTBEAT_LATE : peer->state;
}

enum heartbeat_state heartbeat_observe(struct heartbeat_peer *peer,
	const struct heartbeat_rules *rules, const struct heartbeat_exchange *exchange,
	const struct heartbeat_look *look)
{
	return peer->state = judge(peer, rules, exchange, look);
}

bool heartbeat_may_declare(
	const struct heartbeat_peer *peer, const struct heartbeat_rules *rules, bool monitor)
{
	return heartbeat_is_lost(peer->state) &&
	       (monitor || peer->state == HEARTBEAT_RESTARTED ||
		       peer->silent >= heartbeat_limit(peer, rules) + HEARTBEAT_DEPUTY);
}
